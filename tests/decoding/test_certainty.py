"""What may be shown of an output, and where it stops: by the definition, whatever the method."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.followers import LEAST_NEW, Certainty
from redraft.decoding.method import Setup
from redraft.decoding.methods import get_method
from redraft.decoding.types import ROOT, Draft, Output, Prompt, Provenance, Rows, Score, Verdict, common_prefix
from tests.fakes import RandomModel, distribution

METHODS = ["ar", "ssbd", "redraft", "pld", "gs-jacobi"]
PROMPT = (3, 4, 5)


def decoded(model: RandomModel, name: str, certainty: Certainty | None = None, shown: int = 2) -> Output:
    method = get_method(name)
    drafter, rule = method.build(Setup(method.check({}), model.end_tokens, model.pad_token))
    asking = decode(
        Prompt(PROMPT),
        drafter,
        rule,
        previous=() if name == "ar" else (7, 8, 9, 7, 8),
        shown=shown,
        end_tokens=model.end_tokens,
        limit=12,
        follow=certainty.follow if certainty else None,
    )
    return run(asking, model, model.open_slot())


def joint(model: RandomModel, output: Sequence[int], known: int, chance: float) -> list[float]:
    """For each number of tokens of the output, the joint probability of those that are not known."""
    found = [chance]
    for place, token in enumerate(output):
        (rows,) = model.score([(0, Score((*PROMPT, *output[:place])))])
        found.append(found[-1] * (1.0 if place < known else distribution(rows, ROOT)[token]))
    return found


@given(
    st.integers(0, 60),
    st.sampled_from(METHODS),
    st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    st.sampled_from([1.0, 0.6]),
    st.integers(0, 8),
    st.booleans(),
)
def test_count_is_what_agrees_and_then_what_is_probable(
    seed: int, name: str, least: float, chance: float, same: int, wrong: bool
) -> None:
    model = RandomModel(seed, end_bias=0.5)
    # What other outputs agree on is, for any length of it, a beginning of this one, and perhaps another token.
    known = decoded(model, name).tokens[:same] + (11,) * wrong
    certainty = Certainty(known, least, trust=chance)
    output = decoded(model, name, certainty).tokens
    assert output == decoded(model, name).tokens
    agreed = common_prefix(output, known)
    probable = joint(model, output, agreed, chance)
    place = agreed
    while least < 1 and place < len(output) and probable[place + 1] >= least * (1 - 1e-9):
        place += 1
    assert (min(certainty.count, len(output)), certainty.agreed) == (place, agreed)


@given(st.integers(0, 200), st.sampled_from(METHODS), st.sampled_from([0.02, 0.1, 0.3, 0.9]), st.integers(0, 4))
def test_output_stops_behind_guesses(seed: int, name: str, stop: float, shown: int) -> None:
    model = RandomModel(seed, end_bias=-1.0)
    whole, stopped = decoded(model, name, shown=shown), decoded(model, name, Certainty((), 1.0, stop), shown)
    count = len(stopped.tokens)
    assert stopped.tokens == whole.tokens[:count]
    if not stopped.stopped:
        assert stopped == whole
        return
    assert not stopped.cut and not stopped.finished
    assert count >= LEAST_NEW and count > shown
    probable = joint(model, stopped.tokens, 0, 1.0)
    assert probable[-1] < stop
    assert stopped.passes <= whole.passes
    if name == "ar":  # a token a pass, so it stops at the first place where it may
        assert all(each >= stop for each in probable[max(LEAST_NEW, shown + 1) : -1])
        assert stopped.passes == count


@given(st.integers(0, 60), st.sampled_from(METHODS))
def test_bound_of_zero_never_stops(seed: int, name: str) -> None:
    model = RandomModel(seed, end_bias=-1.0)
    assert decoded(model, name, Certainty((), 0.5, 0.0)) == decoded(model, name)


def test_tokens_without_pass_are_shown_if_known() -> None:
    certainty = Certainty((7, 8, 9), 0.5)
    certainty.follow(Draft.chain((7, 8, 4), Provenance.PREVIOUS), None, Verdict((0, 1, 2), None))
    assert (certainty.count, certainty.agreed) == (2, 2)
    assert observed(Sure(1.0), certainty, 2).count == 2


class Ordered:
    """Rows that know no probabilities."""

    def argmax(self, node: int) -> int:
        return 5


@pytest.mark.parametrize(
    ("tokens", "known", "first_sight", "count"),
    [
        ((5, 5), (5, 5, 5), 0.5, 3),  # agreement asks for nothing
        ((4, 5), (4, 4), 1.0, 1),  # a probability of 1 turns it off
        ((5, 5), (), 1.0, 0),
    ],
)
def test_probabilities_only_where_needed(
    tokens: tuple[int, ...], known: tuple[int, ...], first_sight: float, count: int
) -> None:
    certainty = Certainty(known, first_sight)
    draft = Draft.chain(tokens, Provenance.PREVIOUS)
    certainty.follow(draft, Ordered(), Verdict((0, 1), 5))  # type: ignore[arg-type]
    assert certainty.count == count


class Sure:
    """Rows that give every token the same probability."""

    def __init__(self, probability: float) -> None:
        self.probability, self.asked = probability, 0

    def logprob(self, node: int, token: int) -> float:
        self.asked += 1
        return math.log(self.probability)


def observed(rows: Rows | Sure, certainty: Certainty, passes: int) -> Certainty:
    for token in range(passes):
        followed(rows, certainty, token)
    return certainty


def followed(rows: Rows | Sure, certainty: Certainty, token: int) -> bool:
    return certainty.follow(Draft(), rows, Verdict((), token))  # type: ignore[arg-type]


def test_nothing_is_asked_once_all_is_decided() -> None:
    rows = Sure(0.5)
    certainty = Certainty((), 0.6, 0.2)
    assert [followed(rows, certainty, token) for token in range(9)] == [False] * 2 + [True] * 7
    assert (certainty.count, rows.asked) == (0, 3)


def test_trust_in_source_counts() -> None:
    assert observed(Sure(0.9), Certainty((), 0.5, trust=1.0), 3).count == 3
    assert observed(Sure(0.9), Certainty((), 0.5, trust=0.6), 3).count == 1
    assert observed(Sure(0.9), Certainty((), 0.5, trust=0.5), 3).count == 0
