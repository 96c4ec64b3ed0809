"""Sessions that share a real model, in 32-bit floats: their texts never mix."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.captions.events import Update
from redraft.decoding.types import Rows, Score
from tests.serve.interleaved import compare, talks

pytest.importorskip("gguf")

WORDS = "we saw her duck under the old table and it was there again in the rain".split()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.gguf_models import write_llama

    return write_llama(tmp_path_factory.mktemp("models") / "f32.gguf", facts={"redraft.prompt": "{source}<2{code}>"})


def streams(sessions: int) -> list[list[Update]]:
    chance = random.Random(0)
    sentences = [f"{number} {' '.join(chance.choices(WORDS, k=chance.randint(2, 6)))}" for number in range(sessions)]
    return talks(sentences, sessions)


def test_200_sessions(model: Path) -> None:
    found = compare(model, streams(200), ["de", "ja"], max_tokens=8)
    assert (found.finals, found.differing) == (200, 0)
    assert found.different > 150  # so that a mix-up would show
    assert found.most_requests > 20


class Brittle(LlamaCpp):
    """Fails now and then after its cache was changed, where several sessions share a pass."""

    def __init__(self, path: Path, options: LlamaOptions) -> None:
        super().__init__(path, options)
        self.chance, self.failed = random.Random(1), 0

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        rows = super().score(requests)
        if len(requests) > 1 and self.chance.random() < 0.2:
            self.failed += 1
            raise RuntimeError("the model is broken")
        return rows


def test_failing_passes(model: Path) -> None:
    opened: list[Brittle] = []

    def brittle(path: Path, options: LlamaOptions) -> LlamaCpp:
        opened.append(Brittle(path, options))
        return opened[0]

    found = compare(model, streams(40), ["de", "ja"], slots=8, max_tokens=8, backend=brittle)
    assert (found.finals, found.differing) == (40, 0)
    assert opened[0].failed > 5
