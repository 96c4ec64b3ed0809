"""The page of the benchmark `stream`: what the default source changes on each stream, and all figures folded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from redraft.captions.source import RAW, STABLE
from redraft_bench.bench.read import Result
from redraft_bench.eval.columns import cell
from tools.build_docs import table
from tools.run_benchmarks import STREAMS

METHOD = "ssbd"
#: The aims: share of the tokens retracted with ``raw``, further lag in seconds, and speed of `METHOD` over `ar`.
SHARE, LATER, SPEED = 1 / 3, 0.3, 1.4

#: Figures before and after, and their formats.
SHOWN = (("ne_display", ".2f"), ("lag_first", ".2f"), ("lag_good", ".2f"), ("cpu_seconds", ".1f"))
HEADINGS = ("stream", "to", "NE shown", "first shown (s)", "for good (s)", "CPU (s)", "over `ar`", "chrF")


def ordered(results: Sequence[Result]) -> list[Result]:
    """Return the results in the order of `STREAMS`; those of a stream stay in order."""
    order = [*STREAMS]
    return sorted(results, key=lambda each: order.index(each.data) if each.data in order else len(order))


def stream_title(result: Result) -> str:
    """Return the name of a result's stream, with a capital letter."""
    return result.data_name[:1].upper() + result.data_name[1:]


def overview(results: Sequence[Result]) -> Iterator[str]:
    """Yield the first part of the page: a line for each stream and language, and how many reach the aims."""
    lines = [Change(result) for result in results]
    cells = [line.cells() for line in lines]
    for line, before in zip(reversed(cells), [*reversed(cells[:-1]), [""]], strict=True):
        line[0] *= line[0] != before[0]
    yield (
        f"`{METHOD}` with `--source {RAW}` → `--source {STABLE}`, the default. Lags are medians from "
        "the end of a word in the audio to its caption. *Over `ar`* is the processor time of `ar` relative to that of "
        f"`{METHOD}`, both with `{STABLE}`; README compares with `ar` and `{RAW}`, which takes longer. *chrF* is the "
        f"change by `{STABLE}`, with its 95% interval.\n"
    )
    yield table(HEADINGS, cells)
    yield f"Our targets for `{STABLE}`, and on how many of these lines they are reached:\n"
    yield "".join(f"- {aim}: {_reached(lines, test)}\n" for aim, test in AIMS.items())


class Change:
    """What `STABLE` changes on one stream into one language.

    Attributes:
        result: the result of the stream.
        ar: the row of `ar` on the whole text.
        before: that of `METHOD` on the whole text.
        after: that of `METHOD` with `STABLE`.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        rows: dict[object, dict[str, Any]] = {(row["method"], row["source"]): row for row in result.rows}
        self.ar, self.before, self.after = rows["ar", RAW], rows[METHOD, RAW], rows[METHOD, STABLE]

    @property
    def scored(self) -> bool:
        """Whether there are references."""
        return self.after.get("chrf_change") is not None

    def cells(self) -> list[str]:
        """Return the line of the table."""
        return [
            stream_title(self.result),
            self.result.language_name,
            # With no-break spaces, so that narrow columns do not break in the middle.
            *(f"{self.before[name]:{form}}\u00a0→\u00a0{self.after[name]:{form}}" for name, form in SHOWN),
            f"{self.after['cpu_speedup']:.2f}",
            cell(self.after, "chrf_change", "+.1f") if self.scored else "",
        ]


#: Aim -> whether a line reaches it; None if that is unknown.
AIMS: dict[str, Callable[[Change], bool | None]] = {
    f"NE shown at most a third of that with `{RAW}`": lambda line: (
        line.after["ne_display"] <= SHARE * line.before["ne_display"]
    ),
    f"words first shown at most {LATER} s later": lambda line: (
        line.after["lag_first"] <= line.before["lag_first"] + LATER
    ),
    f"words shown for good at most {LATER} s later": lambda line: (
        line.after["lag_good"] <= line.before["lag_good"] + LATER
    ),
    f"`{METHOD}` {SPEED} times as fast as `ar`": lambda line: line.after["cpu_speedup"] >= SPEED,
    "chrF not lower by more than its interval": lambda line: (
        line.after["chrf_change_high"] >= 0 if line.scored else None
    ),
}


def _reached(lines: Sequence[Change], test: Callable[[Change], bool | None]) -> str:
    """Return how many lines reach an aim."""
    found = [reached for line in lines if (reached := test(line)) is not None]
    number = sum(found)
    return f"reached on {number} of {len(found)}"
