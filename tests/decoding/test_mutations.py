"""The tests of the engine must be able to fail: deliberate mistakes in its source are each noticed by a check.

A check holds the engine against greedy decoding written without it, ids and passes; it must hold for the source as it
stands and fail for every mutation of it.
"""

from __future__ import annotations

import importlib
import inspect
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from redraft.decoding.accept.exact import Exact
from redraft.decoding.draft.previous import PreviousOutput
from redraft.decoding.drive import run
from redraft.decoding.types import ROOT, Asking, Context, Draft, Output, Provenance, Score, Verdict
from tests.fakes import RandomModel, greedy
from tests.gguf_models import write_llama

LIMIT = 12
Check = Callable[[], None]


def mutated(name: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A copy of a module with one place of its source changed."""
    source = inspect.getsource(importlib.import_module(name))
    assert source.count(old) == 1, f"{name} has {source.count(old)} places like {old!r}: adjust the mutation"
    module = ModuleType(f"{name}_mutated")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source.replace(old, new), module.__name__, "exec"), vars(module))
    return module


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


def check_chains(decode: Any) -> None:
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


def check_trees(decode: Any, rule: Any) -> None:
    """Random trees around greedy's path: its ids in one pass for every four tokens."""
    for seed in range(40):
        model, prompt = RandomModel(seed, end_bias=-100), (1, 2, 3)
        expected = greedy(model, prompt, LIMIT)
        asking = decode(prompt, Tree(expected, seed), rule(), end_tokens=model.end_tokens, limit=LIMIT)
        output = run(asking, model, 0)
        check(output, expected)
        assert output.passes == LIMIT // 4


def check(output: Output, expected: list[int]) -> None:
    assert list(output.tokens) == expected
    assert output.finished == (len(expected) < LIMIT)
    assert output.passes == len(expected) + output.finished - output.accepted


def test_the_engine_as_it_stands() -> None:
    from redraft.decoding.decode import decode

    check_chains(decode)
    check_trees(decode, Exact)


@pytest.mark.parametrize(
    ("mistake", "old", "new"),
    [
        ("a lost bonus token", "verdict.token is not None:", "verdict.token is not None and not kept:"),
        ("an unchecked end token in a draft", "not end_tokens.isdisjoint(kept)", "False"),
        ("an unchecked end token after a draft", "finished = verdict.token in end_tokens", "finished = False"),
        ("an end token that is shown", "list(takewhile(lambda token: token not in end_tokens, kept))", "kept"),
        ("a draft that is scored but not kept", "output += tuple(kept)", "kept = kept[:1]; output += tuple(kept)"),
        ("a prefix without the output", "Score(prompt + output,", "Score(prompt + output[:-1],"),
        ("a draft over the limit", "limit - len(output) - 1,", "limit - len(output) + 1,"),
    ],
)
def test_mistakes_in_the_loop(mistake: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decode = mutated("redraft.decoding.decode", old, new, monkeypatch).decode
    assert noticed(lambda: check_chains(decode)) or noticed(lambda: check_trees(decode, Exact)), mistake


@pytest.mark.parametrize(
    ("mistake", "old", "new"),
    [
        ("a swapped branch", "path.append(chosen)", "path.append(children[node][-1])"),
        ("a walk down the wrong branch", "node = chosen", "node = children[node][0]"),
        ("the row of the wrong node", "rows.argmax(node)", "rows.argmax(node - 1)"),
        ("a path that is too short", "path.append(chosen)", "path = [*path, chosen][:1]"),
    ],
)
def test_mistakes_in_the_walk(mistake: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from redraft.decoding.decode import decode

    monkeypatch.setattr(
        "redraft.decoding.accept.exact.walk", mutated("redraft.decoding.accept.walk", old, new, monkeypatch).walk
    )
    assert noticed(lambda: check_trees(decode, Exact)), mistake


@pytest.mark.parametrize(
    ("mistake", "old", "new"),
    [
        (
            "too little rolled back",
            "kept = min(common_prefix(self.ids, prefix)",
            "kept = min(common_prefix(self.ids, prefix) + 1",
        ),
        ("nothing rolled back", "self.context.remove(self.sequence, kept)", "True"),
        (
            "a swapped branch",
            "self.context.share(best, self.sequence, own)",
            "self.context.share(min(self.branches), self.sequence, own)",
        ),
        ("a branch at the wrong depth", "length - 1 + depth for depth in draft.depths", "length + n for n in range(5)"),
        ("a row too late", "logits[start:end], score.prompt_rows - 1)", "logits[start:end], score.prompt_rows)"),
    ],
)
def test_mistakes_in_the_cache(
    mistake: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from redraft.backends import llamacpp

    path = tmp_path / "tiny.gguf"
    write_llama(path)
    check_cache(llamacpp, path)
    if old in inspect.getsource(llamacpp):
        module = mutated("redraft.backends.llamacpp", old, new, monkeypatch)
    else:
        module = llamacpp
        slot = mutated("redraft.backends.llama_slot", old, new, monkeypatch)
        monkeypatch.setattr(llamacpp, "LlamaSlot", slot.LlamaSlot)
    assert noticed(lambda: check_cache(module, path)), mistake


def check_cache(module: Any, path: Path) -> None:
    """A slot that has seen other drafts and trees answers like one that has seen nothing."""
    options = module.LlamaOptions(context_length=128, slots=2, branches=6, threads=1, gpu_layers=0)
    backend = module.LlamaCpp(path, options)
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
    """Whether a check fails."""
    try:
        check()
    except Exception:
        return True
    return False
