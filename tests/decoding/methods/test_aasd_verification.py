"""Equations 3-6 against their definitions, the longest path, and the end token."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.method import Setup
from redraft.decoding.methods import get_method
from redraft.decoding.methods.aasd import Aligned, Conditional, Test, among_best, entropy_threshold, fixed_threshold
from redraft.decoding.methods.lookup import Lookup
from redraft.decoding.rules import Exact
from redraft.decoding.types import Draft, Drafter, Output, Prompt, Provenance, Score
from tests.fakes import END, RandomModel, greedy

PROMPT, GENERATED = Provenance.PROMPT, Provenance.GENERATED
ENDS = frozenset({END})
weights = st.lists(st.floats(0.001, 1), min_size=3, max_size=8)
seeds = st.integers(0, 10_000)
prompts = st.lists(st.integers(1, 4), min_size=1, max_size=20).map(tuple)


def rows(*distributions: list[float]) -> NumpyRows:
    with np.errstate(divide="ignore"):
        return NumpyRows(np.log(np.array(distributions)), 0)


def chain(*tokens: int, provenance: str = PROMPT) -> Draft:
    return Draft.chain(tokens, provenance)


def lenient(test: Test, end_guard: bool = False) -> Conditional:
    return Conditional(test, {PROMPT}, ENDS, end_guard)


@given(weights, st.integers(1, 7), st.floats(0, 1), st.floats(0, 1))
def test_equation_5(drawn: list[float], token: int, alpha: float, beta: float) -> None:
    p = np.array(drawn) / sum(drawn)
    token %= len(p)
    entropy = -sum(each * math.log(each) for each in p)
    delta = min(alpha * entropy + beta, float(p.max()))
    verdict = lenient(entropy_threshold(alpha, beta)).judge(chain(token), rows(list(p), list(p)))
    best = int(np.log(p).argmax())  # probabilities that differ in the last bit may have the same logarithm
    tied = np.log(p[token]) == np.log(p[best]) and token != best
    if token not in ENDS and abs(p[token] - delta) > 1e-9 and not tied:
        assert bool(verdict.accepted) == (p[token] >= delta)
    assert verdict.token == best


def test_entropy_is_in_nats() -> None:
    # H = ln 4 = 1.386 nats = 2 bits: 0.1 H + 0.1 is 0.239 in nats, and 0.3 in bits.
    even = [0.25, 0.25, 0.25, 0.25]
    assert lenient(entropy_threshold(0.1, 0.1)).judge(chain(2), rows(even, even)).accepted == (0,)
    assert lenient(entropy_threshold(0.11, 0.1)).judge(chain(2), rows(even, even)).accepted == ()


@given(weights, st.floats(0, 10), st.floats(0, 1), st.integers(1, 5), st.sampled_from([PROMPT, GENERATED]))
def test_best_token_passes_every_test(drawn: list[float], alpha: float, beta: float, k: int, provenance: str) -> None:
    spread = rows(*[list(np.array(drawn) / sum(drawn))] * 2)
    best = chain(spread.argmax(-1), provenance=provenance)
    for test in (entropy_threshold(alpha, beta), fixed_threshold(1.0), among_best(k)):
        assert lenient(test, end_guard=True).judge(best, spread).accepted == (0,)


SPREAD = [0.05, 0.4, 0.3, 0.15, 0.1]


@pytest.mark.parametrize(
    ("test", "kept"),
    [
        (fixed_threshold(0.2), {1, 2}),
        (fixed_threshold(0.1), {1, 2, 3, 4}),
        (fixed_threshold(0.5), {1}),
        (among_best(1), {1}),
        (among_best(3), {1, 2, 3}),
        (among_best(9), {1, 2, 3, 4}),
        (entropy_threshold(0.0, 0.0), {1, 2, 3, 4}),
        (entropy_threshold(0.0, 0.15), {1, 2, 3}),
        (entropy_threshold(0.1, 0.1), {1, 2}),  # H = 1.39
    ],
)
def test_which_tokens_of_distribution_are_kept(test: Test, kept: set[int]) -> None:
    accepted = {token for token in range(5) if lenient(test).judge(chain(token), rows(SPREAD, SPREAD)).accepted}
    assert accepted == kept


def test_generated_text_is_verified_strictly() -> None:
    rule = lenient(entropy_threshold(0.0, 0.0))
    assert rule.judge(chain(2, provenance=GENERATED), rows(SPREAD, SPREAD)).accepted == ()
    mixed = Draft((2, 3, 2), (-1, 0, 1), (PROMPT, PROMPT, GENERATED))
    assert rule.judge(mixed, rows(*[SPREAD] * 4)).accepted == (0, 1)


def test_longest_path_wins_even_over_best_token() -> None:
    #  1 -> 4          the best first token, then one that does not pass
    #  2 -> 3 -> 2     passes throughout
    draft = Draft((1, 4, 2, 3, 2), (-1, 0, -1, 2, 3), (PROMPT,) * 5)
    verdict = lenient(fixed_threshold(0.15)).judge(draft, rows(*[SPREAD] * 5, [0.0, 0.0, 0.0, 0.0, 1.0]))
    assert (verdict.accepted, verdict.token) == ((2, 3, 4), 4)


@pytest.mark.parametrize("tokens", [(3, 2, 1), (1, 2, 3), (2, 1, 3)])
def test_most_probable_token_wins_wherever_it_stands(tokens: tuple[int, ...]) -> None:
    draft = Draft(tokens, (-1, -1, -1), (PROMPT,) * 3)
    assert lenient(fixed_threshold(0.15)).judge(draft, rows(*[SPREAD] * 4)).accepted == (tokens.index(1),)


def test_of_equally_long_paths_most_probable_wins() -> None:
    # The first step of the one is more probable, but both together of the other: 0.4 * 0.15 < 0.3 * 0.4.
    draft = Draft((1, 3, 2, 1), (-1, 0, -1, 2), (PROMPT,) * 4)
    assert lenient(fixed_threshold(0.15)).judge(draft, rows(*[SPREAD] * 5)).accepted == (2, 3)
    # The last step alone does not decide either: 0.15 * 0.4 < 0.4 * 0.3.
    draft = Draft((3, 1, 1, 2), (-1, 0, -1, 2), (PROMPT,) * 4)
    assert lenient(fixed_threshold(0.15)).judge(draft, rows(*[SPREAD] * 5)).accepted == (2, 3)


def test_nothing_below_refused_token_is_accepted() -> None:
    draft = Draft((4, 1, 1, 3), (-1, 0, 1, -1), (PROMPT,) * 4)
    assert lenient(fixed_threshold(0.15)).judge(draft, rows(*[SPREAD] * 5)).accepted == (3,)


def test_empty_draft_gets_best_token() -> None:
    verdict = lenient(fixed_threshold(0.1)).judge(Draft(), rows(SPREAD))
    assert (verdict.accepted, verdict.token) == ((), 1)


def test_drafted_end_passes_only_as_best_token() -> None:
    going_on, ending = [0.4, 0.5, 0.1], [0.5, 0.4, 0.1]
    rule = lenient(entropy_threshold(0.0, 0.0))
    assert rule.judge(chain(END), rows(going_on, going_on)).accepted == ()
    assert rule.judge(chain(END), rows(ending, going_on)).accepted == (0,)


def test_draft_goes_on_after_line_break() -> None:
    """One before all text ends nothing; where one ends the output, what follows is cut off."""
    model = RandomModel(3)
    method = get_method("ssbd-aasd")
    plain = greedy(model, (1, 2, 3), 8)
    drafter, rule = method.build(Setup(method.check({}), model.end_tokens, line_ends=frozenset(plain[:1])))
    asking = decode(Prompt((1, 2, 3)), drafter, rule, previous=tuple(plain), end_tokens=model.end_tokens, limit=8)
    output = run(asking, model, 0)
    assert (list(output.tokens), output.passes) == (plain, 1)


def test_nothing_is_accepted_after_end() -> None:
    ending = [0.5, 0.4, 0.1]
    assert lenient(entropy_threshold(0.0, 0.0)).judge(chain(END, 1, 1), rows(*[ending] * 4)).accepted == (0,)


@pytest.mark.parametrize(
    ("row", "guarded", "unguarded"),
    [
        ([0.5, 0.4, 0.1], (), (0,)),  # the target wants to end
        ([0.4, 0.4, 0.2], (), (0,)),  # it does not want to go on rather than to end
        ([0.3, 0.31, 0.39], (0,), (0,)),  # it does, if with another token
    ],
)
def test_end_guard(row: list[float], guarded: tuple[int, ...], unguarded: tuple[int, ...]) -> None:
    test = entropy_threshold(0.0, 0.1)
    assert lenient(test, end_guard=True).judge(chain(1), rows(row, row)).accepted == guarded
    assert lenient(test).judge(chain(1), rows(row, row)).accepted == unguarded


def decoded(model: RandomModel, prompt: tuple[int, ...], drafter: Drafter, rule: Conditional | Exact) -> Output:
    return run(decode(Prompt(prompt), drafter, rule, end_tokens=model.end_tokens, limit=24), model, 0)


@given(seeds, prompts, st.floats(1, 3), st.booleans())
def test_no_entropy_and_threshold_of_one_are_exact(
    seed: int, prompt: tuple[int, ...], beta: float, end_guard: bool
) -> None:
    outputs = [
        decoded(RandomModel(seed, vocabulary=5), prompt, Aligned(end_tokens=ENDS), rule)
        for rule in (lenient(entropy_threshold(0.0, beta), end_guard), Exact())
    ]
    assert outputs[0] == outputs[1]


def test_ties_do_not_loosen_exact_acceptance() -> None:
    tie = [0.0, 0.5, 0.5]
    assert lenient(entropy_threshold(0.0, 1.0)).judge(chain(2), rows(tie, tie)).accepted == ()
    assert lenient(entropy_threshold(0.0, 1.0)).judge(chain(1), rows(tie, tie)).accepted == (0,)


@given(seeds, prompts, st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_every_output_token_passes(seed: int, prompt: tuple[int, ...], alpha: float, beta: float, tree: bool) -> None:
    model = RandomModel(seed, vocabulary=5)
    drafter = Aligned(end_tokens=ENDS) if tree else Lookup(3, 10, ENDS)
    output = decoded(model, prompt, drafter, lenient(entropy_threshold(alpha, beta)))
    for place, token in enumerate(output.tokens):
        row = model.score([(0, Score((*prompt, *output.tokens[:place])))])[0]
        delta = min(alpha * row.entropy(-1) + beta, math.exp(row.logprob(-1, row.argmax(-1))))
        assert math.exp(row.logprob(-1, token)) >= delta - 1e-12
    assert output.passes == len(output.tokens) + output.finished - output.accepted


def test_lenient_rule_keeps_more_of_prompt() -> None:
    kept = dict.fromkeys((1.0, 0.1), 0)
    for seed, beta in [(seed, beta) for seed in range(10) for beta in kept]:
        model = RandomModel(seed, vocabulary=8, end_bias=-100)
        prompt = tuple(np.random.default_rng(seed).integers(1, 8, 40).tolist())
        kept[beta] += decoded(model, prompt, Lookup(3, 10), lenient(entropy_threshold(0.0, beta))).accepted
    assert kept[0.1] > kept[1.0] > 0
