"""Prefix training of any model of transformers, with LoRA: it learns beginnings of its own translations."""
