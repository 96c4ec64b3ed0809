"""The draft view of a stream: rows, counts and notes."""

from __future__ import annotations

from measure.viz.traces import step
from redraft.captions.events import Caption, Event, Failure, Update
from redraft.decoding.types import Provenance
from redraft_bench.viz.drafts import DraftRow, summary_of, view
from redraft_bench.viz.trace import Given, Trace
from tests.fakes import END

WORDS = {END: b"", 2: b" <b>", 3: b" two", 4: b"\xe6\x97", 5: b"\xa5"}


def rows_of(
    items: list[Update | Failure], made: dict[int, tuple[Trace | None, list[Event]]], limit: int = 9
) -> list[DraftRow]:
    """Rows of a stream whose update ``seq`` leaves the trace and the events that ``made`` says."""
    traces: list[Trace] = []

    def translate(update: Update) -> list[Event]:
        trace, events = made[update.seq]
        traces.extend([trace] if trace else [])
        return events

    return [*view(items, translate, traces, lambda token: WORDS[token], limit)]


def trace(*steps: object) -> Trace:
    return Trace(frozenset({END}), list(steps))  # type: ignore[arg-type]


def test_row() -> None:
    first = trace(step(0, [], [2], 0, 2), step(1, [], [END], 0, END))
    second = trace(step(0, [2, 3], [2, 4, 5], 1, 4), step(2, [], [5], 0, 5), step(3, [], [END], 0, END))
    items: list[Update | Failure] = [Update("u", 0, "one"), Update("u", 1, "one two", final=True)]
    rows = rows_of(items, {0: (first, []), 1: (second, [])})
    assert [(row.source, row.passes, row.acceptance, row.final) for row in rows] == [
        ("one", 2, "–", False),
        ("one two", 3, "1/2", True),
    ]
    assert [(cell.text, cell.token.origin) for cell in rows[1].cells] == [
        (" <b>", Provenance.ITERATION),
        ("", Given.CORRECTION),
        ("日", Given.ALONE),
    ]
    assert summary_of(rows) == "2 updates, 4 tokens in 5 passes, 1 of 2 draft tokens accepted"
    assert summary_of(rows[:1]) == "1 updates, 1 tokens in 2 passes"


def test_update_without_pass_says_why() -> None:
    items: list[Update | Failure] = [
        Update("u", 0, "one"),
        Update("u", 1, ""),
        Update("u", 2, "long"),
        Failure("line 4 is broken", 4),
    ]
    rows = rows_of(
        items,
        {
            0: (None, [Caption("u", 0, "de", "eins", source="one")]),
            1: (None, [Caption("u", 1, "de", "")]),
            2: (None, [Failure("too long")]),
        },
    )
    assert [row.note for row in rows] == [
        "the same source: no pass; still 'eins'",
        "nothing to translate",
        "too long",
        "line 4 is broken",
    ]
    assert not any(row.cells or row.passes for row in rows)
