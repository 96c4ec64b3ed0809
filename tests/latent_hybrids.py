"""Tiny models with recurrent layers whose attention is compressed, sparse or both; see `tests.hybrids`."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tests.gguf_models import HEAD, HEADS, HIDDEN, LAYERS, STOP, TOKENS, VOCABULARY, WINDOW, Writer, blocks
from tests.hybrid_parts import (
    EXPERTS,
    INDEXERS,
    RANK,
    STREAMS,
    TURNED,
    USED,
    channel_delta,
    compressed_queries,
    delta_net,
    delta_net_facts,
    experts,
    gated_attention,
    hyper_connections,
    hyper_facts,
    indexer_facts,
    latent_attention,
    latent_facts,
    mixture,
    shared_expert,
)

#: Most ids that sparse attention reads: so few that it leaves some out, or all of a context, where rounding (DeepSeek
#: V4) or the place in the cache (Qwen4) would change which.
_MOST, _ALL = 16, 256
#: Size of an indexer's keys.
_INDEX = 64


def write_kimi(path: Path, seed: int = 22) -> Path:
    """Kimi Linear: delta attention with a decay for each channel, then attention with a compressed key and value."""
    writer = Writer(path, "kimi-linear", seed)
    latent_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    first, second = blocks()
    for block in (first, second):
        writer.norms(block, "attn_norm", "ffn_norm")
        experts(writer, block, gated=True, biased=True)
        shared_expert(writer, block, gated=True)
    channel_delta(writer, first, ("f_a", "f_b", "g_a", "g_b"), (1, 1, HEADS, 1))
    latent_attention(writer, second)
    writer.close()
    return path


def write_ling(path: Path, seed: int = 24) -> Path:
    """Ling 3: as Kimi Linear, with full gates, and one for each head of attention."""
    writer, about = Writer(path, "bailingmoe3", seed), "bailingmoe3"
    latent_facts(writer)
    writer.facts.add_leading_dense_block_count(1)
    writer.facts.add_float32(f"{about}.kda.gate_lower_bound", -0.2)
    writer.embeddings()
    writer.norms("", "output_norm")
    first, second = blocks()
    for block in (first, second):
        writer.norms(block, "attn_norm", "ffn_norm")
    writer.feed_forward(first)
    experts(writer, second, gated=True, biased=True)
    shared_expert(writer, second, gated=True)
    channel_delta(writer, first, ("f_a", "g_a"), (HEADS, 1))
    latent_attention(writer, second)
    writer.matrix(f"{second}attn_gate.weight", HIDDEN, HEADS)
    writer.close()
    return path


def write_kimi_k3(path: Path, seed: int = 25) -> Path:
    """Kimi K3: as Kimi Linear, with narrow experts, and attention to the residuals of earlier layers."""
    writer, about, narrow = Writer(path, "kimi-k3", seed), "kimi-k3", HIDDEN // 2
    latent_facts(writer)
    writer.facts.add_q_lora_rank(RANK)
    writer.facts.add_uint32(f"{about}.expert_latent_length", narrow)
    writer.facts.add_uint32(f"{about}.attn_res.block_size", 1)
    writer.facts.add_float32(f"{about}.activation.situ_beta", 4.0)
    writer.facts.add_float32(f"{about}.activation.situ_linear_beta", 4.0)
    writer.embeddings()
    writer.norms("", "output_norm", "output_res_score")
    first, second = blocks()
    for block in (first, second):
        writer.norms(block, "attn_norm", "ffn_norm", "attn_res_score", "ffn_res_score")
        experts(writer, block, gated=True, biased=True, width=narrow)
        shared_expert(writer, block, gated=True)
        writer.matrix(f"{block}ffn_routed_down.weight", HIDDEN, narrow)
        writer.matrix(f"{block}ffn_routed_up.weight", narrow, HIDDEN)
        writer.norms(block, "ffn_routed_norm", size=narrow)
    channel_delta(writer, first, ("f_a", "f_b", "g"), (HEADS,))
    latent_attention(writer, second, compressed=True)
    writer.matrix(f"{second}attn_gate.weight", HIDDEN, HEADS * HEAD)
    writer.close()
    return path


def write_glm(path: Path, seed: int = 26) -> Path:
    """GLM 5.3 Flash: as Kimi Linear, with hyper-connections, and attention to pools of ids that an indexer chooses."""
    writer, about, pool = Writer(path, "glm5-next", seed), "glm5-next", 4
    latent_facts(writer, turned=0)
    writer.facts.add_q_lora_rank(RANK)
    writer.facts.add_layer_norm_eps(1e-6)
    indexer_facts(writer, _INDEX, _MOST)
    writer.facts.add_uint32(f"{about}.attention.indexer.kpool", pool)
    writer.facts.add_bool(f"{about}.attention.indexer.kpool_select_tail", True)
    hyper_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    first, second = blocks()
    for block in (first, second):
        writer.norms(block, "attn_norm", "ffn_norm")
        hyper_connections(writer, f"{block}hc_attn", f"{block}hc_ffn", mixed=(2 + STREAMS) * STREAMS, scales=3)
        experts(writer, block, gated=True, biased=True)
        shared_expert(writer, block, gated=True)
    channel_delta(writer, first, ("f_a", "f_b", "g_a", "g_b"), (HEADS,))
    latent_attention(writer, second, turned=0, compressed=True)
    writer.norms(second, "indexer.k_norm", size=_INDEX)
    writer.tensor(f"{second}indexer.k_norm.bias", np.zeros(_INDEX))
    writer.matrix(f"{second}indexer.proj.weight", HIDDEN, INDEXERS)
    writer.matrix(f"{second}indexer.attn_k.weight", HIDDEN, _INDEX)
    writer.matrix(f"{second}indexer.attn_q_b.weight", RANK, INDEXERS * _INDEX)
    writer.matrix(f"{second}indexer_compressor_gate.weight", HIDDEN, _INDEX)
    writer.matrix(f"{second}indexer_compressor_ape.weight", _INDEX, pool)
    writer.close()
    return path


def write_deepseek(path: Path, seed: int = 27) -> Path:
    """DeepSeek V4: hyper-connections, and attention to a window and to summaries of 4 or 128 ids each."""
    writer, about, head, ratios = Writer(path, "deepseek4", seed), "deepseek4", 64, (4, 128)
    facts = writer.facts
    facts.add_head_count_kv(1)
    facts.add_key_length(head)
    facts.add_value_length(head)
    facts.add_rope_dimension_count(TURNED)
    facts.add_vocab_size(VOCABULARY)
    facts.add_sliding_window(WINDOW)
    facts.add_q_lora_rank(RANK)
    mixture(writer)
    facts.add_expert_shared_count(1)
    facts.add_expert_weights_scale(1.0)
    facts.add_expert_weights_norm(True)
    facts.add_uint32(f"{about}.expert_gating_func", 4)  # the root of softplus, which the package has no name for
    facts.add_array(f"{about}.swiglu_clamp_exp", [10.0] * LAYERS)
    indexer_facts(writer, _INDEX, _ALL // ratios[0])
    facts.add_uint32(f"{about}.attention.output_group_count", 1)
    facts.add_uint32(f"{about}.attention.output_lora_rank", RANK)
    facts.add_float32(f"{about}.attention.compress_rope_freq_base", 10000.0)
    facts.add_array(f"{about}.attention.compress_ratios", ratios)
    facts.add_uint32(f"{about}.hash_layer_count", 1)
    hyper_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    hyper_connections(writer, "output_hc", mixed=STREAMS, scales=1)
    for index, block in enumerate(blocks()):
        writer.norms(block, "attn_norm", "ffn_norm")
        hyper_connections(writer, f"{block}hc_attn", f"{block}hc_ffn", mixed=(2 + STREAMS) * STREAMS, scales=3)
        experts(writer, block, gated=True, biased=index > 0)
        shared_expert(writer, block, gated=True)
        compressed_queries(writer, block, HEADS * head)
        writer.tensor(f"{block}attn_sinks.weight", np.zeros(HEADS))
        writer.matrix(f"{block}attn_kv.weight", HIDDEN, head, 2.0)
        writer.norms(block, "attn_kv_a_norm", size=head)
        writer.matrix(f"{block}attn_output_a.weight", HEADS * head, RANK)
        writer.matrix(f"{block}attn_output_b.weight", RANK, HIDDEN, 2.0)
        _summaries(writer, f"{block}attn_compressor", head, ratios[index])
    first = blocks()[0]
    chosen = np.arange(VOCABULARY * USED, dtype=np.int32).reshape(VOCABULARY, USED) % EXPERTS
    facts.add_tensor(f"{first}ffn_gate_tid2eid.weight", chosen)
    writer.matrix(f"{first}indexer.proj.weight", HIDDEN, INDEXERS)
    writer.matrix(f"{first}indexer.attn_q_b.weight", RANK, INDEXERS * _INDEX)
    _summaries(writer, f"{first}indexer_compressor", _INDEX, ratios[0])
    writer.close()
    return path


def _summaries(writer: Writer, prefix: str, size: int, ratio: int) -> None:
    """What sums up so many ids; those that sum up four overlap."""
    width = 2 * size if ratio == 4 else size
    for name in ("kv", "gate"):
        writer.matrix(f"{prefix}_{name}.weight", HIDDEN, width)
    writer.matrix(f"{prefix}_ape.weight", width, ratio)
    writer.norms(prefix, "_norm", size=size)


def write_qwen4(path: Path, most: int = _ALL, seed: int = 28) -> Path:
    """Qwen4: as Qwen3.5 MoE, with hyper-connections, sparse attention, and embeddings of the last three ids."""
    writer, about, rank, streams = Writer(path, "qwen4exp", seed), "qwen4exp", 8, STREAMS * HIDDEN
    facts, (first, second) = writer.facts, blocks()
    facts.add_head_count_kv(HEADS)
    facts.add_key_length(HEAD)
    facts.add_value_length(HEAD)
    facts.add_rope_dimension_count(TURNED)
    facts.add_array(f"{about}.rope.dimension_sections", [2, 1, 1, 0])
    facts.add_vocab_size(VOCABULARY)
    delta_net_facts(writer)
    mixture(writer)
    facts.add_expert_shared_feed_forward_length(HIDDEN)
    facts.add_uint32(f"{about}.hyper_connection.count", STREAMS)
    facts.add_uint32(f"{about}.hyper_connection.low_rank", rank)
    indexer_facts(writer, HEAD, most)
    facts.add_array(f"{about}.attention.compress_ratios", [0, 4])
    _embeddings_of_three(writer, first)
    writer.embeddings()
    for prefix in ("output_hc", *(f"{block}hc_{part}" for block in (first, second) for part in ("attn", "ffn"))):
        writer.norms(prefix, "_norm", size=streams)
        writer.matrix(f"{prefix}_down.weight", streams, rank)
        writer.matrix(f"{prefix}_up.weight", rank, streams)
        if prefix != "output_hc":
            writer.matrix(f"{prefix}_inject.weight", streams, STREAMS)
    for block in (first, second):
        experts(writer, block, gated=True)
        writer.matrix(f"{block}ffn_gate_inp_shexp.weight", HIDDEN, 1)
        shared_expert(writer, block, gated=True)
    delta_net(writer, first)
    gated_attention(writer, second)
    writer.matrix(f"{second}indexer.q_proj.weight", HIDDEN, INDEXERS * HEAD)
    writer.matrix(f"{second}indexer.k_proj.weight", HIDDEN, HEAD)
    writer.norms(second, "indexer.q_norm", "indexer.k_norm", size=HEAD)
    writer.close()
    return path


def _embeddings_of_three(writer: Writer, block: str) -> None:
    """Embeddings of the last two and of the last three ids, by their hash, and a convolution over them."""
    about, facts, rows, kernel, streams = writer.facts.arch, writer.facts, 50, 3, STREAMS * HIDDEN
    numbers = {"ngram_size": 3, "heads_per_ngram": 1, "conv_kernel": kernel, "eos_token_id": TOKENS.index(STOP)}
    for name, number in numbers.items():
        facts.add_uint32(f"{about}.ple.{name}", number)
    facts.add_uint32(f"{about}.embedding_length_per_layer_input", HIDDEN // 2)
    facts.add_array(f"{about}.ple.layers", [0])
    for name, values in {
        "layer_multipliers": [3, 5, 7],
        "head_offsets": [0, rows],
        "head_vocab_sizes": [rows] * 2,
    }.items():
        facts.add_key_value(f"{about}.ple.{name}", values, gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.UINT64)
    writer.matrix("per_layer_token_embd.weight", HIDDEN // 2, 2 * rows)
    writer.matrix(f"{block}ple_key.weight", HIDDEN, streams)
    writer.matrix(f"{block}ple_value.weight", HIDDEN, HIDDEN)
    writer.norms(block, "ple_norm_key", "ple_norm_query", "ple_norm_conv", size=streams)
    writer.matrix(f"{block}ple_conv1d.weight", kernel, streams)
