"""Plots with a band for each row of a table: speed-ups, distance to the limit, acceptance by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from redraft_bench.bench.plots.chart import BLUE, INK, POINTS
from redraft_bench.bench.plots.labels import SIZE
from redraft_bench.bench.plots.scatter import SPEEDS, measured, value
from redraft_bench.bench.read import Result
from redraft_bench.eval.columns import named
from redraft_bench.eval.figures import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Height of a line of text in inches; then the margins.
LINE = 1.25 * POINTS / 72
LEFT, RIGHT = 0.15, 0.2
#: Number of characters of a name that fit; longer names are written smaller.
FITS = 52


def _open(axes: Axes, names: Sequence[str], lines: float) -> None:
    """Add a band of ``lines`` lines for each name, with the name above it; y counts lines downwards."""
    axes.set_ylim(lines * len(names), 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)
    for place, name in enumerate(names):
        at = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points", "va": "center"}
        size = SIZE * min(1, FITS / max(1, len(name)))
        axes.annotate(name, (0, lines * place + 0.5), (2, 0), fontsize=size, parse_math=False, **at)


def _bar(axes: Axes, top: float, start: float, end: float, text: str, colour: str) -> None:
    axes.barh(top + 0.5, end - start, left=start, height=0.62, color=colour)
    place = axes.annotate(
        text, (max(start, end), top + 0.5), (4, 0), textcoords="offset points", va="center", color=colour
    )
    place.set_fontsize(SIZE)


# Speed-ups


def with_speedups(result: Result) -> list[Row]:
    """Return the rows that have a speed-up."""
    return measured(result.rows, *SPEEDS)


def speedups(axes: Axes, result: Result) -> None:
    """Draw two bars per row."""
    rows = with_speedups(result)
    _open(axes, [named(row) for row in rows], 3)
    axes.set_xlim(0, 1.4 * max(value(row, field) for row in rows for field in SPEEDS))
    for place, row in enumerate(rows):
        for line, (field, (text, colour)) in enumerate(SPEEDS.items(), 1):
            speed = value(row, field)
            _bar(axes, 3 * place + 0.9 * line, 0, speed, f"{speed:.2f} {text}", colour)
        axes.vlines(1, 3 * place + 1, 3 * place + 2.8, color=INK, linewidth=1, zorder=0)
    axes.set_xlabel("speed-up over ar (×)")


# Distance to the limit


def with_limit(result: Result) -> list[Row]:
    """Return the rows that have a distance to the limit."""
    return measured(result.rows, "limit_distance")


def limit(axes: Axes, result: Result) -> None:
    """Draw one bar per row, starting at the limit, on a logarithmic scale."""
    rows = with_limit(result)
    distances = [value(row, "limit_distance") for row in rows]
    _open(axes, [named(row) for row in rows], 2)
    axes.set_xscale("log")
    highest = max(*distances, 1.5)
    axes.set_xlim(min(*distances, 1.0), highest**1.25)
    for place, distance in enumerate(distances):
        _bar(axes, 2 * place + 0.9, 1, distance, f"{distance:.2f}", BLUE)
    ticks = [tick for tick in (1, 1.5, 2, 3, 5, 10, 20, 50, 100) if tick <= highest]
    axes.minorticks_off()
    axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axes.axvline(1, color=INK)
    axes.set_xlabel("time over the limit's (×)")


# Acceptance by position

#: Height of a band in lines.
ACCEPTANCE = 3.4


def shares_of(result: Result) -> dict[str, list[float]]:
    """Return title -> share of draft tokens accepted, by position; positions reached by few drafts are omitted."""
    found = {}
    for title, counts in (result.acceptance or {}).items():
        least = max((stood for _, stood in counts), default=0) / 100
        shares = [kept / stood for kept, stood in counts if stood > least]
        if shares:
            found[title] = shares
    return found


def acceptance(axes: Axes, result: Result) -> None:
    """Draw a step line per title, each in a band."""
    shares = shares_of(result)
    _open(axes, [*shares], ACCEPTANCE)
    ticks: dict[float, str] = {}
    longest = max(map(len, shares.values()))
    for place, row in enumerate(shares.values()):
        base, height = ACCEPTANCE * place + 3.0, 1.9
        ends = [0.5, *(position + 1.5 for position in range(len(row)))]
        tops = [base - height * share for share in row]
        axes.stairs(tops, ends, baseline=base, fill=True, color=BLUE, alpha=0.35)
        axes.stairs(tops, ends, baseline=None, color=BLUE)
        axes.hlines([base, base - height], 0.5, longest + 0.5, color=INK, linewidth=0.6, alpha=0.6)
        ticks |= {base: "0%", base - height: "100%"}
    axes.set_xlim(0.5, longest + 0.5)
    axes.set_yticks([*ticks], labels=[*ticks.values()])
    axes.tick_params(axis="y", length=0, labelsize=SIZE - 1)
    axes.set_xticks([1, *range(5, longest + 1, 5)])
    axes.set_xlabel("position in the draft (tokens)")
