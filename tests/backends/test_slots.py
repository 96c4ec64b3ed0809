"""What a slot of llama.cpp has seen does not change its answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import LlamaOptions
from redraft.decoding.types import ROOT, Draft, Provenance, Score, top_k
from tests.gguf_models import write_llama


def test_worn_slot_answers_like_fresh_one(tmp_path: Path) -> None:
    """A slot that has seen other drafts and trees answers like one that has seen nothing."""
    path = tmp_path / "tiny.gguf"
    write_llama(path)
    options = LlamaOptions(context_length=128, slots=2, branches=6, threads=1, gpu_layers=0)
    backend = LlamaCpp(path, options)
    try:
        worn = backend.open_slot()
        prefix: tuple[int, ...] = (5, 9, 14, 20)
        for step in range(4):
            wrong, right = 30 + step, 60 + step
            tree = Draft((wrong, right, wrong, right, 40), (ROOT, ROOT, 1, 1, 3), (Provenance.MODEL,) * 5)
            before = top(backend, worn, Score(prefix, tree))
            plain = backend.open_slot()
            same(before, top(backend, plain, Score(prefix)))
            prefix = (*prefix, right, right, 50 + step)
            backend.close_slot(plain)
            same(top(backend, worn, Score(prefix, Draft.chain((70, 71), Provenance.MODEL))), fresh(backend, prefix))
            same(top(backend, worn, Score(prefix)), fresh(backend, prefix))
            rewritten = (*prefix[:2], 80 + step, *prefix[3:])
            same(top(backend, worn, Score(rewritten)), fresh(backend, rewritten))
    finally:
        backend.close()


def fresh(backend: Any, prefix: tuple[int, ...]) -> list[tuple[int, float]]:
    slot = backend.open_slot()
    found = top(backend, slot, Score(prefix))
    backend.close_slot(slot)
    return found


def top(backend: Any, slot: int, score: Score) -> list[tuple[int, float]]:
    """The best tokens after the prefix with their log-probabilities."""
    return list(top_k(backend.score([(slot, score)])[0], ROOT, 3))


def same(first: list[tuple[int, float]], second: list[tuple[int, float]]) -> None:
    """Equal but for the rounding of a 16-bit cache."""
    assert dict(first) == pytest.approx(dict(second), abs=0.05)
