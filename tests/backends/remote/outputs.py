"""Outputs of methods on a remote model."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from redraft import Translator, Update
from redraft.decoding.backend import Backend, Capability
from redraft.decoding.methods import all_methods

WORDS = "the cats of our house have eaten all of the fish that was left for them".split()


#: They need whole distributions or a model of their own, or keep what the target would not say.
OTHERS = {"bild", "bild-early-exit", "bild-replacement", "fly", "ssbd-bild", "sampling", "speculative-sampling", "cd"}


def stream(seed: int, sentences: int = 2) -> Iterator[Update]:
    """Growing texts, some of them corrected."""
    choose = random.Random(seed)
    for sentence in range(sentences):
        words: list[str] = []
        for seq in range(8):
            if words and choose.random() < 0.3:
                words[-1] = choose.choice(WORDS)
            words += choose.choices(WORDS, k=choose.randint(1, 2))
            yield Update(str(sentence), seq, " ".join(words), final=seq == 7)


def outputs(backend: Backend, seed: int = 0, **settings: Any) -> list[tuple[int, ...]]:
    """Ids of every update of a stream."""
    with Translator(backend, ["de"], **settings) as translator:
        found = []
        for update in stream(seed):
            (*failures, _caption) = translator.translate(update)
            assert not failures
            found.append(translator.state("de").output)
        return found


def plain_methods() -> Iterator[Any]:
    for method in all_methods().values():
        if Capability.TREES not in method.needs and method.name not in OTHERS:
            biases = ("beta", "hidden_beta", "stop")
            options: dict[str, Any] = {option.name: 0.0 for option in method.options if option.name in biases}
            if method.name == "ssbd-aasd":
                options = {"verification": "exact", "end_guard": "off"}
            yield pytest.param(method.name, options, id=method.name)
