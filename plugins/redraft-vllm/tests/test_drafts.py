"""What a request carries, and what of its draft is proposed and judged next."""

from __future__ import annotations

import math
from typing import Any

import pytest

from redraft_vllm.drafts import Draft, problem

DRAFT = Draft([5, 6, 7, 8, 9], 0.2)


@pytest.mark.parametrize(
    ("output", "most", "rest"),
    [
        ([], 3, [5, 6, 7]),
        ([5, 6], 9, [7, 8, 9]),
        ([5, 7], 9, []),
        ([5, 6, 7, 8, 9], 9, []),
        ([5], 0, []),
        ([5], -1, []),
    ],
)
def test_the_rest_of_a_draft(output: list[int], most: int, rest: list[int]) -> None:
    assert DRAFT.rest(output, most) == rest


@pytest.mark.parametrize(
    ("output", "scheduled", "judged"),
    [
        ([], [], [5]),
        ([5], [], [6]),
        ([5], [6, 7], [6, 7, 8]),
        ([5, 6], [7, 8, 9], [7, 8, 9]),  # nothing is drafted for the last row
        ([5], [-1, -1], [6]),  # placeholders
        ([5], [6, 0, 0], [6, 7]),  # behind another token, rows are of no draft
        ([4], [6, 7], []),
        ([5, 6, 7, 8, 9], [], []),
    ],
)
def test_every_row_decides_about_the_token_that_follows_it(
    output: list[int], scheduled: list[int], judged: list[int]
) -> None:
    assert DRAFT.judged(output, scheduled) == judged


def test_a_draft_is_verified_in_several_steps() -> None:
    output: list[int] = []
    steps = []
    while len(output) < len(DRAFT.tokens):
        scheduled = DRAFT.rest(output, 2)
        steps.append(scheduled)
        output += DRAFT.judged(output, scheduled)  # all are kept, that of the last row too
    assert steps == [[5, 6], [8, 9]]


@pytest.mark.parametrize(("bias", "margin"), [(0, 0), (0.2, 0.25), (0.5, math.inf), (1, math.inf)])
def test_margins(bias: float, margin: float) -> None:
    assert Draft([1], bias).margin(0) == margin
    assert Draft([1, 2], [0.1, bias]).margin(1) == margin


def test_requests_without_a_draft() -> None:
    assert Draft.of(None) is None and Draft.of({"other": 1}) is None
    assert Draft.of({"ssbd_draft": [1]}) == Draft([1], 0.0)
    assert problem(None, 10) == problem({"other": 1}, 10) == problem({"ssbd_draft": [9], "ssbd_bias": 1}, 10) == ""
    assert problem({"ssbd_draft": [9, 8], "ssbd_bias": [0.2, 0]}, 10) == ""


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("ssbd_draft", None, "ssbd_draft must be a list of ids from 0 to 9"),
        ("ssbd_draft", "12", "ssbd_draft must be a list"),
        ("ssbd_draft", [1, 10], "ssbd_draft must be a list"),
        ("ssbd_draft", [-1], "ssbd_draft must be a list"),
        ("ssbd_draft", [1.5], "ssbd_draft must be a list"),
        ("ssbd_draft", [True], "ssbd_draft must be a list"),
        (
            "ssbd_bias",
            1.5,
            "ssbd_bias must be a number from 0 to 1, or a list with one for each id of ssbd_draft, not 1.5",
        ),
        ("ssbd_bias", -0.1, "ssbd_bias must be"),
        ("ssbd_bias", math.nan, "ssbd_bias must be"),
        ("ssbd_bias", "0.2", "ssbd_bias must be"),
        (
            "ssbd_bias",
            [0.2, 0.2],
            "ssbd_bias must be a number from 0 to 1, or a list with one for each id of ssbd_draft",
        ),
        ("ssbd_bias", [2], "ssbd_bias must be"),
        ("ssbd_bias", [], "ssbd_bias must be"),
    ],
)
def test_wrong_fields_are_refused_by_name(field: str, value: Any, words: str) -> None:
    assert problem({"ssbd_draft": [1], field: value}, 10).startswith(words)


def test_a_bias_needs_a_draft() -> None:
    assert problem({"ssbd_bias": 0.2}, 10).startswith("ssbd_draft must be a list")
