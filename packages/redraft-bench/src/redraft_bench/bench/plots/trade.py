"""Quality, flicker and processor time over the lag, for every method (`redraft_bench.bench.plots.kinds`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from redraft.decoding.display import Display
from redraft.decoding.methods import get_method
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


class _Series(NamedTuple):
    """Settings of one method: colour, style of the line, and a name for each point with its row."""

    colour: str
    style: str
    points: list[tuple[str, Row]]


def _series(result: Result) -> Iterator[_Series]:
    rows: dict[str, list[tuple[str, Row]]] = {}
    for row in measured(result.rows, LAG, *FIGURES):
        if not row.get("hold_back"):
            rows.setdefault(str(row["method"]), []).append((str(row.get("display") or ""), row))
    yield _Series(BLUE, "-", [(f"β {options(row)['beta']}", row) for shown, row in rows.pop("ssbd", []) if not shown])
    yield from _of_redraft(rows.pop("redraft", []))
    for method, colour in (("ar", INK), ("cd", GREEN), ("local-agreement", PURPLE)):
        yield _Series(colour, "-", [(_name(method, shown, row), row) for shown, row in rows.get(method, [])])


def _of_redraft(rows: list[tuple[str, Row]]) -> Iterator[_Series]:
    display = get_method("redraft").display.label
    default = [("redraft", row) for shown, row in rows if shown == display and not options(row)]
    betas = [(f"β {options(row)['beta']}", row) for shown, row in rows if shown == display and options(row)]
    two = f"{Display(2).label}"
    leads = [(shown.rpartition(", ")[2], row) for shown, row in rows if shown.startswith(two) and not options(row)]
    leads = [("no lead" if name == two else name, row) for name, row in leads if "lines" not in str(row["display"])]
    lines = [(f"lines {shown.rpartition(', lines, ')[2]}", row) for shown, row in rows if "lines" in shown]
    calm = [("never back", row) for _, row in rows if "hidden_beta" in options(row)]
    yield _Series(ORANGE, "--", [each for each in leads if each[1]["display"] != display] and leads)
    yield _Series(ORANGE, ":", lines)
    yield _Series(ORANGE, "-", [*betas, *default])
    yield _Series(ORANGE, "", calm)


def _name(method: str, shown: str, row: Row) -> str:
    if method == "local-agreement":
        return f"LA {options(row).get('n')}"
    return f"{method} −{shown.split()[1].rstrip(',')}" if shown else method


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
            labels += [Label(*point, name, colour) for point, (name, _) in zip(at, points, strict=True)]
            for _, row in points if field == "chrf" else ():
                for low, high in points_of(measured([row], "chrf_low", "chrf_high"), "chrf_low", "chrf_high"):
                    axes.vlines(value(row, LAG), low, high, color=colour, alpha=0.15)
        axes.set_xlabel(column(LAG, result.rows).heading)
        axes.set_ylabel(FIGURES[field])
        leave_room(axes)
        beside(axes, labels, lines)

    return draw
