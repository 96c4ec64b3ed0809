"""Tiny random models of transformers to be trained, copies of those of the backend's tests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from redraft import Style
from redraft.backends.hf.model import backend_of
from redraft.backends.options import HfOptions
from redraft.decoding.types import Prompt
from redraft_train.prefixes import Ids, TranslatedSource
from redraft_train.sources import Sentence
from redraft_train.teacher import HfTeacher
from tests.backends.hf import models
from tests.backends.hf.models import END, LETTERS

CHAT = (
    "{% for message in messages %}{{ message.content }}{% if message.role == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% endfor %}"
)
FAMILIES = ("qwen3", "llama", "marian", "m2m100", "mbart", "t5")
DECODER_ONLY = FAMILIES[:2]


def teacher(family: str, chat: bool = False, languages: Sequence[str] = ("de",)) -> HfTeacher:
    """A model of its own; decoder-only ones have our plain layout, or a chat template."""
    model: Any = deepcopy(getattr(models, family)())
    tokenizer = models.tokenizer(template="<s> $A" if family in DECODER_ONLY else "$A </s>")
    if chat:
        tokenizer.chat_template = CHAT
    elif family in DECODER_ONLY:
        model.config.redraft = {"prompt": "{source}b"}
    options = HfOptions(context_length=1024 if chat else 64, slots=2, device="cpu", threads=1)
    return HfTeacher(backend_of(model, tokenizer, family, options), languages, Style())


def sentences(number: int, seed: int = 0, reference: str | None = None) -> list[Sentence]:
    """Different ones of five words, each of one letter or two."""
    chosen = random.Random(seed)
    found: dict[str, Sentence] = {}
    while len(found) < number:
        text = " ".join("".join(chosen.choices(LETTERS, k=chosen.randint(1, 2))) for _ in range(5))
        found[text] = Sentence(text, reference)
    return [*found.values()]


def translated(taught: HfTeacher, sources: Sequence[Sentence], output: Sequence[Ids]) -> list[TranslatedSource[Prompt]]:
    """Sources with given outputs."""
    return [
        TranslatedSource(source.text, "de", taught.prompt(source.text, "de"), ids, END)
        for source, ids in zip(sources, output, strict=True)
    ]
