"""All plots of the benchmarks, with the results they apply to."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redraft_bench.bench.plots import bands, front, live, scatter, trade
from redraft_bench.bench.plots.chart import BOTTOM, HEIGHT, LEFT, RIGHT, Panel, svg
from redraft_bench.bench.read import Result
from redraft_bench.bench.results import LAST_POSITION

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Plot:
    """A kind of plot.

    Attributes:
        name: used in file names.
        about: what it shows, in a sentence.
        items: returns what it draws of a result: rows, lines or points.
        draw: draws a result on axes; several draw a row of panels.
        benches: benchmarks to which it applies.
        least: minimum number of items.
        inches: height of the axes.
        band: height of the axes for each item, in lines of text; 0 if the height is ``inches``.
        left: left margin in inches.
        right: right margin in inches.
    """

    name: str
    about: str
    items: Callable[[Result], Sized]
    draw: Callable[[Axes, Result], None] | tuple[Callable[[Axes, Result], None], ...]
    benches: tuple[str, ...]
    least: int = 1
    inches: float = HEIGHT - BOTTOM
    band: float = 0.0
    left: float = LEFT
    right: float = RIGHT


_STREAMS = ("ssbd", "peers")
_ALL = ("ssbd", "cold", "peers")
_BARS = ("ssbd", "cold", "peers")

PLOTS = (
    Plot(
        "front",
        "Retracted words over the lag: down and to the left is better.",
        front.rows_with_lags,
        tuple(map(front.panel, front.LAGS)),
        ("stream",),
        least=2,
    ),
    Plot(
        "quality",
        "Quality against flicker: up and to the left is better. Vertical lines are 95% intervals.",
        scatter.of_quality,
        scatter.quality,
        _STREAMS,
        least=2,
    ),
    Plot(
        "trade",
        "Quality (higher is better), visible flicker and processor time (lower is better) over the lag, which is "
        "better to the left. Blue: ssbd by β, everything shown. Orange: redraft by β, by lead (dashed), and as "
        "complete lines, each after at most so many seconds (dotted). −k: the last k tokens are held back. "
        "LA n: LocalAgreement of n texts.",
        trade.methods,
        tuple(map(trade.panel, trade.FIGURES)),
        ("trade",),
        least=2,
        inches=3.6,
    ),
    Plot(
        "speedups",
        "Speed-up over ar, in time and in passes.",
        bands.with_speedups,
        bands.speedups,
        _BARS,
        least=2,
        band=3,
        left=bands.LEFT,
        right=bands.RIGHT,
    ),
    Plot(
        "limit",
        "Distance to the limit: time relative to a drafter that knows the output beforehand. Shorter is better.",
        bands.with_limit,
        bands.limit,
        _BARS,
        band=2,
        left=bands.LEFT,
        right=bands.RIGHT,
    ),
    Plot(
        "acceptance",
        f"Share of the draft tokens accepted at each position. Position {LAST_POSITION} includes all further ones; "
        "positions with less than 1% of the drafts are omitted.",
        bands.shares_of,
        bands.acceptance,
        _ALL,
        band=bands.ACCEPTANCE,
    ),
    Plot(
        "cost",
        "Cost of a pass over n new tokens, T(n), compared with n passes over one token each.",
        lambda result: result.curve.sizes if result.curve else (),
        scatter.curve,
        (*_ALL, "quality"),
        right=0.75,
    ),
    Plot(
        "talks",
        "Caption lag by the number of simultaneous talks; the dotted line is one second.",
        lambda result: [trials for trials in result.trials.values() if len(trials) > 1],
        live.talks,
        ("capacity",),
        right=1.6,
    ),
)


def plots_of(result: Result) -> list[Plot]:
    """Return the plots that a result has the figures for."""
    return [plot for plot in PLOTS if result.bench in plot.benches and len(plot.items(result)) >= plot.least]


def draw(plot: Plot, results: Sequence[Result], name: str) -> str:
    """Draw a plot as SVG, with a panel per result; several panels are titled by language."""
    draws = plot.draw if isinstance(plot.draw, tuple) else (plot.draw,)
    panels = [_panel(plot, each, result, len(results) > 1) for result in results for each in draws]
    return svg(panels, name, columns=len(draws) if len(draws) > 1 else len(panels))


def _panel(plot: Plot, draw: Callable[[Axes, Result], None], result: Result, several: bool) -> Panel:
    inches = plot.band * bands.LINE * len(plot.items(result)) if plot.band else plot.inches
    return Panel(
        lambda axes: draw(axes, result), result.language_name if several else "", inches + BOTTOM, plot.left, plot.right
    )
