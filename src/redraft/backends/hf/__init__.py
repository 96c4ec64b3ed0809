"""The backend for transformers: decoder-only and encoder-decoder models in torch, on a CPU or a GPU.

`redraft.backends.hf.model` opens them.
"""
