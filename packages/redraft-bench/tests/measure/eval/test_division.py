"""How passes are divided by purpose."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft_bench.eval.division import divide, division, kinds
from redraft_bench.eval.record import PassRecord, Record, Step


def step(tokens: tuple[int, ...], *accepted: int, seq: int = 0, finished: bool = True) -> Step:
    passes = tuple(PassRecord(0, 1, kept, kept, kept) for kept in accepted)
    return Step(seq, "a b", False, None, 3, tokens, "", "", finished, 0.0, 0.0, passes)


@pytest.mark.parametrize(
    ("output", "previous", "expected"),
    [
        ("abcd", "ab", "again again new new"),
        ("abxd", "abcd", "again again changed again"),
        ("abxyz", "abc", "again again changed new new"),
        ("xabc", "abc", "changed again again again"),
        ("ab", "abcd", "again again"),
        ("abc", "", "new new new"),
        ("", "abc", ""),
        ("axb", "ab", "again changed again"),
    ],
)
def test_tokens_are_new_changed_or_same_again(output: str, previous: str, expected: str) -> None:
    assert kinds([*map(ord, output)], [*map(ord, previous)]) == expected.split()


def test_passes_by_token() -> None:
    # The draft 1 2 3 4: 1 is kept, 9 corrects 2, then 3 and 4 come again one by one, then 5 is new, then the end.
    found = divide(step((1, 9, 3, 4, 5), 1, 0, 0, 0, 0), (1, 2, 3, 4))
    assert found == Counter(verify=1, again=2, new=2)
    # The same with 3 and 4 drafted after the correction: nothing is wasted.
    assert divide(step((1, 9, 3, 4, 5), 1, 2, 0), (1, 2, 3, 4)) == Counter(verify=1, new=2)


def test_update_without_passes_costs_nothing() -> None:
    assert divide(step((1, 2)), (1, 2)) == Counter()


def test_segment_starts_with_nothing() -> None:
    steps = (step((1, 2), 0, 0, 0), step((1, 2, 3), 2, 0, seq=1))
    assert division([Record(0, "u", "ar, de", steps)] * 2) == Counter(verify=4, new=6)


IDS = st.lists(st.integers(0, 3), max_size=8)


@given(IDS, IDS, st.data())
def test_all_passes_are_counted(output: list[int], previous: list[int], data: st.DataObject) -> None:
    accepted, left = [], len(output) + 1
    while left > 0:
        kept = data.draw(st.integers(0, left - 1))
        accepted.append(kept)
        left -= kept + 1
    found = divide(step(tuple(output), *accepted), previous)
    assert found.total() == len(accepted)
    assert found["verify"] == 1
    assert len(kinds(output, previous)) == len(output)
