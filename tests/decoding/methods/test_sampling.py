"""Speculative sampling is lossless: a chi-square test of whole outputs."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyDistribution
from redraft.decoding.backend import Backend, Capability
from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing, SmallModel
from redraft.decoding.drive import run, run_together
from redraft.decoding.method import Setup, Value
from redraft.decoding.methods import get_method
from redraft.decoding.methods.sampling import Rejection, residual
from redraft.decoding.methods.ssbd import PreviousOutput
from redraft.decoding.rules import Exact, Sampler
from redraft.decoding.types import (
    DRAFT_MODEL,
    ROOT,
    TARGET,
    Draft,
    Drafter,
    Output,
    Prompt,
    Provenance,
    Rows,
    Rule,
    Score,
    Verdict,
    WholeDistribution,
)
from tests.fakes import END, RandomModel

VOCABULARY, LIMIT, RUNS = 4, 4, 2000
PROMPT = (1,)


@cache
def best_first(probabilities: tuple[float, ...]) -> list[int]:
    return sorted(range(len(probabilities)), key=lambda token: -probabilities[token])


class TableRows:
    """Rows of a few known distributions, by token; the first is that of the prefix."""

    def __init__(self, distributions: Sequence[Sequence[float]]) -> None:
        self._distributions = distributions

    def argmax(self, node: int) -> int:
        return self.best(node, 1)[0]

    def best(self, node: int, k: int) -> list[int]:
        return best_first(tuple(self._distributions[node + 1]))[:k]

    def logprob(self, node: int, token: int) -> float:
        return math.log(self._distributions[node + 1][token])

    def entropy(self, node: int) -> float:
        raise NotImplementedError

    def distribution(self, node: int, temperature: float) -> WholeDistribution:
        return NumpyDistribution.of(np.log(np.array(self._distributions[node + 1])), temperature)


class TableModel:
    """A distribution over four tokens for every text, without zeros; quick to ask."""

    capabilities = frozenset({Capability.BATCHES})

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.probabilities = cache(self._probabilities)

    def _probabilities(self, *ids: int) -> list[float]:
        draw = random.Random(repr((self._seed, ids)))
        weights = [math.exp(draw.gauss(0, 1.2)) for _ in range(VOCABULARY)]
        return [weight / sum(weights) for weight in weights]

    def settle(self, slot: int) -> None:
        pass

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        answers: list[Rows] = []
        for _slot, score in requests:
            texts = [(*score.prefix, *score.draft.tokens[:length]) for length in range(len(score.draft) + 1)]
            answers.append(TableRows([self.probabilities(*text) for text in texts]))
        return answers


LARGE, SMALL = TableModel(1), TableModel(2)
#: The rest of a backend is not needed here.
BACKENDS = cast(Mapping[str, Backend], {TARGET: LARGE, DRAFT_MODEL: SMALL})
ALIKE = cast(Mapping[str, Backend], {TARGET: LARGE, DRAFT_MODEL: LARGE})
Parts = tuple[Drafter, Rule]


def speculative(window: int, **options: Value) -> Callable[[int], Parts]:
    """The method, built with a seed."""
    method = get_method("speculative-sampling")

    def build(seed: int) -> Parts:
        return method.build(Setup(method.check({"window": window, **options, "seed": seed}), frozenset({END})))

    return build


def sampled(parts: Parts, previous: tuple[int, ...] = ()) -> Output:
    asking = decode(Prompt(PROMPT), *parts, previous=previous, end_tokens=frozenset({END}), limit=LIMIT)
    return run_together([(asking, {TARGET: 0, DRAFT_MODEL: 0})], BACKENDS)[0]


def outputs(temperature: float, top_p: float) -> dict[tuple[int, ...], float]:
    """Every output, its end included, with its probability if the target alone is sampled."""
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(LIMIT):
        longer: dict[tuple[int, ...], float] = {}
        for text, probability in found.items():
            if END in text:
                longer[text] = probability
                continue
            powers = [p ** (1 / temperature) for p in LARGE.probabilities(*PROMPT, *text)]
            order = sorted(range(VOCABULARY), key=lambda token: -powers[token])
            while sum(powers[token] for token in order[:-1]) >= top_p * sum(powers):
                order.pop()
            mass = sum(powers[token] for token in order)
            longer |= {(*text, token): probability * powers[token] / mass for token in order}
        found = longer
    return found


def surprise(
    build: Callable[[int], Parts], temperature: float = 1.0, top_p: float = 1.0, **given: tuple[int, ...]
) -> float:
    """How far outputs are from sampling the target alone: chi-square as a number of standard deviations.

    By the cube root (Wilson and Hilferty 1931) it is nearly normal: 4 is met once in 30,000 times by chance.
    """
    counts: Counter[tuple[int, ...]] = Counter()
    for seed in range(RUNS):
        output = sampled(build(seed), **given)
        counts[output.tokens + (END,) * output.finished] += 1
    expected = outputs(temperature, top_p)
    if not set(counts) <= set(expected):
        return math.inf  # what cannot be
    # Cells of fewer than five are thrown together.
    cells = {text: RUNS * p for text, p in expected.items() if RUNS * p >= 5}
    rest = RUNS - sum(cells.values()), RUNS - sum(counts[text] for text in cells)
    chi = sum((counts[text] - mean) ** 2 / mean for text, mean in cells.items())
    freedom = len(cells) - 1
    if rest[0] >= 5:
        chi, freedom = chi + (rest[1] - rest[0]) ** 2 / rest[0], freedom + 1
    assert freedom >= 5
    spread = 2 / (9 * freedom)
    return ((chi / freedom) ** (1 / 3) - 1 + spread) / math.sqrt(spread)


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (1.0, 0.7), (0.6, 0.9)])
def test_output_is_distributed_as_targets_own(window: int, temperature: float, top_p: float) -> None:
    assert abs(surprise(speculative(window, temperature=temperature, top_p=top_p), temperature, top_p)) < 4


def test_so_is_that_of_plain_sampling() -> None:
    def build(seed: int) -> Parts:
        method = get_method("sampling")
        return method.build(Setup(method.check({"seed": seed, "top_p": 0.8}), frozenset({END})))

    assert abs(surprise(build, top_p=0.8)) < 4


def test_so_is_that_of_drafts_that_were_not_drawn() -> None:
    assert abs(surprise(lambda seed: (PreviousOutput(), Rejection(Sampler(1.0, 1.0, seed))), previous=(1, 2, 3))) < 4


def test_so_is_that_of_drafting_until_unsure() -> None:
    def build(seed: int) -> Parts:
        sampler = Sampler(1.0, seed=seed)
        return SmallModel(sampler, 3, frozenset({END}), fallback=0.5), Rejection(sampler)

    assert abs(surprise(build)) < 4


def test_shared_random_numbers() -> None:
    def build(seed: int) -> Parts:
        return SmallModel(Sampler(1.0, seed=seed), 3, frozenset({END})), Rejection(Sampler(1.0, seed=seed))

    assert surprise(build) > 8


def test_target_cut_to_another_nucleus_is_found_out() -> None:
    assert surprise(speculative(3, top_p=0.9), top_p=0.7) == math.inf
    assert surprise(speculative(3, top_p=0.7), top_p=0.9) > 8


# Single verdicts


@given(st.integers(0, 9999), st.lists(st.integers(1, 11), min_size=1, max_size=6).map(tuple), st.integers(1, 16))
def test_at_temperature_zero_it_is_exact_acceptance(seed: int, prompt: tuple[int, ...], limit: int) -> None:
    found = []
    for rule in (Exact(), Rejection(Sampler())):
        backends = {TARGET: RandomModel(seed), DRAFT_MODEL: RandomModel(seed + 1)}
        asking = decode(
            Prompt(prompt), SmallModel(Sampler(), 4, frozenset({END})), rule, end_tokens=frozenset({END}), limit=limit
        )
        found.append(run_together([(asking, {TARGET: 0, DRAFT_MODEL: 0})], backends)[0])
    assert found[0] == found[1]


def test_small_model_like_target_is_always_kept() -> None:
    for seed in range(50):
        sampler = Sampler(1.0, seed=seed)
        parts = SmallModel(sampler, 2, frozenset()), Rejection(sampler)
        asking = decode(Prompt(PROMPT), *parts, end_tokens=frozenset(), limit=9)
        output = run_together([(asking, {TARGET: 0, DRAFT_MODEL: 0})], ALIKE)[0]
        assert (output.passes, output.accepted, output.drafted, output.draft_passes) == (3, 6, 6, 6)


def test_as_much_is_kept_as_distributions_overlap() -> None:
    overlap = sum(map(min, LARGE.probabilities(*PROMPT), SMALL.probabilities(*PROMPT)))
    kept = 0
    for seed in range(RUNS):
        asking = decode(Prompt(PROMPT), *speculative(1)(seed), end_tokens=frozenset(), limit=2)
        kept += run_together([(asking, {TARGET: 0, DRAFT_MODEL: 0})], BACKENDS)[0].passes == 1
    assert kept / RUNS == pytest.approx(overlap, abs=0.03)
    assert 0.2 < overlap < 0.8


def test_token_outside_targets_nucleus_is_never_kept() -> None:
    certain = TableRows([[0.9, 0.04, 0.03, 0.03]] * 2)
    draft = Draft((2,), (ROOT,), (Provenance.MODEL,), ({2: 1.0},))
    rule = Rejection(Sampler(1.0, top_p=0.5))
    assert {rule.judge(draft, certain) for _ in range(200)} == {Verdict((), 0)}


def test_rejected_token_is_not_drawn_again() -> None:
    spread = TableRows([[0.4, 0.3, 0.2, 0.1]] * 2)
    rule = Rejection(Sampler(1.0))
    verdicts = [rule.judge(Draft.chain((0,), Provenance.PREVIOUS), spread) for _ in range(300)]
    assert {verdict.token for verdict in verdicts if not verdict.accepted} == {1, 2, 3}
    assert sum(bool(verdict.accepted) for verdict in verdicts) / 300 == pytest.approx(0.4, abs=0.12)


def test_impossible_token_is_not_kept_by_lowest_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sampler, "uniform", lambda _: 0.0)
    row = TableRows([[0.9, 0.04, 0.03, 0.03]] * 2)
    rule = Rejection(Sampler(1.0, top_p=0.5))
    assert rule.judge(Draft.chain((2,), Provenance.PREVIOUS), row) == Verdict((), 0)
    assert rule.judge(Draft.chain((0,), Provenance.PREVIOUS), row) == Verdict((0,), 0)


def test_residual() -> None:
    assert residual({1: 0.5, 2: 0.5}, {1: 0.75, 3: 0.25}) == {2: 0.5}
    assert residual({1: 0.5, 2: 0.5}, {2: 0.25, 1: 0.75}) == {2: 0.25}
    same = {1: 0.5, 2: 0.5}
    assert residual(same, dict(same)) == same


def test_tree_is_refused() -> None:
    tree = Draft((1, 2), (ROOT, ROOT), (Provenance.MODEL,) * 2)
    with pytest.raises(ValueError, match="without branches"):
        Rejection(Sampler(1.0)).judge(tree, TableRows([[0.25] * 4] * 3))


def test_plain_sampling() -> None:
    def output(seed: int) -> Output:
        model = RandomModel(3, end_bias=-100)
        return run(
            decode(Prompt((1,)), Nothing(), Rejection(Sampler(1.0, seed=seed)), end_tokens=frozenset(), limit=8),
            model,
            0,
        )

    assert output(1).passes == 8
    assert output(1) == output(1)
    assert len({output(seed).tokens for seed in range(5)}) == 5
