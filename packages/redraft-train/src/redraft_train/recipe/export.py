"""Write a trained decoder as a GGUF that llama.cpp runs as ``qwen3``, with tokenizer and prompt format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer

from redraft.captions.metadata import OWN_SCRIPT_KEY, PROMPT_KEY, SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY
from redraft_train.recipe.corpus import LANGUAGES
from redraft_train.recipe.examples import MAX_LENGTH
from redraft_train.recipe.model import EPSILON, ROPE_BASE, Decoder
from redraft_train.recipe.tokenizer import BOS, EOS, LLAMA_CPP_PRE, PAD, target_tag

#: Prompt format: the source comes first, so that a growing source keeps its cache.
PROMPT = "{source}<2{code}>"

#: Name of a layer's part here -> name in a GGUF.
LAYER_TENSORS = {
    "attention_norm": "attn_norm",
    "query_norm": "attn_q_norm",
    "key_norm": "attn_k_norm",
    "query": "attn_q",
    "key": "attn_k",
    "value": "attn_v",
    "output": "attn_output",
    "feed_forward_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}


def write_gguf(model: Decoder, tokenizer: Tokenizer, path: Path, name: str, facts: Mapping[str, str]) -> None:
    """Write ``model`` in 32-bit floats; `quantise` makes smaller files from it."""
    writer = gguf.GGUFWriter(str(path), "qwen3")
    writer.add_name(name)
    for key, value in facts.items():
        writer.add_string(key, value)
    writer.add_string(PROMPT_KEY, PROMPT)
    writer.add_string(SOURCE_LANGUAGES_KEY, "en")
    writer.add_string(TARGET_LANGUAGES_KEY, ",".join(LANGUAGES))
    writer.add_string(OWN_SCRIPT_KEY, "true")
    shape = model.shape
    writer.add_context_length(4 * MAX_LENGTH)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_key_length(shape.head)
    writer.add_value_length(shape.head)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_tokenizer(writer, tokenizer)
    for tensor_name, tensor in _tensors(model):
        writer.add_tensor(tensor_name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: gguf.GGUFWriter, tokenizer: Tokenizer) -> None:
    described = json.loads(tokenizer.to_str())["model"]
    special = {BOS, EOS, PAD, *map(target_tag, LANGUAGES)}
    tokens = sorted(described["vocab"], key=described["vocab"].__getitem__)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(LLAMA_CPP_PRE)
    writer.add_token_list(tokens)
    writer.add_token_types([control if token in special else normal for token in tokens])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in described["merges"]])
    writer.add_bos_token_id(described["vocab"][BOS])
    writer.add_eos_token_id(described["vocab"][EOS])
    writer.add_pad_token_id(described["vocab"][PAD])
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)


def _tensors(model: Decoder) -> list[tuple[str, np.ndarray]]:  # type: ignore[type-arg]
    def array(tensor: torch.Tensor) -> np.ndarray:  # type: ignore[type-arg]
        return tensor.detach().float().cpu().numpy()

    found = [("token_embd.weight", array(model.embedding.weight)), ("output_norm.weight", array(model.norm.weight))]
    for index, layer in enumerate(model.layers):
        for ours, theirs in LAYER_TENSORS.items():
            found.append((f"blk.{index}.{theirs}.weight", array(getattr(layer, ours).weight)))
    return found
