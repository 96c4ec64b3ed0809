"""Scatter plots: quality, flicker, lag, speed, cost of a pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from redraft_bench.bench.plots.chart import BLUE, GREEN, INK, ORANGE, PURPLE
from redraft_bench.bench.plots.labels import Label, at_ends, beside
from redraft_bench.bench.read import Result, number, options, pick
from redraft_bench.eval.figures import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = list[tuple[float, float]]


def value(row: Row, field: str) -> float:
    """Return a figure as a number; only for fields that `measured` has checked."""
    return float(cast(float, row[field]))


def measured(rows: Iterable[Row], *fields: str) -> list[Row]:
    """Return the rows that have all of these figures."""
    return [row for row in rows if all(isinstance(row.get(field), int | float) for field in fields)]


def points_of(rows: Iterable[Row], x: str, y: str) -> Points:
    """Return two figures of each row."""
    return [(value(row, x), value(row, y)) for row in rows]


def draw_line(axes: Axes, points: Points, colour: str, style: str = "-") -> None:
    """Draw a line with a marker at each point."""
    axes.plot(*zip(*points, strict=True), style, marker="o", color=colour)


def leave_room(axes: Axes, share: float = 0.1) -> None:
    """Add margins around the points; axes start at 0 if that is close."""
    axes.margins(share, share)
    axes.autoscale_view()
    if 0 <= axes.dataLim.x0 < 0.3 * axes.dataLim.x1:
        axes.set_xlim(left=-0.06 * axes.dataLim.x1)


# Quality against flicker


def of_quality(result: Result) -> list[Row]:
    """Return the rows that show everything and have both figures."""
    return measured((row for row in result.rows if not row.get("display")), "chrf", "ne_output")


def quality(axes: Axes, result: Result) -> None:
    """Draw chrF over NE; SSBD rows are connected by ascending beta."""
    rows = of_quality(result)
    several = sum(row["method"] == "ssbd" for row in rows) > 1
    lines = [points_of(_by_beta(rows), "ne_output", "chrf")] if several else []
    for line in lines:
        draw_line(axes, line, BLUE)
    labels = []
    for row in rows:
        x, y = value(row, "ne_output"), value(row, "chrf")
        text = str(row["method"])
        colour = {"ssbd": BLUE, "ar": ORANGE, "cd": GREEN}.get(text, PURPLE)
        if row["method"] == "ssbd" and several:
            text = f"β {options(row)['beta']}"
        for low, high in points_of(measured([row], "chrf_low", "chrf_high"), "chrf_low", "chrf_high"):
            axes.vlines(x, low, high, color=colour, alpha=0.4)
            lines.append([(x, low), (x, high)])
        axes.plot(x, y, "o", color=colour)
        labels.append(Label(x, y, text, colour))
    axes.set_xlabel("NE (retracted tokens per final token)")
    axes.set_ylabel("chrF")
    leave_room(axes)
    beside(axes, labels, lines)


def _by_beta(rows: Iterable[Row]) -> list[Row]:
    found = [row for row in pick(rows, "ssbd") if "beta" in options(row)]
    return sorted(found, key=lambda row: number(row, "beta"))


SPEEDS = {"speedup": ("in time", BLUE), "pass_speedup": ("in passes", ORANGE)}


# The cost of a pass


def curve(axes: Axes, result: Result) -> None:
    """Draw T(n), with n T(1) for comparison."""
    if result.curve is None:
        return
    sizes = result.curve.sizes
    taken = [1e3 * seconds for seconds in result.curve.seconds]
    singly = [taken[0] * size for size in sizes]
    draw_line(axes, list(zip(sizes, taken, strict=True)), BLUE)
    axes.plot(sizes, singly, "--", color=INK)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(_apart(sizes, 1.4), labels=[str(size) for size in _apart(sizes, 1.4)])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    ticks = _round(low, high)
    axes.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axes.set_xlabel("new tokens in the pass, n")
    axes.set_ylabel("time of the pass (ms)")
    at_ends(axes, [Label(sizes[-1], taken[-1], "T(n)", BLUE), Label(sizes[-1], singly[-1], "n · T(1)", INK)])


def _apart(sizes: Sequence[int], ratio: float) -> list[int]:
    """Return the sizes that are at least ``ratio`` apart."""
    found: list[int] = []
    for size in sizes:
        if not found or size >= ratio * found[-1]:
            found.append(size)
    return found


def _round(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10, ... within bounds."""
    numbers = (digit * 10.0**power for power in range(-4, 7) for digit in (1, 2, 5))
    return [each for each in numbers if low <= each <= high]
