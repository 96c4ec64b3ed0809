"""Writes tiny GGUF files of models with recurrent layers, in the architectures that people have.

As in `tests.gguf_models`, weights are random and the models speak nonsense, always the same nonsense.  Every one has
recurrent layers and, but for Mamba, attention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import numpy as np

from tests.gguf_models import HEAD, HEADS, HIDDEN, VOCABULARY, Writer, blocks, mamba, mamba_facts, write_recurrent

#: Experts of a mixture, and how many of them compute a token.
EXPERTS, USED = 4, 2
#: Inner size, size of the state, heads, groups and kernel of a Mamba-2 mixer.
_INNER, _STATE, _HEADS, _GROUPS, _KERNEL = 2 * HIDDEN, 16, 4, 1, 4


def write_lfm2(path: Path, layers: int = 2, moe: bool = False, seed: int = 11) -> Path:
    """LFM2: short convolutions, and attention in every other layer."""
    writer = Writer(path, "lfm2moe" if moe else "lfm2", seed, layers=layers)
    facts = writer.facts
    facts.add_head_count_kv([HEADS * (index % 2) for index in range(layers)])
    facts.add_shortconv_l_cache(3)
    facts.add_vocab_size(VOCABULARY)
    if moe:
        _mixture(writer)
        facts.add_leading_dense_block_count(1)
        facts.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    writer.embeddings()
    writer.norms("", "token_embd_norm")
    for index, block in enumerate(blocks(layers=layers)):
        writer.norms(block, "attn_norm", "ffn_norm")
        if moe and index:
            _experts(writer, block, gated=True)
            writer.tensor(f"{block}exp_probs_b.bias", np.zeros(EXPERTS))
        else:
            writer.feed_forward(block)
        if index % 2:
            writer.attention(block)
            writer.norms(block, "attn_q_norm", "attn_k_norm", size=HEAD)
        else:
            writer.matrix(f"{block}shortconv.conv.weight", 3, HIDDEN)
            writer.matrix(f"{block}shortconv.in_proj.weight", HIDDEN, 3 * HIDDEN)
            writer.matrix(f"{block}shortconv.out_proj.weight", HIDDEN, HIDDEN)
    writer.close()
    return path


def write_qwen35(path: Path, moe: bool = False, seed: int = 12) -> Path:
    """Qwen3.5: gated delta nets, and gated attention in every second layer."""
    about = "qwen35moe" if moe else "qwen35"
    writer = Writer(path, about, seed)
    facts = writer.facts
    facts.add_head_count_kv(HEADS)
    facts.add_key_length(HEAD)
    facts.add_value_length(HEAD)
    facts.add_rope_dimension_count(8)
    facts.add_array(f"{about}.rope.dimension_sections", [2, 1, 1, 0])
    facts.add_vocab_size(VOCABULARY)
    state, keys, values, kernel = 16, 2, 4, 4
    facts.add_ssm_conv_kernel(kernel)
    facts.add_ssm_inner_size(state * values)
    facts.add_ssm_state_size(state)
    facts.add_ssm_time_step_rank(values)
    facts.add_ssm_group_count(keys)
    facts.add_uint32(f"{about}.full_attention_interval", 2)
    if moe:
        _mixture(writer)
        facts.add_expert_shared_feed_forward_length(HIDDEN)
    writer.embeddings()
    writer.norms("", "output_norm")
    mixed, inner = state * (2 * keys + values), state * values
    for index, block in enumerate(blocks()):
        writer.norms(block, "attn_norm", "post_attention_norm")
        if moe:
            _experts(writer, block, gated=True)
            writer.matrix(f"{block}ffn_gate_inp_shexp.weight", HIDDEN, 1)
            _shared_expert(writer, block, gated=True)
        else:
            writer.feed_forward(block)
        if index % 2:
            writer.matrix(f"{block}attn_q.weight", HIDDEN, 2 * HIDDEN, 2.0)
            for name in ("attn_k", "attn_v", "attn_output"):
                writer.matrix(f"{block}{name}.weight", HIDDEN, HIDDEN, 2.0)
            writer.norms(block, "attn_q_norm", "attn_k_norm", size=HEAD)
            continue
        writer.matrix(f"{block}attn_qkv.weight", HIDDEN, mixed)
        writer.matrix(f"{block}attn_gate.weight", HIDDEN, inner)
        writer.matrix(f"{block}ssm_conv1d.weight", kernel, mixed)
        writer.tensor(f"{block}ssm_dt.bias", np.zeros(values))
        writer.tensor(f"{block}ssm_a", -np.ones(values) / 20)
        writer.matrix(f"{block}ssm_beta.weight", HIDDEN, values)
        writer.matrix(f"{block}ssm_alpha.weight", HIDDEN, values)
        writer.norms(block, "ssm_norm", size=state)
        writer.matrix(f"{block}ssm_out.weight", inner, HIDDEN, 2.0)
    writer.close()
    return path


def write_nemotron(path: Path, seed: int = 13) -> Path:
    """Nemotron-H: each layer is a Mamba-2 mixer, attention or a feed-forward network."""
    writer = Writer(path, "nemotron_h", seed, layers=4, forward=[0, 0, 0, 2 * HIDDEN])
    writer.facts.add_head_count_kv([0, HEADS, 0, 0])
    writer.facts.add_layer_norm_eps(1e-6)
    _mamba2_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    first, attention, second, network = blocks(layers=4)
    writer.norms(network, "attn_norm")
    writer.matrix(f"{network}ffn_up.weight", HIDDEN, 2 * HIDDEN)
    writer.matrix(f"{network}ffn_down.weight", 2 * HIDDEN, HIDDEN)
    for block in (first, second):
        writer.norms(block, "attn_norm")
        _mamba2(writer, block)
    writer.norms(attention, "attn_norm")
    writer.attention(attention)
    writer.close()
    return path


def write_granite(path: Path, seed: int = 14) -> Path:
    """Granite 4 with an H in its name: Mamba-2 mixers, then attention, each with a feed-forward network."""
    writer = Writer(path, "granitehybrid", seed)
    writer.facts.add_head_count_kv([0, HEADS])
    writer.facts.add_vocab_size(VOCABULARY)
    for key in ("logit_scale", "residual_scale", "embedding_scale", "attention.scale"):
        writer.facts.add_float32(f"granitehybrid.{key}", 1.0)
    _mamba2_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    for index, block in enumerate(blocks()):
        writer.norms(block, "attn_norm", "ffn_norm")
        writer.feed_forward(block)
        if index:
            writer.attention(block)
        else:
            _mamba2(writer, block)
    writer.close()
    return path


def write_falcon(path: Path, seed: int = 15) -> Path:
    """Falcon-H1: a Mamba-2 mixer beside the attention of every layer."""
    writer = Writer(path, "falcon-h1", seed)
    writer.facts.add_head_count_kv(HEADS)
    writer.facts.add_key_length(HEAD)
    writer.facts.add_value_length(HEAD)
    writer.facts.add_rope_dimension_count(HEAD)
    _mamba2_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    for block in blocks():
        writer.norms(block, "attn_norm")
        writer.tensor(f"{block}ffn_norm", np.ones(HIDDEN))  # its name has no ending
        writer.feed_forward(block)
        writer.attention(block)
        _mamba2(writer, block)
    writer.close()
    return path


def write_mamba2(path: Path, seed: int = 16) -> Path:
    """Mamba-2: no attention."""
    writer = Writer(path, "mamba2", seed)
    _mamba2_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    for block in blocks():
        writer.norms(block, "attn_norm")
        _mamba2(writer, block)
    writer.close()
    return path


def write_jamba(path: Path, seed: int = 17) -> Path:
    """Jamba: a Mamba mixer, then attention, each with a feed-forward network."""
    writer = Writer(path, "jamba", seed)
    writer.facts.add_head_count_kv([0, HEADS])
    mamba_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    first, second = blocks()
    for block in (first, second):
        writer.norms(block, "attn_norm", "ffn_norm")
        writer.feed_forward(block)
    writer.attention(second)
    mamba(writer, first, normed=True)
    writer.close()
    return path


def write_plamo2(path: Path, seed: int = 18) -> Path:
    """PLaMo 2, which is refused: a Mamba-2 mixer of its own kind, then attention, each with a feed-forward network."""
    writer = Writer(path, "plamo2", seed)
    writer.facts.add_head_count_kv([0, HEADS])
    writer.facts.add_key_length(HEAD)
    writer.facts.add_value_length(HEAD)
    _mamba2_facts(writer, groups=0)
    writer.embeddings()
    writer.norms("", "output_norm")
    first, second = blocks()
    for block in (first, second):
        writer.norms(block, "attn_norm", "ffn_norm")
        for name in ("post_attention_norm", "post_ffw_norm"):
            writer.tensor(f"{block}{name}", np.ones(HIDDEN))
        writer.matrix(f"{block}ffn_up.weight", HIDDEN, 4 * HIDDEN)
        writer.matrix(f"{block}ffn_down.weight", 2 * HIDDEN, HIDDEN)
    writer.matrix(f"{second}attn_qkv.weight", HIDDEN, 3 * HIDDEN, 2.0)
    for name in ("attn_q_norm", "attn_k_norm"):
        writer.tensor(f"{second}{name}.weight", np.ones((HEADS, HEAD)))
    writer.matrix(f"{second}attn_output.weight", HIDDEN, HIDDEN, 2.0)
    steps = 64
    writer.matrix(f"{first}ssm_in.weight", HIDDEN, 2 * _INNER)
    writer.matrix(f"{first}ssm_conv1d.weight", _KERNEL, _INNER)
    writer.matrix(f"{first}ssm_x.weight", _INNER, steps + 2 * _STATE)
    writer.matrix(f"{first}ssm_dt.weight", steps, _HEADS)
    writer.tensor(f"{first}ssm_dt.bias", np.zeros(_HEADS))
    writer.tensor(f"{first}ssm_a", -np.ones(_HEADS) / 20)
    writer.tensor(f"{first}ssm_d", np.ones(_HEADS))
    for name, size in (("dt", steps), ("b", _STATE), ("c", _STATE)):
        writer.tensor(f"{first}ssm_{name}_norm", np.ones(size))
    writer.matrix(f"{first}ssm_out.weight", _INNER, HIDDEN, 2.0)
    writer.close()
    return path


def write_rwkv6(path: Path, seed: int = 19) -> Path:
    """RWKV 6: no attention."""
    writer, extra = Writer(path, "rwkv6", seed), 8
    writer.facts.add_time_mix_extra_dim(extra)
    writer.facts.add_time_decay_extra_dim(extra)
    _rwkv(writer)
    for block in blocks():
        writer.matrix(f"{block}time_mix_w1.weight", HIDDEN, 5 * extra)
        writer.matrices(f"{block}time_mix_w2.weight", extra, HIDDEN, 5)
        for name in ("time_mix_lerp_x", "channel_mix_lerp_r"):
            writer.tensor(f"{block}{name}.weight", np.full((1, 1, HIDDEN), 0.5))
        writer.tensor(f"{block}time_mix_lerp_fused.weight", np.full((5, 1, 1, HIDDEN), 0.5))
        writer.matrix(f"{block}time_mix_first.weight", HEAD, HEADS)
        writer.tensor(f"{block}time_mix_decay.weight", -np.ones(HIDDEN))
        writer.matrix(f"{block}time_mix_decay_w1.weight", HIDDEN, extra)
        writer.matrix(f"{block}time_mix_decay_w2.weight", extra, HIDDEN)
        for name in ("time_mix_gate", "channel_mix_receptance"):
            writer.matrix(f"{block}{name}.weight", HIDDEN, HIDDEN)
    writer.close()
    return path


def write_rwkv7(path: Path, seed: int = 20) -> Path:
    """RWKV 7: no attention."""
    writer, rank = Writer(path, "rwkv7", seed), 8
    writer.facts.add_decay_lora_rank(rank)
    writer.facts.add_iclr_lora_rank(rank)
    writer.facts.add_value_residual_mix_lora_rank(rank)
    writer.facts.add_gate_lora_rank(rank)
    _rwkv(writer)
    for block in blocks():
        for name in "wav":
            writer.tensor(f"{block}time_mix_{name}0.weight", np.zeros(HIDDEN))
        for name in "wavg":
            writer.matrix(f"{block}time_mix_{name}1.weight", HIDDEN, rank)
            writer.matrix(f"{block}time_mix_{name}2.weight", rank, HIDDEN)
        writer.tensor(f"{block}time_mix_lerp_fused.weight", np.full((6, 1, 1, HIDDEN), 0.5))
        for name in ("k_k", "k_a", "r_k"):
            writer.tensor(f"{block}time_mix_{name}.weight", np.full(HIDDEN, 0.5))
    writer.close()
    return path


def _rwkv(writer: Writer) -> None:
    """What RWKV 6 and 7 have in common."""
    writer.facts.add_wkv_head_size(HEAD)
    writer.facts.add_layer_norm_eps(1e-5)
    writer.embeddings()
    norms = ["token_embd_norm", "output_norm"]
    for block in blocks():
        norms += [f"{block}{name}" for name in ("attn_norm", "attn_norm_2", "time_mix_ln")]
        writer.tensor(f"{block}channel_mix_lerp_k.weight", np.full((1, 1, HIDDEN), 0.5))
        for name in ("key", "value", "receptance", "output"):
            writer.matrix(f"{block}time_mix_{name}.weight", HIDDEN, HIDDEN, 2.0)
        writer.matrix(f"{block}channel_mix_key.weight", HIDDEN, 2 * HIDDEN)
        writer.matrix(f"{block}channel_mix_value.weight", 2 * HIDDEN, HIDDEN)
    for name in norms:
        writer.tensor(f"{name}.weight", np.ones(HIDDEN))
        writer.tensor(f"{name}.bias", np.zeros(HIDDEN))


def _mamba2_facts(writer: Writer, groups: int = _GROUPS) -> None:
    writer.facts.add_ssm_conv_kernel(_KERNEL)
    writer.facts.add_ssm_inner_size(_INNER)
    writer.facts.add_ssm_state_size(_STATE)
    writer.facts.add_ssm_time_step_rank(_HEADS)
    writer.facts.add_ssm_group_count(groups)


def _mamba2(writer: Writer, block: str) -> None:
    mixed = _INNER + 2 * _GROUPS * _STATE
    writer.matrix(f"{block}ssm_in.weight", HIDDEN, _INNER + mixed + _HEADS)
    writer.matrix(f"{block}ssm_conv1d.weight", _KERNEL, mixed)
    writer.tensor(f"{block}ssm_conv1d.bias", np.zeros(mixed))
    writer.tensor(f"{block}ssm_dt.bias", np.zeros(_HEADS))
    writer.tensor(f"{block}ssm_a", -np.ones((_HEADS, 1)) / 20)
    writer.tensor(f"{block}ssm_d", np.ones((_HEADS, 1)))
    writer.tensor(f"{block}ssm_norm.weight", np.ones((_GROUPS, _INNER // _GROUPS)))
    writer.matrix(f"{block}ssm_out.weight", _INNER, HIDDEN, 2.0)


def _mixture(writer: Writer) -> None:
    writer.facts.add_expert_count(EXPERTS)
    writer.facts.add_expert_used_count(USED)
    writer.facts.add_expert_feed_forward_length(HIDDEN)


def _experts(writer: Writer, block: str, gated: bool) -> None:
    writer.matrix(f"{block}ffn_gate_inp.weight", HIDDEN, EXPERTS)
    for name in ("gate", "up", "down") if gated else ("up", "down"):
        writer.matrices(f"{block}ffn_{name}_exps.weight", HIDDEN, HIDDEN, EXPERTS)


def _shared_expert(writer: Writer, block: str, gated: bool) -> None:
    for name in ("gate", "up", "down") if gated else ("up", "down"):
        writer.matrix(f"{block}ffn_{name}_shexp.weight", HIDDEN, HIDDEN)


#: Writers by the names under which people know the models.
HYBRIDS: Mapping[str, Callable[[Path], Path]] = {
    "Qwen3.5": write_qwen35,
    "Qwen3.5 MoE": lambda path: write_qwen35(path, moe=True),
    "LFM2": write_lfm2,
    "LFM2 MoE": lambda path: write_lfm2(path, moe=True),
    "Nemotron-H": write_nemotron,
    "Granite-H": write_granite,
    "Falcon-H1": write_falcon,
    "Mamba": write_recurrent,
    "Mamba-2": write_mamba2,
    "Jamba": write_jamba,
    "RWKV 6": write_rwkv6,
    "RWKV 7": write_rwkv7,
}
