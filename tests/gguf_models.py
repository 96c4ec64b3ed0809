"""Writes tiny GGUF files with random weights: what llama.cpp runs, and what this package must refuse.

Every model has the same byte-level vocabulary.  Weights are drawn large enough that the next token depends on
earlier ones and not on rounding; the models speak nonsense, but always the same nonsense.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import gguf
import numpy as np

START, STOP, TURN_END, TAG = "<s>", "</s>", "<|im_end|>", "<2de>"
HIDDEN, HEAD, LAYERS = 64, 32, 2
HEADS = HIDDEN // HEAD

#: Ids of these models' sliding windows.
WINDOW = 8

_MERGED = ["th", "the", " t", " the", "in", "ing", "er", "an", "and", " a", " and", "re", "he", "on", "ä", "ü", "日"]


def _byte_letters() -> list[str]:
    """The letter that stands for each byte in byte-level vocabularies: itself where printable, else one from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters: list[str] = []
    moved = 0
    for byte in range(256):
        letters.append(chr(byte if byte in printable else 256 + moved))
        moved += byte not in printable
    return letters


def _vocabulary() -> tuple[list[str], list[str], list[str]]:
    """Control tokens, ordinary tokens and merges."""
    letters = _byte_letters()
    ordinary, merges = list(letters), []
    for text in _MERGED:
        spelled = [letters[byte] for byte in text.encode()]
        # The pieces merged are a known beginning and the letters after it.
        for end in range(2, len(spelled) + 1):
            joined = "".join(spelled[:end])
            if joined not in ordinary:
                ordinary.append(joined)
                merges.append(f"{''.join(spelled[: end - 1])} {spelled[end - 1]}")
    return [START, STOP, TURN_END, TAG], ordinary, merges


CONTROL, ORDINARY, MERGES = _vocabulary()
TOKENS = [*CONTROL, *ORDINARY]
VOCABULARY = len(TOKENS)


#: Writes a tokenizer into a file under way, and returns how many ids it has.
Tokenizer: TypeAlias = Callable[[gguf.GGUFWriter], int]


class Writer:
    """A GGUF under way: facts of the architecture, tokenizer, random tensors."""

    def __init__(
        self,
        path: Path,
        architecture: str,
        seed: int,
        hidden: int = HIDDEN,
        heads: int = 0,
        tokenizer: Tokenizer | None = None,
        more: Sequence[str] = (),
        layers: int = LAYERS,
        forward: Sequence[int] = (),
    ) -> None:
        self.facts = gguf.GGUFWriter(str(path), architecture)
        self.hidden, self._random = hidden, np.random.default_rng(seed)
        facts = self.facts
        facts.add_context_length(512)
        facts.add_embedding_length(hidden)
        facts.add_block_count(layers)
        facts.add_feed_forward_length(forward or 2 * hidden)
        facts.add_head_count(heads or hidden // HEAD)
        facts.add_layer_norm_rms_eps(1e-6)
        facts.add_file_type(gguf.LlamaFileType.ALL_F32)
        self.vocabulary = tokenizer(facts) if tokenizer else self._add_tokenizer(more)

    def _add_tokenizer(self, more: Sequence[str]) -> int:
        control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
        self.facts.add_tokenizer_model("gpt2")
        self.facts.add_tokenizer_pre("gpt-2")
        self.facts.add_token_list([*TOKENS, *more])
        self.facts.add_token_types([control] * len(CONTROL) + [normal] * len([*ORDINARY, *more]))
        self.facts.add_token_merges(MERGES)
        self.facts.add_bos_token_id(TOKENS.index(START))
        self.facts.add_eos_token_id(TOKENS.index(STOP))
        self.facts.add_add_bos_token(True)
        self.facts.add_add_eos_token(False)
        return VOCABULARY + len(more)

    def matrix(self, name: str, inputs: int, outputs: int, scale: float = 1.0) -> None:
        """A weight whose outputs vary by about ``scale`` when its inputs vary by one."""
        self.tensor(name, self._random.normal(size=(outputs, inputs)) * scale / np.sqrt(inputs))

    def matrices(self, name: str, inputs: int, outputs: int, count: int) -> None:
        """As many matrices in one tensor, one of each expert."""
        self.tensor(name, self._random.normal(size=(count, outputs, inputs)) / np.sqrt(inputs))

    def norms(self, prefix: str, *names: str, size: int | None = None) -> None:
        for name in names:
            self.tensor(f"{prefix}{name}.weight", np.ones(size or self.hidden))

    def tensor(self, name: str, values: np.ndarray) -> None:
        self.facts.add_tensor(name, values.astype(np.float32))

    def embeddings(self, tied: bool = False) -> None:
        if tied:
            self.matrix("token_embd.weight", self.hidden, self.vocabulary, scale=0.3)
            return
        self.tensor("token_embd.weight", self._random.normal(size=(self.vocabulary, self.hidden)))
        self.matrix("output.weight", self.hidden, self.vocabulary, scale=3)

    def attention(self, prefix: str, output: str = "attn_output", queries: int = 0, keys: int = 0) -> None:
        queries, keys = queries or self.hidden, keys or self.hidden
        self.matrix(f"{prefix}attn_q.weight", self.hidden, queries, 2.0)
        self.matrix(f"{prefix}attn_k.weight", self.hidden, keys, 2.0)
        self.matrix(f"{prefix}attn_v.weight", self.hidden, keys, 2.0)
        self.matrix(f"{prefix}{output}.weight", queries, self.hidden, 2.0)

    def feed_forward(self, prefix: str) -> None:
        self.matrix(f"{prefix}ffn_gate.weight", self.hidden, 2 * self.hidden)
        self.matrix(f"{prefix}ffn_up.weight", self.hidden, 2 * self.hidden)
        self.matrix(f"{prefix}ffn_down.weight", 2 * self.hidden, self.hidden)

    def close(self) -> None:
        self.facts.write_header_to_file()
        self.facts.write_kv_data_to_file()
        self.facts.write_tensors_to_file()
        self.facts.close()


def blocks(prefix: str = "blk", layers: int = LAYERS) -> list[str]:
    """The beginnings of the names of each layer's tensors."""
    return [f"{prefix}.{index}." for index in range(layers)]


def write_llama(
    path: Path,
    seed: int = 1,
    facts: Mapping[str, str] | None = None,
    hidden: int = HIDDEN,
    more: Sequence[str] = (),
) -> Path:
    """A decoder-only transformer of the Llama shape, with further ``facts`` in its metadata and ``more`` tokens.

    Formats of the Q4_K family need a ``hidden`` size divisible by 256; where it is not, llama.cpp takes another one.
    """
    writer = Writer(path, "llama", seed, hidden, more=more)
    for key, value in (facts or {}).items():
        writer.facts.add_string(key, value)
    writer.facts.add_head_count_kv(hidden // HEAD)
    writer.facts.add_rope_dimension_count(HEAD)
    writer.embeddings()
    writer.norms("", "output_norm")
    for block in blocks():
        writer.norms(block, "attn_norm", "ffn_norm")
        writer.attention(block)
        writer.feed_forward(block)
    writer.close()
    return path


def write_sliding_window(path: Path, seed: int = 2) -> Path:
    """A Gemma 2 shape: every other layer sees `WINDOW` ids back only."""
    writer = Writer(path, "gemma2", seed)
    writer.facts.add_head_count_kv(HEADS)
    writer.facts.add_key_length(HEAD)
    writer.facts.add_value_length(HEAD)
    writer.facts.add_sliding_window(WINDOW)
    writer.facts.add_attn_logit_softcapping(50.0)
    writer.facts.add_final_logit_softcapping(30.0)
    # Gemma multiplies embeddings by the root of their size and uses them again as the output layer: they are kept
    # small, so that the model does not repeat the last token, and the last norm large, so that it decides.
    writer.matrix("token_embd.weight", HIDDEN, VOCABULARY, scale=0.3)
    writer.tensor("output_norm.weight", np.full(HIDDEN, 10.0))
    for block in blocks():
        writer.norms(block, "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
        writer.attention(block)
        writer.feed_forward(block)
    writer.close()
    return path


@dataclass(frozen=True)
class Heads:
    """How a family attends: query heads, key/value heads, size of each, ids that every other layer sees back."""

    architecture: str
    heads: int
    kv_heads: int
    head: int
    window: int = 0
    hidden: int = 256


#: Heads of models that people bring, with the queries of each key and the sizes that the published ones have.
FAMILIES = {
    "Qwen3": Heads("qwen3", 4, 2, 128),
    "Gemma 2": Heads("gemma2", 2, 1, 256, 24),
    "Gemma 3": Heads("gemma3", 4, 1, 256, 24),
    "Llama 3": Heads("llama", 8, 2, 64),
    "Qwen2.5": Heads("qwen2", 14, 2, 64, hidden=896),
    "Phi-3": Heads("phi3", 8, 8, 96, hidden=768),
    "Command-R": Heads("command-r", 4, 1, 128, hidden=512),
    "heads of 80": Heads("llama", 4, 4, 80),
}
_NORMS = {
    "gemma2": ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"),
    "gemma3": ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"),
    "command-r": ("attn_norm",),
}


def write_family(path: Path, shape: Heads, seed: int = 8, tokenizer: Tokenizer | None = None) -> Path:
    """A model of two layers with the heads of a family; ``tokenizer`` writes one and returns how many ids it has."""
    hidden, queries, keys = shape.hidden, shape.heads * shape.head, shape.kv_heads * shape.head
    writer = Writer(path, shape.architecture, seed, hidden, shape.heads, tokenizer)
    facts = writer.facts
    facts.add_head_count_kv(shape.kv_heads)
    facts.add_key_length(shape.head)
    facts.add_value_length(shape.head)
    facts.add_rope_dimension_count(shape.head)
    facts.add_layer_norm_eps(1e-6)
    facts.add_vocab_size(writer.vocabulary)
    if shape.window:
        facts.add_sliding_window(shape.window)
    if shape.architecture == "gemma2":
        facts.add_attn_logit_softcapping(50.0)
        facts.add_final_logit_softcapping(30.0)
    if shape.architecture == "command-r":
        facts.add_logit_scale(1.0)
    # Tied weights are kept small, so that a model does not repeat its last token, and the last norm large.
    tied = shape.architecture in {"gemma2", "gemma3", "command-r"}
    writer.embeddings(tied)
    writer.tensor("output_norm.weight", np.full(hidden, 10.0 if tied else 1.0))
    for block in blocks():
        writer.norms(block, *_NORMS.get(shape.architecture, ("attn_norm", "ffn_norm")))
        if shape.architecture in {"qwen3", "gemma3"}:
            writer.norms(block, "attn_q_norm", "attn_k_norm", size=shape.head)
        if shape.architecture == "phi3":
            writer.matrix(f"{block}attn_qkv.weight", hidden, queries + 2 * keys, 2.0)
            writer.matrix(f"{block}attn_output.weight", queries, hidden, 2.0)
            writer.matrix(f"{block}ffn_up.weight", hidden, 4 * hidden)
            writer.matrix(f"{block}ffn_down.weight", 2 * hidden, hidden)
            continue
        writer.attention(block, queries=queries, keys=keys)
        if shape.architecture == "qwen2":
            for name, size in (("q", queries), ("k", keys), ("v", keys)):
                writer.tensor(f"{block}attn_{name}.bias", np.zeros(size))
        writer.feed_forward(block)
    writer.close()
    return path


def split(source: Path, folder: Path, tensors: int = 5) -> list[Path]:
    """Divide a model into parts of so many tensors as llama-gguf-split does; return their paths."""
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(str(folder / source.name), architecture, split_max_tensors=tensors)
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            nested = field.types[-1] if field.types[0] is gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=nested)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(folder.glob(f"{source.stem}-*-of-*.gguf"))


#: Inner size, size of the state, rank of the time step and kernel of a Mamba mixer.
_INNER, _STATE, _RANK, _KERNEL = 2 * HIDDEN, 8, 4, 4


def mamba_facts(writer: Writer) -> None:
    """The sizes of Mamba mixers."""
    writer.facts.add_ssm_conv_kernel(_KERNEL)
    writer.facts.add_ssm_inner_size(_INNER)
    writer.facts.add_ssm_state_size(_STATE)
    writer.facts.add_ssm_time_step_rank(_RANK)


def mamba(writer: Writer, block: str, *, normed: bool = False) -> None:
    """A Mamba mixer; Jamba's normalises what it selects."""
    writer.matrix(f"{block}ssm_in.weight", HIDDEN, 2 * _INNER)
    writer.matrix(f"{block}ssm_conv1d.weight", _KERNEL, _INNER)
    writer.tensor(f"{block}ssm_conv1d.bias", np.zeros(_INNER))
    writer.matrix(f"{block}ssm_x.weight", _INNER, _RANK + 2 * _STATE)
    if normed:
        writer.norms(block, "ssm_dt_norm", size=_RANK)
        writer.norms(block, "ssm_b_norm", "ssm_c_norm", size=_STATE)
    writer.matrix(f"{block}ssm_dt.weight", _RANK, _INNER)
    writer.tensor(f"{block}ssm_dt.bias", np.zeros(_INNER))
    writer.tensor(f"{block}ssm_a", -np.ones((_INNER, _STATE)))
    writer.tensor(f"{block}ssm_d", np.ones(_INNER))
    writer.matrix(f"{block}ssm_out.weight", _INNER, HIDDEN)


def write_recurrent(path: Path, seed: int = 3) -> Path:
    """A Mamba shape: its memory is a state, which sums up all ids."""
    writer = Writer(path, "mamba", seed)
    mamba_facts(writer)
    writer.embeddings()
    writer.norms("", "output_norm")
    for block in blocks():
        writer.norms(block, "attn_norm")
        mamba(writer, block)
    writer.close()
    return path


def write_encoder_decoder(path: Path, seed: int = 5) -> Path:
    """A T5 shape."""
    buckets = 8
    writer = Writer(path, "t5", seed)
    writer.facts.add_key_length(HEAD)
    writer.facts.add_value_length(HEAD)
    writer.facts.add_relative_attn_buckets_count(buckets)
    writer.facts.add_decoder_start_token_id(TOKENS.index(START))
    writer.embeddings()
    writer.norms("", "enc.output_norm", "dec.output_norm")
    for block in (*blocks("enc.blk"), *blocks("dec.blk")):
        writer.norms(block, "attn_norm", "ffn_norm")
        writer.attention(block, "attn_o")
        writer.feed_forward(block)
        writer.matrix(f"{block}attn_rel_b.weight", HEADS, buckets)
    for block in blocks("dec.blk"):
        writer.norms(block, "cross_attn_norm")
        for name in ("cross_attn_q", "cross_attn_k", "cross_attn_v", "cross_attn_o"):
            writer.matrix(f"{block}{name}.weight", HIDDEN, HIDDEN)
    writer.close()
    return path


def write_embedder(path: Path, seed: int = 6) -> Path:
    """A BERT shape, which makes embeddings of texts and writes nothing."""
    writer = Writer(path, "bert", seed)
    writer.facts.add_layer_norm_eps(1e-6)
    writer.facts.add_causal_attention(False)
    writer.facts.add_pooling_type(gguf.PoolingType.MEAN)
    writer.facts.add_token_type_count(2)
    writer.matrix("token_embd.weight", HIDDEN, VOCABULARY)
    writer.matrix("token_types.weight", HIDDEN, 2)
    writer.matrix("position_embd.weight", HIDDEN, 512)
    writer.norms("", "token_embd_norm")
    writer.tensor("token_embd_norm.bias", np.zeros(HIDDEN))
    for block in blocks():
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.matrix(f"{block}{name}.weight", HIDDEN, HIDDEN)
            writer.tensor(f"{block}{name}.bias", np.zeros(HIDDEN))
        for name, inputs, outputs in (("ffn_up", HIDDEN, 2 * HIDDEN), ("ffn_down", 2 * HIDDEN, HIDDEN)):
            writer.matrix(f"{block}{name}.weight", inputs, outputs)
            writer.tensor(f"{block}{name}.bias", np.zeros(outputs))
        for name in ("attn_output_norm", "layer_output_norm"):
            writer.norms(block, name)
            writer.tensor(f"{block}{name}.bias", np.zeros(HIDDEN))
    writer.close()
    return path


#: Architectures that have an encoder or say nothing, by the word that the refusal must contain.
UNFIT: Sequence[tuple[str, Callable[[Path], Path]]] = (
    ("encoder-decoder", write_encoder_decoder),
    ("embeddings", write_embedder),
)
