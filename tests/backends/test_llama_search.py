"""The cache of a search: its rows are those of the model, and the slots do not notice it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from redraft import Translator, Update
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import LlamaOptions
from redraft.decoding.backend import Capability
from redraft.decoding.drafters import Tree
from redraft.decoding.method import Value
from redraft.decoding.search import MOST
from redraft.decoding.types import ROOT, Draft, Provenance, Rows, Score, Spare, top_k
from redraft.errors import CapabilityError, ContextOverflow
from tests.backends.test_llamacpp import IDS, Ids, Watched
from tests.gguf_models import write_llama

OPTIONS = LlamaOptions(context_length=256, slots=2, threads=1, gpu_layers=0)
SPARE = Spare(1.0, 1)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("models") / "f32.gguf")


def hypotheses(*paths: Ids) -> Draft:
    tree = Tree(MOST + 1)
    for each in paths:
        tree.add_path(ROOT, ((token, Provenance.MODEL) for token in each))
    return tree.draft(leaves_only=True)


def logits(backend: LlamaCpp, slot: int, ids: Ids) -> list[tuple[int, float]]:
    return top_k(backend.score([(slot, Score(ids))])[0], ROOT, 5)


def test_rows(path: Path) -> None:
    """Of two searches in turn, with hypotheses that grow, merge and begin again."""
    backend, fresh = Watched(path, OPTIONS), LlamaCpp(path, OPTIONS)
    assert Capability.HYPOTHESES in backend.capabilities and Capability.TREES not in backend.capabilities
    slots, alone = [backend.open_slot(), backend.open_slot()], fresh.open_slot()
    prompts = IDS[:20], IDS[40:70]
    for slot, prompt in zip(slots, prompts, strict=True):
        logits(backend, slot, prompt)
    a, b, c = IDS[100], IDS[101], IDS[102]
    for turn in range(3):
        slot, prompt = slots[turn % 2], prompts[turn % 2]
        for prefix, draft in (
            (prompt, hypotheses()),
            (prompt, hypotheses((a,), (b,))),
            (prompt, hypotheses((a, b), (a, c), (b, c))),
            ((*prompt, a), hypotheses((b, a), (c, a), (c, b), (c, c))),
            ((*prompt, a, c), hypotheses((a, a))),
        ):
            (rows,) = backend.score([(slot, Score(prefix, draft, spare=SPARE))])
            leaves = sorted(set(range(len(draft))) - set(draft.parents)) or [ROOT]
            found = {node: dict(top_k(rows, node, 5)) for node in leaves}
            for node, best in found.items():
                ids = prefix + tuple(draft.tokens[each] for each in draft.path(node))
                expected = fresh.score([(alone, Score(ids))])[0]
                assert best == pytest.approx({token: expected.logprob(ROOT, token) for token in best}, abs=0.05)
    fed = [len(feed) for feed in backend.feeds]
    assert sum(fed) == len(prompts[0]) + len(prompts[1]), "nothing of a search is computed in a slot"
    backend.close()
    fresh.close()


def test_slots_do_not_notice(path: Path) -> None:
    """Bit for bit."""
    found = []
    for searches in (False, True):
        backend = LlamaCpp(path, OPTIONS)
        slot = backend.open_slot()
        rows = [logits(backend, slot, IDS[:30])]
        if searches:
            for draft in (hypotheses(), hypotheses((1,), (2,)), hypotheses((1, 2), (2, 3))):
                backend.score([(slot, Score(IDS[:30], draft, spare=SPARE))])
        rows += [logits(backend, slot, IDS[:length]) for length in (31, 35, 20)]
        found.append(rows)
        backend.close()
    assert found[0] == found[1]


def test_prompt_that_is_not_copied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft.backends.llama_context.LlamaContext.copy", lambda *_: False)
    backend = LlamaCpp(path, OPTIONS)
    slot = backend.open_slot()
    prompt = IDS[:150]
    expected = dict(logits(backend, slot, prompt))
    (rows,) = backend.score([(slot, Score(prompt, hypotheses(), spare=SPARE))])
    assert dict(top_k(rows, ROOT, 5)) == pytest.approx(expected, abs=0.05)
    backend.close()


def test_what_cannot_be_searched(path: Path) -> None:
    backend = LlamaCpp(path, OPTIONS)
    slots = [backend.open_slot(), backend.open_slot()]
    score = Score(IDS[:9], hypotheses(), spare=SPARE)
    with pytest.raises(CapabilityError, match="searches for one slot at a time"):
        backend.score([(slot, score) for slot in slots])
    with pytest.raises(ContextOverflow):
        backend.score([(slots[0], Score((*IDS[:250], *IDS[:50]), hypotheses(), spare=SPARE))])
    assert backend.score([(slots[0], score)])
    backend.close()
    exact = LlamaCpp(path, LlamaOptions(context_length=256, threads=1, gpu_layers=0, exact=True))
    assert Capability.HYPOTHESES not in exact.capabilities
    with pytest.raises(CapabilityError, match="if at all"):
        exact.score([(exact.open_slot(), score)])
    exact.close()


def test_one_search_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches of several languages do not take turns, in which each would compute its cache again."""
    asked: list[tuple[int, bool]] = []
    score_ = LlamaCpp.score

    def watched(self: LlamaCpp, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        asked.extend((slot, not score.draft) for slot, score in requests if score.is_aside)
        return score_(self, requests)

    monkeypatch.setattr(LlamaCpp, "score", watched)
    options: dict[str, Value] = {"doubt": 0, "search": 60_000}
    with Translator.open(
        "demo-tiny", to=["de", "ja", "zh"], options=options, engine={"context_length": 512}
    ) as translator:
        translator.translate(Update("1", 0, "I have a dog"))
        translator.translate(Update("1", 1, "I have a dog and two cats.", final=True))
    assert sum(begins for _, begins in asked) == 3 and len(asked) > 12
    assert sum(before != after for (before, _), (after, _) in pairwise(asked)) == 2


def test_closed_slot_leaves_nothing(path: Path) -> None:
    backend = LlamaCpp(path, OPTIONS)
    slot = backend.open_slot()
    backend.score([(slot, Score(IDS[:9], hypotheses((1,), (2,)), spare=SPARE))])
    assert backend._search and backend._search.ids and backend._search.branches
    backend.close_slot(slot)
    assert not backend._search.ids and not backend._search.branches
    backend.close()
