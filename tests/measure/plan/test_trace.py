"""Recorded work: its averages, and what is left of it where updates are left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from redraft.errors import InputError, OptionError
from redraft.measure.eval.record import PassRecord
from redraft.measure.plan.skipping import after_skipping
from redraft.measure.plan.trace import read_trace, shipped_trace
from tests.measure.plan.works import plain, step, trace


def test_the_shipped_trace_has_the_methods_that_are_compared_by_default() -> None:
    found = shipped_trace()
    assert list(found.works) == ["ar", "ssbd", "redraft"]
    assert {len(work.steps) for work in found.works.values()} == {329}
    assert found.work("ssbd").passes < 0.6 * found.work("ar").passes
    assert 0.4 < found.updates_per_word < 0.6


def test_averages_are_those_of_the_record() -> None:
    work = plain(passes=5)
    assert (work.passes, work.tokens, work.cached) == (5, 1, 10)
    assert trace(work).updates_per_word == 4 / 8


def test_the_quantile_of_passes_is_reached_by_no_more_than_the_rest() -> None:
    work = shipped_trace().work("ar")
    most = work.passes_quantile(0.95)
    beyond = sum(len(each.passes) > most for each in work.steps) / len(work.steps)
    assert beyond <= 0.05 < sum(len(each.passes) >= most for each in work.steps) / len(work.steps)


def test_a_method_that_was_not_recorded_is_refused_with_those_that_were() -> None:
    with pytest.raises(OptionError, match="one of ar, which were recorded, not 'ssbd'"):
        trace(plain(1)).work("ssbd")


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.records.jsonl"
    path.write_text("{}\n")
    with pytest.raises(InputError, match="line 1: this is not a record"):
        read_trace(path)


def test_nothing_changes_without_skipping() -> None:
    only = step(1, 2, [PassRecord(3, 4, 1, 1, 1)])
    assert after_skipping([only], (1, 2)) == only.passes


def test_less_of_the_draft_is_kept_after_skipping_and_the_rest_is_decoded() -> None:
    skipped = step(1, 2, [PassRecord(2, 5, 1, 1, 1)], (1, 9))
    last = step(2, 4, [PassRecord(6, 4, 2, 2, 2), PassRecord(9, 1, 0, 0, 0)], (1, 9, 5))
    first, *others = after_skipping([skipped, last], (1, 2))
    assert (first.cached, first.new, first.accepted) == (2, 8, 1)  # the output before had one token in common
    assert len(others) == 2


def test_an_unchanged_text_costs_what_the_skipped_one_would_have() -> None:
    asked = PassRecord(2, 5, 0, 0, 0)
    assert len(after_skipping([step(1, 2, [asked], (1,)), step(2, 2, [], (1,))], ())) == 1
