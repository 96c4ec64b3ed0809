"""Retracted words over the lag, for every method on a recogniser's text (`redraft_bench.bench.plots.kinds`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from redraft_bench.bench.plots.chart import BLUE, GREEN, INK, ORANGE, PURPLE
from redraft_bench.bench.plots.labels import Label, beside
from redraft_bench.bench.plots.scatter import leave_room, measured, points_of
from redraft_bench.bench.read import Result
from redraft_bench.eval.figures import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BACK = "retracted"
#: Figure -> label of its axis.
LAGS = {"lag_first": "first shown (s after the word was spoken)", "lag_good": "shown for good (s)"}
#: Ticks of the retracted words, whose scale is logarithmic from 1 on.
TICKS = (0, 1, 10, 100, 1000)
COLOURS = {"ar": INK, "ssbd": BLUE, "redraft": ORANGE, "local-agreement": PURPLE}


def rows_with_lags(result: Result) -> list[Row]:
    """Return the rows that have retracted words and both lags."""
    return measured(result.rows, BACK, *LAGS)


def panel(lag: str) -> Callable[[Axes, Result], None]:
    """Return a function that draws the retracted words over a lag."""

    def draw(axes: Axes, result: Result) -> None:
        labels = []
        for row in rows_with_lags(result):
            method, colour = str(row["method"]), COLOURS.get(str(row["method"]), GREEN)
            (point,) = points_of([row], lag, BACK)
            axes.plot(*point, "o", color=colour, fillstyle="full" if row["hold_back"] else "none")
            labels.append(Label(*point, method, colour))
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=-0.3)
        axes.set_yticks(TICKS, list(map(str, TICKS)))
        axes.set_xlabel(LAGS[lag])
        axes.set_ylabel("retracted words a minute")
        leave_room(axes)
        beside(axes, labels, [])

    return draw
