"""Parts that several tiny models with recurrent layers have in common."""

from __future__ import annotations

from collections.abc import Sequence

import gguf
import numpy as np

from tests.gguf_models import HEAD, HEADS, HIDDEN, VOCABULARY, Writer

#: Experts of a mixture, and how many of them compute a token.
EXPERTS, USED = 4, 2
#: Inner size, size of the state, heads, groups and kernel of a Mamba-2 mixer.
INNER, STATE, MIXERS, GROUPS, KERNEL = 2 * HIDDEN, 16, 4, 1, 4
#: Size of a compressed key and value, and of the part of a key that turns with its position.
RANK, TURNED = 16, 8
#: Residual streams of hyper-connections.
STREAMS = 4


def mamba2_facts(writer: Writer, groups: int = GROUPS) -> None:
    """The sizes of Mamba-2 mixers."""
    writer.facts.add_ssm_conv_kernel(KERNEL)
    writer.facts.add_ssm_inner_size(INNER)
    writer.facts.add_ssm_state_size(STATE)
    writer.facts.add_ssm_time_step_rank(MIXERS)
    writer.facts.add_ssm_group_count(groups)


def mamba2(writer: Writer, block: str) -> None:
    """A Mamba-2 mixer."""
    mixed = INNER + 2 * GROUPS * STATE
    writer.matrix(f"{block}ssm_in.weight", HIDDEN, INNER + mixed + MIXERS)
    writer.matrix(f"{block}ssm_conv1d.weight", KERNEL, mixed)
    writer.tensor(f"{block}ssm_conv1d.bias", np.zeros(mixed))
    writer.tensor(f"{block}ssm_dt.bias", np.zeros(MIXERS))
    writer.tensor(f"{block}ssm_a", -np.ones((MIXERS, 1)) / 20)
    writer.tensor(f"{block}ssm_d", np.ones((MIXERS, 1)))
    writer.tensor(f"{block}ssm_norm.weight", np.ones((GROUPS, INNER // GROUPS)))
    writer.matrix(f"{block}ssm_out.weight", INNER, HIDDEN, 2.0)


def mixture(writer: Writer) -> None:
    """The sizes of experts."""
    writer.facts.add_expert_count(EXPERTS)
    writer.facts.add_expert_used_count(USED)
    writer.facts.add_expert_feed_forward_length(HIDDEN)


def experts(writer: Writer, block: str, gated: bool, biased: bool = False, width: int = HIDDEN) -> None:
    """Experts, which read and write ``width`` values."""
    writer.matrix(f"{block}ffn_gate_inp.weight", HIDDEN, EXPERTS)
    if biased:
        writer.tensor(f"{block}exp_probs_b.bias", np.zeros(EXPERTS))
    for name in ("gate", "up") if gated else ("up",):
        writer.matrices(f"{block}ffn_{name}_exps.weight", width, HIDDEN, EXPERTS)
    writer.matrices(f"{block}ffn_down_exps.weight", HIDDEN, width, EXPERTS)


def shared_expert(writer: Writer, block: str, gated: bool) -> None:
    """An expert that computes every token."""
    for name in ("gate", "up", "down") if gated else ("up", "down"):
        writer.matrix(f"{block}ffn_{name}_shexp.weight", HIDDEN, HIDDEN)


#: Heads of keys and of values in a gated delta net.
_KEYS, _VALUES = 2, 4


def delta_net_facts(writer: Writer) -> None:
    """The sizes of gated delta nets, with attention in every second layer."""
    writer.facts.add_ssm_conv_kernel(KERNEL)
    writer.facts.add_ssm_inner_size(STATE * _VALUES)
    writer.facts.add_ssm_state_size(STATE)
    writer.facts.add_ssm_time_step_rank(_VALUES)
    writer.facts.add_ssm_group_count(_KEYS)
    writer.facts.add_uint32(f"{writer.facts.arch}.full_attention_interval", 2)


def delta_net(writer: Writer, block: str, joined: bool = False) -> None:
    """A gated delta net; Qwen3-Next joins two of its matrices."""
    inner, mixed = STATE * _VALUES, STATE * (2 * _KEYS + _VALUES)
    writer.matrix(f"{block}attn_qkv.weight", HIDDEN, mixed)
    writer.matrix(f"{block}attn_gate.weight", HIDDEN, inner)
    writer.matrix(f"{block}ssm_conv1d.weight", KERNEL, mixed)
    writer.tensor(f"{block}ssm_dt.bias", np.zeros(_VALUES))
    writer.tensor(f"{block}ssm_a", -np.ones(_VALUES) / 20)
    for name in ("ssm_ba",) if joined else ("ssm_beta", "ssm_alpha"):
        writer.matrix(f"{block}{name}.weight", HIDDEN, (1 + joined) * _VALUES)
    writer.norms(block, "ssm_norm", size=STATE)
    writer.matrix(f"{block}ssm_out.weight", inner, HIDDEN, 2.0)


def gated_attention(writer: Writer, block: str) -> None:
    """Attention with a gate beside each query."""
    writer.matrix(f"{block}attn_q.weight", HIDDEN, 2 * HIDDEN, 2.0)
    for name in ("attn_k", "attn_v", "attn_output"):
        writer.matrix(f"{block}{name}.weight", HIDDEN, HIDDEN, 2.0)
    writer.norms(block, "attn_q_norm", "attn_k_norm", size=HEAD)


def latent_facts(writer: Writer, turned: int = TURNED) -> None:
    """The sizes of channel-wise delta attention, and of the attention with compressed keys in the second layer."""
    facts = writer.facts
    facts.add_head_count_kv([0, 1])
    facts.add_key_length(RANK + turned)
    facts.add_value_length(RANK)
    facts.add_key_length_mla(HEAD + turned)
    facts.add_value_length_mla(HEAD)
    facts.add_kv_lora_rank(RANK)
    facts.add_rope_dimension_count(turned)
    facts.add_vocab_size(VOCABULARY)
    facts.add_ssm_conv_kernel(KERNEL)
    facts.add_kda_head_dim(HEAD)
    mixture(writer)
    facts.add_expert_shared_count(1)
    facts.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)


def channel_delta(writer: Writer, block: str, gates: Sequence[str], decays: Sequence[int]) -> None:
    """Delta attention with a decay for each channel.

    ``gates`` are the matrices before the decay and the output, those with ``_b`` behind a narrow one with ``_a``;
    ``decays`` is the shape of the decays.
    """
    writer.attention(block)
    for name in "qkv":
        writer.tensor(f"{block}ssm_conv1d_{name}.weight", np.full((1, HIDDEN, 1, KERNEL), 0.3))
    for gate in gates:
        narrow = f"{gate[0]}_b" in gates and not gate.endswith("_b")
        writer.matrix(f"{block}ssm_{gate}.weight", HEAD if gate.endswith("_b") else HIDDEN, HEAD if narrow else HIDDEN)
    writer.matrix(f"{block}ssm_beta.weight", HIDDEN, HEADS)
    writer.tensor(f"{block}ssm_a", -np.ones(decays) / 20)
    writer.tensor(f"{block}ssm_dt.bias", np.zeros(HIDDEN))
    writer.norms(block, "ssm_norm", size=HEAD)


def latent_attention(writer: Writer, block: str, turned: int = TURNED, compressed: bool = False) -> None:
    """Attention with one compressed key and value; queries may be ``compressed`` too."""
    writer.norms(block, "attn_kv_a_norm", size=RANK)
    queries = HEADS * (HEAD + turned)
    if compressed:
        compressed_queries(writer, block, queries)
    else:
        writer.matrix(f"{block}attn_q.weight", HIDDEN, queries, 2.0)
    writer.matrix(f"{block}attn_kv_a_mqa.weight", HIDDEN, RANK + turned, 2.0)
    writer.matrices(f"{block}attn_k_b.weight", HEAD, RANK, HEADS)
    writer.matrices(f"{block}attn_v_b.weight", RANK, HEAD, HEADS)
    writer.matrix(f"{block}attn_output.weight", HEADS * HEAD, HIDDEN, 2.0)


def compressed_queries(writer: Writer, block: str, queries: int) -> None:
    """Queries through a narrow layer."""
    writer.matrix(f"{block}attn_q_a.weight", HIDDEN, RANK)
    writer.norms(block, "attn_q_a_norm", size=RANK)
    writer.matrix(f"{block}attn_q_b.weight", RANK, queries, 2.0)


def hyper_facts(writer: Writer) -> None:
    """The number of residual streams, and how they are mixed."""
    about = writer.facts.arch
    writer.facts.add_uint32(f"{about}.hyper_connection.count", STREAMS)
    writer.facts.add_uint32(f"{about}.hyper_connection.sinkhorn_iterations", 3)
    writer.facts.add_float32(f"{about}.hyper_connection.epsilon", 1e-6)


def hyper_connections(writer: Writer, *prefixes: str, mixed: int, scales: int) -> None:
    """What mixes residual streams."""
    for prefix in prefixes:
        writer.matrix(f"{prefix}_fn.weight", STREAMS * HIDDEN, mixed)
        writer.tensor(f"{prefix}_base.weight", np.zeros(mixed))
        writer.tensor(f"{prefix}_scale.weight", np.ones(scales))


#: Heads of an indexer, so many that none of its scores is 0 and equals another.
INDEXERS = 16


def indexer_facts(writer: Writer, size: int, most: int) -> None:
    """The heads and the size of an indexer, which chooses at most so many ids to attend to."""
    writer.facts.add_indexer_head_count(INDEXERS)
    writer.facts.add_indexer_key_length(size)
    writer.facts.add_indexer_top_k(most)
