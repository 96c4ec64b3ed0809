"""Backends learn what passes cost while they translate, and measure nothing before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from redraft import Translator, Update
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import open_contexts, open_model
from redraft.backends.options import LlamaOptions
from redraft.captions.formats.read import prefixes
from redraft.decoding.types import Draft, Provenance, Rows, Score

TEXTS = ("I have a small dog that sleeps all day.", "We went to the beach because it was hot.")


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaCpp]:
    with closing(open_model("demo-tiny", LlamaOptions(context_length=256, slots=2, threads=1, exact=True))) as backend:
        yield backend


def translated(model: LlamaCpp) -> None:
    """Translate growing sentences."""
    with Translator(model, ["de"]) as translator:
        for utterance, text in enumerate(TEXTS):
            for seq, part in enumerate(parts := prefixes(text, 1)):
                translator.translate(Update(str(utterance), seq, part, seq == len(parts) - 1))


def test_nothing_runs_before_first_update(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[tuple[int, Score]]] = []
    score = LlamaCpp.score

    def note(backend: LlamaCpp, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        asked.append(requests)
        return score(backend, requests)

    monkeypatch.setattr(LlamaCpp, "score", note)
    opened = closing(open_model("demo-tiny", LlamaOptions(context_length=256, threads=1)))
    with opened as backend, Translator(backend, ["de"]) as translator:
        assert not asked and backend.curve() is None
        translator.translate(Update("1", 0, "I have a"))
        assert len(asked) == translator.state("de").tally.passes


def test_passes_are_learned_from(model: LlamaCpp) -> None:
    translated(model)
    curve = model.curve()
    assert curve is not None and 0 < curve(1) <= curve(8) <= curve(32)


def test_passes_over_prompts_do_not_count() -> None:
    with closing(open_model("demo-tiny", LlamaOptions(context_length=256, slots=2, threads=1))) as backend:
        slots = backend.open_slot(), backend.open_slot()
        prompt, draft = tuple(range(300, 340)), Draft.chain(range(300, 305), Provenance.PREVIOUS)
        backend.score([(slots[0], Score(prompt)), (slots[1], Score(prompt))])
        backend.score([(slots[0], Score((*prompt, 300)))])
        assert backend.curve() is None
        backend.score([(slots[0], Score((*prompt, 300, 301))), (slots[1], Score((*prompt, 300), draft))])
        curve = backend.curve()
        assert curve is not None and curve.sizes == (1, 7)


def test_contexts_of_model_learn_together() -> None:
    first, second = open_contexts("demo-tiny", LlamaOptions(context_length=256, threads=1), 2)
    with closing(first), closing(second):
        for backend, draft in ((first, ()), (second, (300, 301))):
            slot = backend.open_slot()
            backend.score([(slot, Score((300,), Draft.chain(draft, Provenance.PREVIOUS)))])
        assert first.curve() == second.curve() is not None
