"""Tiny random models of transformers with tokenizers of a few tokens, and their plain greedy outputs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from redraft.backends.hf.base import TorchRows
from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.hf.model import backend_of
from redraft.backends.options import HfOptions
from redraft.decoding.types import EMPTY_DRAFT, ROOT, Draft, Provenance, Rows, Score

START, END, PAD, UNKNOWN = range(4)
SPECIAL = ("<s>", "</s>", "<pad>", "<unk>")
LETTERS = "abcdefghijklmnopqrst"
PIECES = (*SPECIAL, "\u2581", *LETTERS)
VOCABULARY = len(PIECES)
LIMIT = 16

_IDS = {"bos_token_id": START, "eos_token_id": END, "pad_token_id": PAD}
_SIZES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "init_std": 0.6,
    "forced_eos_token_id": None,
}


def tokenizer(*extra: str, plain: Sequence[str] = (), template: str = "$A </s>") -> PreTrainedTokenizerFast:
    """A SentencePiece-like tokenizer of single letters; ``extra`` are further special tokens, ``plain`` ordinary ones.

    Args:
        template: what ``add_special_tokens`` makes of a text.
    """
    vocabulary = {piece: index for index, piece in enumerate([*PIECES, *plain])}
    made = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.add_special_tokens([AddedToken(token, special=True) for token in (*SPECIAL, *extra)])
    known = [(token, made.token_to_id(token)) for token in (*SPECIAL, *extra)]
    made.post_processor = processors.TemplateProcessing(single=template, special_tokens=known)
    names = dict(zip(("bos_token", "eos_token", "pad_token", "unk_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


@cache
def qwen3(seed: int = 0) -> Any:
    """Grouped heads, normed queries and keys, rotary positions."""
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        num_hidden_layers=3,
        head_dim=8,
        max_position_embeddings=1024,
        initializer_range=0.4,
        **sizes,
        **_IDS,
    )
    return Qwen3ForCausalLM(config).eval()


@cache
def llama() -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, initializer_range=0.4, **sizes, **_IDS)).eval()


def _redrawn(model: Any, seed: int, scale: float) -> Any:
    """The model with larger weights and a head of its own, so that its outputs are no single repeated token."""
    torch.manual_seed(seed)
    model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() == 2:
                weights.copy_(torch.randn_like(weights) * scale)
    return model.eval()


@cache
def marian() -> Any:
    """Starts from padding, which it must never produce."""
    ids = {**_IDS, "decoder_start_token_id": PAD}
    config = MarianConfig(vocab_size=VOCABULARY, decoder_vocab_size=VOCABULARY, **_SIZES, **ids)
    model = _redrawn(MarianMTModel(config), seed=2, scale=1.0)
    with torch.no_grad():
        model.final_logits_bias[0, PAD] = 20.0  # without the ban it would be the favourite
    model.generation_config.bad_words_ids = [[PAD]]
    return model


@cache
def m2m100() -> Any:
    ids = {**_IDS, "decoder_start_token_id": END}
    model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=VOCABULARY, **_SIZES, **ids))
    return _redrawn(model, seed=1, scale=0.5)


@cache
def mbart() -> Any:
    torch.manual_seed(3)
    ids = {**_IDS, "decoder_start_token_id": END}
    return MBartForConditionalGeneration(MBartConfig(vocab_size=VOCABULARY, **_SIZES, **ids)).eval()


@cache
def t5() -> Any:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    ids = {**_IDS, "decoder_start_token_id": PAD}
    config = T5Config(vocab_size=VOCABULARY, tie_word_embeddings=False, **sizes, **ids)
    return _redrawn(T5ForConditionalGeneration(config), seed=2, scale=1.0)


def of_family(config: str, **settings: object) -> Any:
    """A random model of a family, with weights large enough that attention matters."""
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "head_dim": 8,
    }
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 64}
    ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    made = getattr(transformers, config)(**{**sizes, **heads, **ids, **settings})
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(made)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() == 2:
                weights.copy_(torch.randn_like(weights) * 0.3)
    return model.eval()


def greedy(model: Any, ids: Sequence[int], limit: int = LIMIT, **options: object) -> tuple[tuple[int, ...], bool]:
    """What ``generate`` makes of a prompt, or of a source, without its end token, and whether there was one."""
    options |= {"do_sample": False, "num_beams": 1, "max_new_tokens": limit}
    made = model.generate(torch.tensor([list(ids)]), **options)[0].tolist()
    made = made[1:] if model.config.is_encoder_decoder else made[len(ids) :]
    return (tuple(made[: made.index(END)]), True) if END in made else (tuple(made), False)


def prompts(count: int, length: int = 9, seed: int = 0) -> list[tuple[int, ...]]:
    """Random ids without special ones."""
    chosen = random.Random(seed)
    return [tuple(chosen.choices(range(len(SPECIAL), VOCABULARY), k=length)) for _ in range(count)]


class Watched(HfDecoder):
    """Counts the ids of every row that is read."""

    @cached_property
    def fed(self) -> list[list[int]]:
        return []

    def _forward(self, slots: Any, rows: Any) -> Any:
        self.fed.append([len(row.ids) for row in rows])
        return super()._forward(slots, rows)

    def ask(self, slot: int, prefix: Sequence[int], draft: Draft = EMPTY_DRAFT, prompt_rows: int = 1) -> Rows:
        return self.score([(slot, Score(tuple(prefix), draft, prompt_rows))])[0]


def watched(model: Any, **options: Any) -> Watched:
    """A backend for a decoder-only model that counts."""
    small: dict[str, Any] = {"context_length": 600, "slots": 4, "device": "cpu", "threads": 1}
    backend = backend_of(model, tokenizer(), "tiny", HfOptions(**(small | options)))
    backend.__class__ = Watched
    assert isinstance(backend, Watched)
    return backend


@contextmanager
def generation(model: Any, **settings: object) -> Iterator[None]:
    """Other generation settings for a while, since the models are shared."""
    before = {name: getattr(model.generation_config, name) for name in settings}
    for name, value in settings.items():
        setattr(model.generation_config, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(model.generation_config, name, value)


def chain(ids: Sequence[int]) -> Draft:
    return Draft.chain(ids, Provenance.MODEL)


def tree(tokens: Sequence[int], parents: Sequence[int]) -> Draft:
    return Draft(tuple(tokens), tuple(parents), (Provenance.MODEL,) * len(tokens))


def path_to(draft: Draft, node: int) -> list[int]:
    """Tokens from the root to a node."""
    tokens: list[int] = []
    while node != ROOT:
        tokens.insert(0, draft.tokens[node])
        node = draft.parents[node]
    return tokens


def logs(rows: Rows, node: int) -> list[float]:
    """(vocabulary,) log-probabilities after a node, by id."""
    assert isinstance(rows, TorchRows)
    return [rows.logprob(node, token) for token in range(len(rows.row(node)))]
