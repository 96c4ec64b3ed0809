"""Writes tiny GGUF files of models with recurrent layers, in the architectures that people have.

As in `tests.gguf_models`, weights are random and the models speak nonsense, always the same nonsense.  Every one has
recurrent layers and, but for Mamba, attention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import numpy as np

from tests.gguf_models import (
    HEAD,
    HEADS,
    HIDDEN,
    LAYERS,
    MERGES,
    STOP,
    TOKENS,
    VOCABULARY,
    Writer,
    blocks,
    mamba,
    mamba_facts,
    write_recurrent,
)
from tests.hybrid_parts import (
    INNER,
    KERNEL,
    MIXERS,
    STATE,
    delta_net,
    delta_net_facts,
    experts,
    gated_attention,
    mamba2,
    mamba2_facts,
    mixture,
    shared_expert,
)
from tests.latent_hybrids import (
    write_deepseek,
    write_glm,
    write_kimi,
    write_kimi_k3,
    write_ling,
    write_qwen4,
)


def write_lfm2(path: Path, layers: int = 2, moe: bool = False, seed: int = 11) -> Path:
    """LFM2: short convolutions, and attention in every other layer."""
    writer = Writer(path, "lfm2moe" if moe else "lfm2", seed, layers=layers)
    facts = writer.facts
    facts.add_head_count_kv([HEADS * (index % 2) for index in range(layers)])
    facts.add_shortconv_l_cache(3)
    facts.add_vocab_size(VOCABULARY)
    if moe:
        mixture(writer)
        facts.add_leading_dense_block_count(1)
        facts.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    writer.embeddings()
    writer.norms("", "token_embd_norm")
    for index, block in enumerate(blocks(layers=layers)):
        writer.norms(block, "attn_norm", "ffn_norm")
        if moe and index:
            experts(writer, block, gated=True, biased=True)
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


def write_qwen(path: Path, about: str = "qwen35", seed: int = 12) -> Path:
    """Qwen3.5, Qwen3.5 MoE and Qwen3-Next: gated delta nets, and gated attention in every second layer."""
    writer, dense, joined = Writer(path, about, seed), about == "qwen35", about == "qwen3next"
    facts = writer.facts
    facts.add_head_count_kv(HEADS)
    facts.add_key_length(HEAD)
    facts.add_value_length(HEAD)
    facts.add_rope_dimension_count(8)
    if not joined:
        facts.add_array(f"{about}.rope.dimension_sections", [2, 1, 1, 0])
    facts.add_vocab_size(VOCABULARY)
    delta_net_facts(writer)
    if not dense:
        mixture(writer)
        facts.add_expert_shared_feed_forward_length(HIDDEN)
    writer.embeddings()
    writer.norms("", "output_norm")
    for index, block in enumerate(blocks()):
        writer.norms(block, "attn_norm", "post_attention_norm")
        if not dense:
            experts(writer, block, gated=True)
            writer.matrix(f"{block}ffn_gate_inp_shexp.weight", HIDDEN, 1)
            shared_expert(writer, block, gated=True)
        else:
            writer.feed_forward(block)
        if index % 2:
            gated_attention(writer, block)
        else:
            delta_net(writer, block, joined)
    writer.close()
    return path


def write_nemotron(path: Path, moe: bool = False, seed: int = 13) -> Path:
    """Nemotron-H: each layer is a Mamba-2 mixer, attention or a feed-forward network."""
    writer = Writer(path, "nemotron_h_moe" if moe else "nemotron_h", seed, layers=4, forward=[0, 0, 0, 2 * HIDDEN])
    writer.facts.add_head_count_kv([0, HEADS, 0, 0])
    writer.facts.add_layer_norm_eps(1e-6)
    mamba2_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    first, attention, second, network = blocks(layers=4)
    writer.norms(network, "attn_norm")
    if moe:
        mixture(writer)
        writer.facts.add_expert_shared_feed_forward_length(HIDDEN)
        experts(writer, network, gated=False, biased=True)
        shared_expert(writer, network, gated=False)
    else:
        writer.matrix(f"{network}ffn_up.weight", HIDDEN, 2 * HIDDEN)
        writer.matrix(f"{network}ffn_down.weight", 2 * HIDDEN, HIDDEN)
    for block in (first, second):
        writer.norms(block, "attn_norm")
        mamba2(writer, block)
    writer.norms(attention, "attn_norm")
    writer.attention(attention)
    writer.close()
    return path


def write_granite(path: Path, moe: bool = False, seed: int = 14) -> Path:
    """Granite 4 with an H in its name: Mamba-2 mixers, then attention, each with a feed-forward network."""
    writer = Writer(path, "granitehybrid", seed, forward=[HIDDEN] * LAYERS if moe else ())
    if moe:
        mixture(writer)
        writer.facts.add_expert_shared_feed_forward_length(HIDDEN)
    writer.facts.add_head_count_kv([0, HEADS])
    writer.facts.add_vocab_size(VOCABULARY)
    for key in ("logit_scale", "residual_scale", "embedding_scale", "attention.scale"):
        writer.facts.add_float32(f"granitehybrid.{key}", 1.0)
    mamba2_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    for index, block in enumerate(blocks()):
        writer.norms(block, "attn_norm", "ffn_norm")
        if moe:
            experts(writer, block, gated=True)
            shared_expert(writer, block, gated=True)
        else:
            writer.feed_forward(block)
        if index:
            writer.attention(block)
        else:
            mamba2(writer, block)
    writer.close()
    return path


def write_falcon(path: Path, seed: int = 15) -> Path:
    """Falcon-H1: a Mamba-2 mixer beside the attention of every layer."""
    writer = Writer(path, "falcon-h1", seed)
    writer.facts.add_head_count_kv(HEADS)
    writer.facts.add_key_length(HEAD)
    writer.facts.add_value_length(HEAD)
    writer.facts.add_rope_dimension_count(HEAD)
    mamba2_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    for block in blocks():
        writer.norms(block, "attn_norm")
        writer.tensor(f"{block}ffn_norm", np.ones(HIDDEN))  # its name has no ending
        writer.feed_forward(block)
        writer.attention(block)
        mamba2(writer, block)
    writer.close()
    return path


def write_mamba2(path: Path, seed: int = 16) -> Path:
    """Mamba-2: no attention."""
    writer = Writer(path, "mamba2", seed)
    mamba2_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    for block in blocks():
        writer.norms(block, "attn_norm")
        mamba2(writer, block)
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
    mamba2_facts(writer, groups=0)
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
    writer.matrix(f"{first}ssm_in.weight", HIDDEN, 2 * INNER)
    writer.matrix(f"{first}ssm_conv1d.weight", KERNEL, INNER)
    writer.matrix(f"{first}ssm_x.weight", INNER, steps + 2 * STATE)
    writer.matrix(f"{first}ssm_dt.weight", steps, MIXERS)
    writer.tensor(f"{first}ssm_dt.bias", np.zeros(MIXERS))
    writer.tensor(f"{first}ssm_a", -np.ones(MIXERS) / 20)
    writer.tensor(f"{first}ssm_d", np.ones(MIXERS))
    for name, size in (("dt", steps), ("b", STATE), ("c", STATE)):
        writer.tensor(f"{first}ssm_{name}_norm", np.ones(size))
    writer.matrix(f"{first}ssm_out.weight", INNER, HIDDEN, 2.0)
    writer.close()
    return path


def write_rwkv6(path: Path, qwen: bool = False, seed: int = 19) -> Path:
    """RWKV 6: no attention; QRWKV has the feed-forward networks of Qwen2.5."""
    writer, extra = Writer(path, "rwkv6qwen2" if qwen else "rwkv6", seed), 8
    writer.facts.add_time_mix_extra_dim(extra)
    writer.facts.add_time_decay_extra_dim(extra)
    _rwkv(writer, converted=qwen, head=HEAD)
    for block in blocks():
        writer.matrix(f"{block}time_mix_w1.weight", HIDDEN, 5 * extra)
        writer.matrices(f"{block}time_mix_w2.weight", extra, HIDDEN, 5)
        writer.tensor(f"{block}time_mix_lerp_x.weight", np.full((1, 1, HIDDEN), 0.5))
        writer.tensor(f"{block}time_mix_lerp_fused.weight", np.full((5, 1, 1, HIDDEN), 0.5))
        writer.tensor(f"{block}time_mix_decay.weight", -np.ones(HIDDEN))
        writer.matrix(f"{block}time_mix_decay_w1.weight", HIDDEN, extra)
        writer.matrix(f"{block}time_mix_decay_w2.weight", extra, HIDDEN)
        writer.matrix(f"{block}time_mix_gate.weight", HIDDEN, HIDDEN)
        if not qwen:
            writer.matrix(f"{block}time_mix_first.weight", HEAD, HEADS)
            writer.tensor(f"{block}channel_mix_lerp_r.weight", np.full((1, 1, HIDDEN), 0.5))
            writer.matrix(f"{block}channel_mix_receptance.weight", HIDDEN, HIDDEN)
    writer.close()
    return path


def write_rwkv7(path: Path, qwen: bool = False, seed: int = 20) -> Path:
    """RWKV 7: no attention; ARWKV has the feed-forward networks of Qwen2.5."""
    writer, rank = Writer(path, "arwkv7" if qwen else "rwkv7", seed), 8
    writer.facts.add_decay_lora_rank(rank)
    writer.facts.add_iclr_lora_rank(rank)
    writer.facts.add_value_residual_mix_lora_rank(rank)
    writer.facts.add_gate_lora_rank(rank)
    _rwkv(writer, converted=qwen, head=HIDDEN)  # with AVX-512, llama.cpp reads 64 numbers at a time, as real heads have
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


def _rwkv(writer: Writer, converted: bool, head: int) -> None:
    """What RWKV 6 and 7 have in common; those that were converted from Qwen2.5 have its norms and networks."""
    writer.facts.add_wkv_head_size(head)
    writer.embeddings()
    for block in blocks():
        for name in ("key", "value", "receptance", "output"):
            writer.matrix(f"{block}time_mix_{name}.weight", HIDDEN, HIDDEN, 2.0)
    if converted:
        writer.facts.add_token_shift_count(1)
        writer.norms("", "output_norm")
        for block in blocks():
            writer.norms(block, "attn_norm", "ffn_norm")
            writer.feed_forward(block)
        return
    writer.facts.add_layer_norm_eps(1e-5)
    norms = ["token_embd_norm", "output_norm"]
    for block in blocks():
        norms += [f"{block}{name}" for name in ("attn_norm", "attn_norm_2", "time_mix_ln")]
        writer.tensor(f"{block}channel_mix_lerp_k.weight", np.full((1, 1, HIDDEN), 0.5))
        writer.matrix(f"{block}channel_mix_key.weight", HIDDEN, 2 * HIDDEN)
        writer.matrix(f"{block}channel_mix_value.weight", 2 * HIDDEN, HIDDEN)
    for name in norms:
        writer.tensor(f"{name}.weight", np.ones(HIDDEN))
        writer.tensor(f"{name}.bias", np.zeros(HIDDEN))


def write_minimax(path: Path, seed: int = 21) -> Path:
    """MiniMax-01: lightning attention, and attention in every second layer, each with experts."""
    writer = Writer(path, "minimax-01", seed, forward=[HIDDEN] * LAYERS)
    writer.facts.add_head_count_kv(HEADS)
    writer.facts.add_key_length(HEAD)
    writer.facts.add_value_length(HEAD)
    writer.facts.add_rope_dimension_count(HEAD)
    writer.facts.add_vocab_size(VOCABULARY)
    writer.facts.add_residual_scale(1.0)
    writer.facts.add_uint32("minimax-01.full_attention_interval", 2)
    mixture(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    for index, block in enumerate(blocks()):
        writer.norms(block, "attn_norm", "ffn_norm")
        experts(writer, block, gated=True)
        if index % 2:
            writer.attention(block)
            continue
        writer.norms(block, "attn_norm_2")
        writer.matrix(f"{block}attn_qkv.weight", HIDDEN, 3 * HIDDEN, 2.0)
        for name in ("attn_gate", "attn_output"):
            writer.matrix(f"{block}{name}.weight", HIDDEN, HIDDEN, 2.0)
    writer.close()
    return path


def write_qwen_of_size(path: Path, layers: int = 24, seed: int = 23) -> Path:
    """Qwen3.5 in the sizes of the one with 0.8 billion parameters, with random weights in Q8_0."""
    width, inner, heads, shared, head, vocabulary = 1024, 3584, 8, 2, 256, 248320
    state, keys, values, kernel = 128, 16, 16, 4
    facts, draw = gguf.GGUFWriter(str(path), "qwen35"), np.random.default_rng(seed)
    facts.add_context_length(4096)
    facts.add_embedding_length(width)
    facts.add_block_count(layers)
    facts.add_feed_forward_length(inner)
    facts.add_head_count(heads)
    facts.add_head_count_kv(shared)
    facts.add_key_length(head)
    facts.add_value_length(head)
    facts.add_layer_norm_rms_eps(1e-6)
    facts.add_rope_dimension_count(head // 4)
    facts.add_array("qwen35.rope.dimension_sections", [11, 11, 10, 0])
    facts.add_vocab_size(vocabulary)
    facts.add_ssm_conv_kernel(kernel)
    facts.add_ssm_inner_size(state * values)
    facts.add_ssm_state_size(state)
    facts.add_ssm_time_step_rank(values)
    facts.add_ssm_group_count(keys)
    facts.add_uint32("qwen35.full_attention_interval", 4)
    facts.add_tokenizer_model("gpt2")
    facts.add_tokenizer_pre("gpt-2")
    facts.add_token_list([*TOKENS, *(f"t{number}" for number in range(len(TOKENS), vocabulary))])
    facts.add_token_merges(MERGES)
    facts.add_eos_token_id(TOKENS.index(STOP))

    def matrix(name: str, inputs: int, outputs: int) -> None:
        cells = draw.integers(-127, 128, (outputs, inputs // 32, 34), np.int8)
        cells[:, :, :2] = np.array([1 / 73 / np.sqrt(inputs)], np.float16).view(np.int8)
        facts.add_tensor(name, cells.view(np.uint8).reshape(outputs, -1), raw_dtype=gguf.GGMLQuantizationType.Q8_0)

    def plain(name: str, *shape: int, value: float = 1.0) -> None:
        facts.add_tensor(name, np.full(shape, value, np.float32))

    matrix("token_embd.weight", width, vocabulary)
    plain("output_norm.weight", width)
    mixed, gated = state * (2 * keys + values), state * values
    for index, block in enumerate(blocks(layers=layers)):
        for name in ("attn_norm", "post_attention_norm"):
            plain(f"{block}{name}.weight", width)
        for name, inputs, outputs in (("gate", width, inner), ("up", width, inner), ("down", inner, width)):
            matrix(f"{block}ffn_{name}.weight", inputs, outputs)
        if index % 4 == 3:
            for name, outputs in (("q", 2 * heads * head), ("k", shared * head), ("v", shared * head)):
                matrix(f"{block}attn_{name}.weight", width, outputs)
            matrix(f"{block}attn_output.weight", heads * head, width)
            for name in ("attn_q_norm", "attn_k_norm"):
                plain(f"{block}{name}.weight", head)
            continue
        for name, outputs in (("attn_qkv", mixed), ("attn_gate", gated), ("ssm_beta", values), ("ssm_alpha", values)):
            matrix(f"{block}{name}.weight", width, outputs)
        plain(f"{block}ssm_conv1d.weight", mixed, kernel, value=0.3)
        plain(f"{block}ssm_dt.bias", values, value=0.0)
        plain(f"{block}ssm_a", values, value=-0.05)
        plain(f"{block}ssm_norm.weight", state)
        matrix(f"{block}ssm_out.weight", gated, width)
    facts.write_header_to_file()
    facts.write_kv_data_to_file()
    facts.write_tensors_to_file()
    facts.close()
    return path


#: Writers of models that are refused.
REFUSED: Mapping[str, Callable[[Path], Path]] = {
    "PLaMo 2": write_plamo2,
    "QRWKV 6": lambda path: write_rwkv6(path, qwen=True),
    "ARWKV 7": lambda path: write_rwkv7(path, qwen=True),
}
#: Writers by the names under which people know the models.
HYBRIDS: Mapping[str, Callable[[Path], Path]] = {
    "Qwen3.5": write_qwen,
    "Qwen3.5 MoE": lambda path: write_qwen(path, "qwen35moe"),
    "Qwen3-Next": lambda path: write_qwen(path, "qwen3next"),
    "LFM2": write_lfm2,
    "LFM2 MoE": lambda path: write_lfm2(path, moe=True),
    "Nemotron-H": write_nemotron,
    "Nemotron-H MoE": lambda path: write_nemotron(path, moe=True),
    "Granite-H": write_granite,
    "Granite-H MoE": lambda path: write_granite(path, moe=True),
    "Falcon-H1": write_falcon,
    "Mamba": write_recurrent,
    "Mamba-2": write_mamba2,
    "Jamba": write_jamba,
    "RWKV 6": write_rwkv6,
    "RWKV 7": write_rwkv7,
    "Kimi Linear": write_kimi,
    "MiniMax-01": write_minimax,
    "Ling 3": write_ling,
    "Kimi K3": write_kimi_k3,
    "GLM 5.3 Flash": write_glm,
    "Qwen4": write_qwen4,
    "DeepSeek V4": write_deepseek,
}
