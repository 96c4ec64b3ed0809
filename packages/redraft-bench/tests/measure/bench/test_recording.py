"""What of a file of records is replayed, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from measure.bench.passes import AR, DRAFTED, ONE_BY_ONE, SSBD, record
from redraft.backends import costs
from redraft.errors import InputError
from redraft_bench.bench.recording import read_recording
from redraft_bench.eval.record import PassRecord, Record, write_records


def write(folder: Path, *records: Record) -> Path:
    write_records(folder / "a.records.jsonl", records)
    return folder / "a.records.jsonl"


def test_segments_that_all_have_up_to_limit(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        *(record(AR, n, *ONE_BY_ONE) for n in (4, 0, 2, 1)),
        *(record(SSBD, n, *DRAFTED) for n in (1, 2, 3, 4)),
    )
    for limit, wanted in ((0, [1, 2, 4]), (2, [1, 2]), (9, [1, 2, 4])):
        found = read_recording(path, limit)
        assert {n: [r.segment for r in each] for n, each in found.records.items()} == {AR: wanted, SSBD: wanted}
    assert not found.left_out


def test_slot_holds_longest_pass(tmp_path: Path) -> None:
    small = read_recording(write(tmp_path, record(AR, 0, *ONE_BY_ONE)))
    assert small.context_length == costs.CONTEXT + costs.SIZES[-1]
    large = record(AR, 1, (1, [PassRecord(0, 300, 0, 0, 0), PassRecord(299, 51, 50, 5, 0)]))
    assert read_recording(write(tmp_path, large)).context_length == 350


def test_small_models_and_unknown_passes_are_left_out_by_name(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        record(AR, 0, *ONE_BY_ONE),
        record("bild, de", 0, *DRAFTED, draft_passes=4),
        record("other program, de", 0, (3, [])),
    )
    found = read_recording(path)
    assert [*found.records] == [AR]
    assert found.left_out == [
        "bild, de is left out, since the passes of a small model are recorded by number only",
        "other program, de is left out, since its passes are not recorded",
    ]


@pytest.mark.parametrize(
    "passes",
    [
        [PassRecord(0, 10, 0, 0, 0), PassRecord(11, 1, 0, 0, 0)],  # more cached than there was
        [PassRecord(0, 10, 3, 3, 0), PassRecord(14, 1, 0, 0, 0)],
        [PassRecord(0, 10, 10, 10, 0)],  # no prefix
        [PassRecord(5, 0, 0, 0, 0)],  # nothing new
        [PassRecord(0, 10, 0, 0, 1)],  # more kept than drafted
        [PassRecord(-1, 10, 0, 0, 0)],
        [PassRecord(0, 10, 0, 0, 0, 11)],  # more rows than ids
        [PassRecord(0, 10, 0, 0, 0, 0)],
    ],
)
def test_impossible_passes(tmp_path: Path, passes: list[PassRecord]) -> None:
    path = write(tmp_path, record(AR, 5, (1, passes)))
    with pytest.raises(InputError, match=r"segment 5 by 'ar, de' do not follow") as raised:
        read_recording(path)
    assert str(tuple(passes[-1])) in str(raised.value)
