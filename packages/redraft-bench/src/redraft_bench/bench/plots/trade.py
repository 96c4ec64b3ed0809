"""Quality, flicker and processor time over the lag, for every method (`redraft_bench.bench.plots.kinds`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from redraft.captions.source import RAW
from redraft_bench.bench.plots.chart import BLUE, GREEN, INK, ORANGE, PURPLE
from redraft_bench.bench.plots.labels import Label, beside
from redraft_bench.bench.plots.scatter import draw_line, leave_room, measured, points_of, value
from redraft_bench.bench.read import Result, options
from redraft_bench.eval.columns import column
from redraft_bench.eval.figures import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAG = "dal"
#: Figure -> label of its axis.
FIGURES = {
    "chrf": "chrF, with 95% intervals",
    "ne_display": "NE shown (per final token)",
    "cpu_ms": "processor time of an update (ms)",
}
_MARGIN = "below margin "
_DEFAULT = f"{_MARGIN}0"


class _Series(NamedTuple):
    """Settings of one method: colour, style of the line, and a name for each point with its row."""

    colour: str
    style: str
    points: list[tuple[str, Row]]


def _series(result: Result) -> Iterator[_Series]:
    rows: dict[str, list[tuple[str, Row]]] = {}
    for row in measured(result.rows, LAG, *FIGURES):
        if (row.get("source") or RAW) == RAW:
            rows.setdefault(str(row["method"]), []).append((str(row.get("mask") or ""), row))
    ssbd = rows.pop("ssbd", [])
    biases = [(f"β {options(row)['beta']}", row) for mask, row in ssbd if mask == _DEFAULT and "beta" in options(row)]
    margins = [(mask, row) for mask, row in ssbd if mask.startswith(_MARGIN) and "," not in mask and mask != _DEFAULT]
    default = [(mask, row) for mask, row in ssbd if mask == _DEFAULT and options(row).get("beta") == "0.2"]
    shown = [("ssbd, no margin", row) for mask, row in ssbd if not mask]
    lines = [(mask.rpartition(", lines, ")[2], row) for mask, row in ssbd if "lines" in mask]
    yield _Series(BLUE, "--", [*shown, *(("", row) for _, row in default), *margins])
    yield _Series(BLUE, ":", [(f"lines {seconds}", row) for seconds, row in lines])
    yield _Series(BLUE, "-", biases)
    for method, colour in (("ar", INK), ("redraft", ORANGE), ("cd", GREEN), ("local-agreement", PURPLE)):
        yield _Series(colour, "-", [(_name(method, mask, row), row) for mask, row in rows.get(method, [])])


def _name(method: str, mask: str, row: Row) -> str:
    if method == "local-agreement":
        return f"LA {options(row).get('n')}"
    return f"{method} −{mask.partition(' ')[0]}" if mask and method != "redraft" else method


def methods(result: Result) -> set[str]:
    """Return the methods that have all figures, with the lag in seconds."""
    rows = measured(result.rows, LAG, *FIGURES)
    return {str(row["method"]) for row in rows if row.get("latency_unit") == "seconds"}


def panel(field: str) -> Callable[[Axes, Result], None]:
    """Return a function that draws a figure over the lag."""

    def draw(axes: Axes, result: Result) -> None:
        labels, lines = [], []
        for colour, style, points in _series(result):
            if not points:
                continue
            at = points_of((row for _, row in points), LAG, field)
            draw_line(axes, at, colour, style)
            lines.append(at)
            names = (name.replace(_MARGIN, "margin ") for name, _ in points)
            labels += [Label(*point, name, colour) for point, name in zip(at, names, strict=True) if name]
            for _, row in points if field == "chrf" else ():
                for low, high in points_of(measured([row], "chrf_low", "chrf_high"), "chrf_low", "chrf_high"):
                    axes.vlines(value(row, LAG), low, high, color=colour, alpha=0.15)
        axes.set_xlabel(column(LAG, result.rows).heading)
        axes.set_ylabel(FIGURES[field])
        leave_room(axes)
        beside(axes, labels, lines)

    return draw
