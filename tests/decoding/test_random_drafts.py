"""Exact decoding with random drafts gives greedy's ids, and saves a pass for every draft token that it accepts."""

from __future__ import annotations

import random

import pytest

from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.methods.ssbd import PreviousOutput
from redraft.decoding.rules import Exact
from redraft.decoding.types import ROOT, Context, Draft, Drafter, Output, Prompt, Provenance, Verdict
from tests.fakes import RandomModel, greedy

LIMIT = 12


class Tree(Drafter):
    """Drafts a random tree before every pass, some of whose paths are what greedy decoding says."""

    def __init__(self, expected: list[int], seed: int) -> None:
        self._expected, self._random = expected, random.Random(seed)

    def propose(self, context: Context) -> Draft:
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


@pytest.mark.parametrize("seed", range(40))
def test_chains(seed: int) -> None:
    """Random drafts, some with an end token: greedy's ids, one pass less for every token accepted."""
    generator = random.Random(seed)
    model, prompt = RandomModel(seed), (1, 2, 3)
    expected = greedy(model, prompt, LIMIT)
    draft = tuple(expected[: generator.randrange(LIMIT)] + [generator.randrange(12) for _ in range(5)])
    if seed % 4 == 0:
        draft = (*expected, 0, 5, 6)
    asking = decode(Prompt(prompt), PreviousOutput(), Exact(), previous=draft, end_tokens=model.end_tokens, limit=LIMIT)
    check(run(asking, model, 0), expected)


@pytest.mark.parametrize("seed", range(40))
def test_trees(seed: int) -> None:
    """Random trees around greedy's path: its ids in one pass for every four tokens."""
    model, prompt = RandomModel(seed, end_bias=-100), (1, 2, 3)
    expected = greedy(model, prompt, LIMIT)
    asking = decode(Prompt(prompt), Tree(expected, seed), Exact(), end_tokens=model.end_tokens, limit=LIMIT)
    output = run(asking, model, 0)
    check(output, expected)
    assert output.passes == LIMIT // 4


def check(output: Output, expected: list[int]) -> None:
    assert list(output.tokens) == expected
    assert output.finished == (len(expected) < LIMIT)
    assert output.passes == len(expected) + output.finished - output.accepted + output.end_drafted
