"""The tests of the engine must be able to fail: every deliberate mistake in it is noticed by a check.

A mistake replaces a function or a class that the engine calls. A check compares the engine with greedy decoding written
without it, ids and passes; it must hold for the engine as it stands, and fail with every mistake.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redraft.backends.llama_context import LlamaContext
from redraft.backends.llama_slot import LlamaSlot
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.decode import _until_end, decode
from redraft.decoding.drafters.previous import PreviousOutput
from redraft.decoding.drive import run
from redraft.decoding.rules.exact import ChooseChild, Exact, walk
from redraft.decoding.types import ROOT, Asking, Context, Draft, Output, Provenance, Rows, Score, Verdict, common_prefix
from redraft.errors import RedraftError
from tests.fakes import RandomModel, greedy
from tests.gguf_models import write_llama

LIMIT = 12
Check = Callable[[], None]
#: Makes a mistake by patching a function or a class.
Mistake = Callable[[pytest.MonkeyPatch], None]


class Tree:
    """Drafts a random tree before every pass, some of whose paths are what greedy decoding says."""

    def __init__(self, expected: list[int], seed: int) -> None:
        self._expected, self._random = expected, random.Random(seed)

    def propose(self, context: Context) -> Asking[Draft]:
        yield from ()
        right = self._expected[len(context.output) : len(context.output) + 3]
        tokens: list[int] = []
        parents: list[int] = []
        trunk = ROOT
        for token in right:
            siblings = [(token + 1 + wrong) % 12 for wrong in range(self._random.randrange(3))]
            siblings.insert(self._random.randint(0, len(siblings)), token)
            tokens += siblings
            parents += [trunk] * len(siblings)
            trunk = len(tokens) - len(siblings) + siblings.index(token)
        return Draft(tuple(tokens), tuple(parents), (Provenance.GENERATED,) * len(tokens))

    def observe(self, draft: Draft, rows: object, verdict: Verdict) -> None:
        pass


def check_chains() -> None:
    """Random drafts, some with an end token: greedy's ids, one pass less for every token accepted."""
    for seed in range(40):
        generator = random.Random(seed)
        model, prompt = RandomModel(seed), (1, 2, 3)
        expected = greedy(model, prompt, LIMIT)
        draft = tuple(expected[: generator.randrange(LIMIT)] + [generator.randrange(12) for _ in range(5)])
        if seed % 4 == 0:
            draft = (*expected, 0, 5, 6)
        asking = decode(prompt, PreviousOutput(), Exact(), previous=draft, end_tokens=model.end_tokens, limit=LIMIT)
        check(run(asking, model, 0), expected)


def check_trees() -> None:
    """Random trees around greedy's path: its ids in one pass for every four tokens."""
    for seed in range(40):
        model, prompt = RandomModel(seed, end_bias=-100), (1, 2, 3)
        expected = greedy(model, prompt, LIMIT)
        asking = decode(prompt, Tree(expected, seed), Exact(), end_tokens=model.end_tokens, limit=LIMIT)
        output = run(asking, model, 0)
        check(output, expected)
        assert output.passes == LIMIT // 4


def check(output: Output, expected: list[int]) -> None:
    assert list(output.tokens) == expected
    assert output.finished == (len(expected) < LIMIT)
    assert output.passes == len(expected) + output.finished - output.accepted


def test_engine_as_it_stands() -> None:
    check_chains()
    check_trees()


def judge(change: Callable[[Verdict], Verdict]) -> Mistake:
    """A rule with changed verdicts."""
    right = Exact.judge
    return lambda patch: patch.setattr(Exact, "judge", lambda rule, draft, rows: change(right(rule, draft, rows)))


def of_the_loop(name: str, wrong: Any) -> Mistake:
    return lambda patch: patch.setattr(f"redraft.decoding.decode.{name}", wrong)


def lost_bonus(verdict: Verdict) -> Verdict:
    return replace(verdict, token=None) if verdict.accepted else verdict


def cut_short(verdict: Verdict) -> Verdict:
    return replace(verdict, accepted=verdict.accepted[:1])


def without_last(prefix: tuple[int, ...], *rest: Any, **more: Any) -> Score:
    return Score(prefix[:-1] if len(prefix) > 3 else prefix, *rest, **more)


def more_room(prompt: Any, output: Any, previous: Any, room: int, *rest: Any) -> Context:
    return Context(prompt, output, previous, room + 2, *rest)


def unchecked_in_drafts(output: tuple[int, ...], end_tokens: frozenset[int], line_end: Any) -> Any:
    return (output[:-1], True) if output[-1] in end_tokens else (output, False)


def unchecked_after_drafts(output: tuple[int, ...], end_tokens: frozenset[int], line_end: Any) -> Any:
    before, finished = _until_end(output[:-1], end_tokens, line_end)
    return (before, True) if finished else (output, False)


def shown(output: tuple[int, ...], end_tokens: frozenset[int], line_end: Any) -> Any:
    before, finished = _until_end(output, end_tokens, line_end)
    return output[: len(before) + finished], finished


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(judge(lost_bonus), id="a lost bonus token"),
        pytest.param(judge(cut_short), id="a draft that is scored but not kept"),
        pytest.param(of_the_loop("_until_end", unchecked_in_drafts), id="an unchecked end token in a draft"),
        pytest.param(of_the_loop("_until_end", unchecked_after_drafts), id="an unchecked end token after a draft"),
        pytest.param(of_the_loop("_until_end", shown), id="an end token that is shown"),
        pytest.param(of_the_loop("Score", without_last), id="a prefix without the output"),
        pytest.param(of_the_loop("Context", more_room), id="a draft over the limit"),
    ],
)
def test_mistakes_in_loop(mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake(monkeypatch)
    assert noticed(check_chains) or noticed(check_trees)


def swapped(draft: Draft, rows: Rows, choose: ChooseChild) -> Verdict:
    """The last accepted node's youngest sibling in its place."""
    right = walk(draft, rows, choose)
    if not right.accepted:
        return right
    *path, last = right.accepted
    siblings = [node for node, parent in enumerate(draft.parents) if parent == draft.parents[last]]
    return replace(right, accepted=(*path, siblings[-1]))


def astray(draft: Draft, rows: Rows, choose: ChooseChild) -> Verdict:
    return walk(draft, rows, lambda node, children: None if choose(node, children) is None else children[0])


def wrong_row(draft: Draft, rows: Rows, choose: ChooseChild) -> Verdict:
    right = walk(draft, rows, choose)
    return replace(right, token=rows.argmax(right.accepted[-1] - 1)) if right.accepted else right


def too_short(draft: Draft, rows: Rows, choose: ChooseChild) -> Verdict:
    return cut_short(walk(draft, rows, choose))


@pytest.mark.parametrize("wrong", [swapped, astray, wrong_row, too_short])
def test_mistakes_in_walk(wrong: Callable[..., Verdict], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft.decoding.rules.exact.walk", wrong)
    assert noticed(check_trees)


def too_little_rolled_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "redraft.backends.llama_slot.common_prefix",
        lambda held, wanted: min(common_prefix(held, wanted) + 1, len(held), len(wanted)),
    )


def nothing_rolled_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LlamaContext, "remove", lambda context, sequence, start=-1: True)


def another_branch(patch: pytest.MonkeyPatch) -> None:
    right = LlamaSlot.adopt_branch

    def adopt(slot: LlamaSlot, prefix: Any, *, exact: bool) -> None:
        slot.branches = dict(zip(slot.branches, reversed(slot.branches.values()), strict=True))
        right(slot, prefix, exact=exact)

    patch.setattr(LlamaSlot, "adopt_branch", adopt)


def wrong_depths(patch: pytest.MonkeyPatch) -> None:
    right = Draft.__post_init__

    def post_init(draft: Draft) -> None:
        right(draft)
        object.__setattr__(draft, "depths", tuple(range(1, len(draft) + 1)))

    patch.setattr(Draft, "__post_init__", post_init)


def row_too_late(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "redraft.backends.llamacpp.NumpyRows",
        lambda logits, root, places: NumpyRows(logits, min(root + 1, len(logits) - 1), places),
    )


@pytest.mark.parametrize(
    "mistake", [too_little_rolled_back, nothing_rolled_back, another_branch, wrong_depths, row_too_late]
)
def test_mistakes_in_cache(mistake: Mistake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_llama(path)
    check_cache(path)
    mistake(monkeypatch)
    assert noticed(lambda: check_cache(path))


def check_cache(path: Path) -> None:
    """A slot that has seen other drafts and trees answers like one that has seen nothing."""
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
    return list(backend.score([(slot, score)])[0].top_k(ROOT, 3))


def same(first: list[tuple[int, float]], second: list[tuple[int, float]]) -> None:
    """Equal but for the rounding of a 16-bit cache."""
    assert dict(first) == pytest.approx(dict(second), abs=0.05)


def noticed(check: Check) -> bool:
    """Whether a check fails; a mistake that does not even run is an error of this file."""
    try:
        check()
    except (AssertionError, RedraftError):
        return True
    return False
