"""Prefix training of any transformers model with LoRA: it learns prefixes of its own translations."""
