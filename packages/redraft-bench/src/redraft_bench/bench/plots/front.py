"""Flicker against lag for the parts of a recogniser's text (`redraft_bench.bench.plots.kinds`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redraft.captions.source import RAW, STABLE, least_chance
from redraft_bench.bench.plots.chart import BLUE, ORANGE
from redraft_bench.bench.plots.labels import Label, beside
from redraft_bench.bench.plots.scatter import draw_line, leave_room, measured, points_of
from redraft_bench.bench.read import Result
from redraft_bench.eval.figures import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Figure -> colour of its line, and its name.
LAGS = {"lag_first": (BLUE, "first shown"), "lag_good": (ORANGE, "for good")}


def rows_of_ssbd(result: Result) -> list[Row]:
    """Return the rows of `ssbd`, from translating everything to translating what two texts agree on."""
    rows = measured((row for row in result.rows if row["method"] == "ssbd"), "ne_display", *LAGS)
    return sorted(rows, key=lambda row: least_chance(str(row["source"])))


def front(axes: Axes, result: Result) -> None:
    """Draw NE of the display over both lags."""
    labels, lines = [], []
    for field, (colour, name) in LAGS.items():
        rows = rows_of_ssbd(result)
        lines.append(points_of(rows, field, "ne_display"))
        draw_line(axes, lines[-1], colour)
        for point, row in zip(lines[-1], rows, strict=True):
            source = str(row["source"])
            words = f"{source}, {name}" if source == RAW else source if source == STABLE else source.partition(":")[2]
            labels.append(Label(*point, words, colour))
    axes.set_xlabel("median lag (s)")
    axes.set_ylabel("NE shown (per final token)")
    axes.set_ylim(bottom=0)
    leave_room(axes)
    beside(axes, labels, lines)
