"""Backends learn what passes cost while they translate, and measure nothing before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

import pytest

from redraft import Translator, Update
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import open_contexts, open_model
from redraft.captions.formats.read import prefixes
from redraft.decoding.cost import FLAT, CostCurve
from redraft.decoding.types import Draft, Provenance, Rows, Score

TEXTS = ("I have a small dog that sleeps all day.", "We went to the beach because it was hot.")


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaCpp]:
    with closing(open_model("demo-tiny", LlamaOptions(context_length=256, slots=2, threads=1, exact=True))) as backend:
        yield backend


def translated(
    model: LlamaCpp, method: str, options: Mapping[str, str | float] = {}, curve: CostCurve | None = None
) -> tuple[list[tuple[int, ...]], list[int]]:
    """The outputs of growing sentences, and the passes after each of them."""
    outputs, passes = [], []
    with Translator(model, ["de"], method=method, options=options, curve=curve) as translator:
        found = translator.translation("de")
        for utterance, text in enumerate(TEXTS):
            for seq, part in enumerate(parts := prefixes(text, 1)):
                translator.translate(Update(str(utterance), seq, part, seq == len(parts) - 1))
                outputs.append(found.output)
                passes.append(found.tally.passes)
    return outputs, passes


def test_nothing_runs_before_first_update(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[tuple[int, Score]]] = []
    score = LlamaCpp.score

    def note(backend: LlamaCpp, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        asked.append(requests)
        return score(backend, requests)

    monkeypatch.setattr(LlamaCpp, "score", note)
    with closing(open_model("demo-tiny", LlamaOptions(context_length=256, threads=1))) as backend:
        with Translator(backend, ["de"], method="redraft", hold_back=False) as translator:
            assert not asked and backend.curve() is None
            translator.translate(Update("1", 0, "I have a"))
            first = len(asked)
            assert first == translator.translation("de").tally.passes
        asked.clear()
        with Translator(backend, ["de"], method="ssbd", hold_back=False) as translator:
            translator.translate(Update("1", 0, "I have a"))
        assert len(asked) == first


def test_ids_do_not_depend_on_cost(model: LlamaCpp) -> None:
    outputs, passes = translated(model, "ssbd")
    same = {"beta": 0.2, "hidden_beta": 0.2}  # so that it gives ssbd's ids
    flat = translated(model, "redraft", same, curve=FLAT)
    assert flat == translated(model, "redraft", {**same, "cost": "flat"}) and flat[0] == outputs
    for _ in range(2):
        ids, learned = translated(model, "redraft", same)
        assert ids == outputs
        assert flat[1][-1] <= learned[-1] <= passes[-1]
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
