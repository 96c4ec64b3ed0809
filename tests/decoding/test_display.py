"""Which tokens may be shown: those on which outputs agree, then those that lead by far, whatever the rule."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.decode import decode
from redraft.decoding.display import Confirmed, Display, lead_of
from redraft.decoding.drive import run
from redraft.decoding.method import Setup
from redraft.decoding.methods import get_method
from redraft.decoding.rules.biased import Biased
from redraft.decoding.rules.conditional import Conditional, fixed_threshold
from redraft.decoding.rules.everything import Everything
from redraft.decoding.rules.exact import Exact
from redraft.decoding.types import ROOT, Draft, Provenance, Rule, Score, Verdict, common_prefix
from redraft.errors import OptionError
from tests.fakes import RandomModel, distribution


def lead(model: RandomModel, prefix: list[int], token: int) -> float:
    """By the definition, over the whole vocabulary."""
    (rows,) = model.score([(0, Score(tuple(prefix)))])
    probabilities = distribution(rows, ROOT)
    return probabilities[token] - max(p for other, p in enumerate(probabilities) if other != token)


def test_lead_is_positive_for_best_token_alone() -> None:
    model = RandomModel(1)
    (rows,) = model.score([(0, Score((1, 2, 3)))])
    best = rows.argmax(ROOT)
    for token in range(model.vocabulary):
        found = lead_of(rows, ROOT, token)
        assert found == pytest.approx(lead(model, [1, 2, 3], token))
        assert (found > 0) == (token == best)


def test_lead_of_only_token() -> None:
    assert lead_of(NumpyRows(np.zeros((1, 1)), 0), ROOT, 0) == 1.0


METHODS = ["ar", "ssbd", "redraft", "redraft-tree", "pld", "gs-jacobi"]


@given(
    st.integers(0, 60),
    st.sampled_from(METHODS),
    st.sampled_from([0, 0.05, 0.3, 1]),
    st.integers(0, 8),
    st.booleans(),
)
def test_count_is_what_agrees_and_then_what_leads(seed: int, name: str, least: float, same: int, wrong: bool) -> None:
    model, prompt = RandomModel(seed, end_bias=0.5), (3, 4, 5)
    method = get_method(name)
    options = {"cost": "flat"} if name.startswith("redraft") else {}
    previous = () if name == "ar" else (7, 8, 9, 7, 8)

    def decoded(rule: Rule | None = None) -> tuple[int, ...]:
        drafter, built = method.build(Setup(method.check(options), model.end_tokens, model.pad_token))
        asking = decode(
            prompt, drafter, rule or built, previous=previous, shown=2, end_tokens=model.end_tokens, limit=12
        )
        return run(asking, model, model.open_slot()).tokens

    # What other outputs agree on is, for any length of it, a beginning of this one, and perhaps another token.
    agreed = decoded()[:same] + (11,) * wrong
    watched = Confirmed(method.build(Setup(method.check(options), model.end_tokens, model.pad_token))[1], agreed, least)
    assert isinstance(watched, Rule)
    output = decoded(watched)
    assert output == decoded()
    place = common_prefix(output, agreed)
    while least < 1 and place < len(output) and lead(model, [*prompt, *output[:place]], output[place]) >= least:
        place += 1
    assert min(watched.count, len(output)) == place


class Says:
    """A rule that always says the same, and has no bias."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def judge(self, draft: Draft, rows: object) -> Verdict:
        return self._verdict


def test_verdict_is_rules() -> None:
    model, draft = RandomModel(2), Draft.chain((4, 5), Provenance.PREVIOUS)
    (rows,) = model.score([(0, Score((1, 2), draft))])
    watched = Confirmed(Says(Verdict((0,), None)), (4,), 1)
    assert watched.judge(draft, rows) == Verdict((0,), None)
    assert watched.count == 1
    assert Confirmed(Exact(), (), 0).judge(draft, rows) == Exact().judge(draft, rows)


@pytest.mark.parametrize("rule", [Exact(), Everything(), Biased(0.3, hidden=0.1)])
def test_biases_are_rules(rule: Exact | Everything | Biased) -> None:
    draft = Draft.previous((4, 5, 6), 2)
    assert Confirmed(rule, (), 1).biases(draft) == rule.biases(draft)


@pytest.mark.parametrize(
    "rule", [Says(Verdict((), None)), Conditional(fixed_threshold(0.1), {Provenance.PREVIOUS}, frozenset())]
)
def test_rule_without_bias(rule: Rule) -> None:
    assert Confirmed(rule, (), 1).biases(Draft.previous((4, 5), 1)) is None


class Ordered:
    """Rows that know nothing but their best token, 5."""

    def argmax(self, node: int) -> int:
        return 5


@pytest.mark.parametrize(
    ("tokens", "agreed", "least", "count"),
    [
        ((5, 5), (5, 5, 5), 0.5, 3),  # agreement asks for nothing
        ((4, 4), (4, 4, 5), 0.5, 3),
        ((4, 5), (), 0.5, 0),  # another token would have to lead
        ((4, 5), (4, 4), 1, 1),  # a lead of 1 turns it off
        ((5, 5), (), 1, 0),
    ],
)
def test_probabilities_only_where_needed(
    tokens: tuple[int, ...], agreed: tuple[int, ...], least: float, count: int
) -> None:
    watched = Confirmed(Says(Verdict((0, 1), 5)), agreed, least)
    watched.judge(Draft.chain(tokens, Provenance.PREVIOUS), Ordered())  # type: ignore[arg-type]
    assert watched.count == count


def test_nothing_counts_after_first_unconfirmed_token() -> None:
    watched = Confirmed(Says(Verdict((0, 1), 5)), (5, 4, 5), 1)
    draft = Draft.chain((5, 5), Provenance.PREVIOUS)
    for _ in range(2):  # the second pass has no say either
        watched.judge(draft, Ordered())  # type: ignore[arg-type]
        assert watched.count == 1


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        *(("agree", each, "agree must be a whole number from 1 to 10, not") for each in (0, 11, -1, 2.0, True, "2")),
        *(("mask_k", each, "mask_k must be a whole number of 0 or more, not") for each in (-1, 1.5, True, None)),
        *(
            ("lead", each, "lead must be a number from 0 to 1, not")
            for each in (-0.1, 1.1, math.nan, math.inf, True, "0", None)
        ),
    ],
)
def test_value_out_of_range(field: str, value: Any, message: str) -> None:
    with pytest.raises(OptionError) as raised:
        Display(**{field: value})
    assert str(raised.value) == f"{message} {value!r}"


def test_ends_of_ranges_belong_to_them() -> None:
    for display in (Display(1, 0, 0), Display(10, 1, 100), Display(lead=0.0), Display(lead=1.0)):
        assert dataclasses.replace(display) == display


@pytest.mark.parametrize(
    ("display", "label"),
    [
        (Display(), ""),
        (Display(plain=True), ""),
        (Display(lead=0.5), ""),  # everything is shown anyway
        (Display(2), "2 agree"),
        (Display(2, 0.7), "2 agree, lead 0.7"),
        (Display(mask_k=3), "mask 3"),
        (Display(3, 0.9, 2, True), "3 agree, lead 0.9, mask 2, plain"),
    ],
)
def test_label(display: Display, label: str) -> None:
    assert display.label == label
