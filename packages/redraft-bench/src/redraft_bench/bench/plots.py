"""The plots of the benchmarks, one for each that has any, with matplotlib: transparent, for light and dark backgrounds.

Uses neither pyplot nor a display.  Margins are in inches, so positions are known while drawing and labels can be moved
apart.  Text stays text in the SVG, rendered in the browser's fonts.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from redraft.decoding.display import Display
from redraft.decoding.methods import get_method
from redraft_bench.bench.read import Result, options
from redraft_bench.eval.columns import column
from redraft_bench.eval.figures import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Blue, orange, green, purple after Okabe and Ito: distinguishable with colour blindness, contrast of at least 3.4 : 1
#: on white and black.
BLUE, ORANGE, GREEN, PURPLE = COLOURS = ("#2f87c9", "#d55e00", "#009e73", "#aa5fa3")
#: Colour of text and axes: contrast 3.9 : 1 on white, 4.9 : 1 on GitHub's dark background.
INK = "#768390"
#: Font size of axes in points, that of labels, and the height of a line of labels.
POINTS, SIZE, LINE = 10.0, 9.0, 11.7
#: Width of a panel, and the margins of its axes, in inches.
WIDTH, LEFT, TOP, BOTTOM = 4.1, 0.72, 0.12, 0.52

Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Plot:
    """The plot of a benchmark.

    Attributes:
        name: used in file names.
        about: what it shows, in a sentence.
        enough: whether a result has what it draws.
        panels: draw a result on axes each; they are side by side.
        height: height of the panels in inches.
        right: right margin of the panels in inches.
    """

    name: str
    about: str
    enough: Callable[[Result], bool]
    panels: tuple[Callable[[Axes, Result], None], ...]
    height: float = 3.0
    right: float = 0.15

    def draw(self, result: Result, name: str) -> str:
        """Return an SVG document; ``name`` is the prefix of all ids, so that several documents can share a page."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        width, height = WIDTH * len(self.panels), self.height + TOP
        with rc_context(_STYLE):
            figure = Figure(figsize=(width, height), dpi=72)  # one pixel per point, as in the SVG
            for place, panel in enumerate(self.panels):
                x, y = (WIDTH * place + LEFT) / width, BOTTOM / height
                panel(
                    figure.add_axes(
                        (x, y, (WIDTH - LEFT - self.right) / width, (self.height - BOTTOM) / height),
                    ),
                    result,
                )
            out = io.StringIO()
            figure.savefig(out, format="svg", transparent=True)
        document = out.getvalue()
        # without prologue and metadata, which has URLs and the date
        document = re.sub(r"\s*<metadata>.*?</metadata>", "", document[document.index("<svg") :], flags=re.DOTALL)
        return re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", document)


#: matplotlib's settings; the fixed salt makes ids reproducible.
_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": POINTS,
    "axes.labelsize": POINTS,
    "xtick.labelsize": POINTS - 1,
    "ytick.labelsize": POINTS - 1,
    "svg.fonttype": "none",
    "svg.hashsalt": "redraft",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color"), INK
    ),
}


class Label(NamedTuple):
    """A label for the data point (x, y)."""

    x: float
    y: float
    text: str
    colour: str


def value(row: Row, field: str) -> float:
    """Return a figure as a number; only for fields that `measured` has checked."""
    return float(cast(float, row[field]))


def measured(rows: Iterable[Row], *fields: str) -> list[Row]:
    """Return the rows that have all of these figures."""
    return [row for row in rows if all(isinstance(row.get(field), int | float) for field in fields)]


def leave_room(axes: Axes) -> None:
    """Add margins around the points; axes start at 0 if that is close."""
    axes.margins(0.1, 0.1)
    axes.autoscale_view()
    if 0 <= axes.dataLim.x0 < 0.3 * axes.dataLim.x1:
        axes.set_xlim(left=-0.06 * axes.dataLim.x1)


def beside(axes: Axes, labels: Iterable[Label], lines: Iterable[Points] = ()) -> None:
    """Label points where there is room, by the library textalloc; points at the same place share a label.

    Set the limits of the axes first.

    Args:
        lines: points of lines that labels should not cover.
    """
    from textalloc import allocate

    groups: dict[tuple[float, float], list[Label]] = {}
    for label in labels:
        x, y = axes.transData.transform((label.x, label.y))
        near = (place for place in groups if max(abs(place[0] - x), abs(place[1] - y)) < SIZE / 2)
        groups.setdefault(next(near, (x, y)), []).append(label)
    points = [group[0] for group in groups.values()]
    joined = [" / ".join(dict.fromkeys(label.text for label in group)) for group in groups.values()]
    across, up, colours = ([point[place] for point in points] for place in (0, 1, 3))
    kept = [line for line in lines if len(line) > 1]
    allocate(
        axes,
        across,
        up,
        [textwrap.fill(text, 24, break_on_hyphens=False) for text in joined],
        x_scatter=across,
        y_scatter=up,
        x_lines=[[x for x, _ in line] for line in kept] or None,
        y_lines=[[y for _, y in line] for line in kept] or None,
        textsize=SIZE,
        textcolor=colours,
        linecolor=colours,
        linewidth=0.6,
        min_distance=0.02,
        parse_math=False,
    )


# Retracted words over the lag, for every method on a recogniser's text

BACK = "retracted"
#: Figure -> label of its axis.
LAGS = {"lag_first": "first shown (s after the word was spoken)", "lag_good": "shown for good (s)"}
METHODS = {"ar": INK, "ssbd": BLUE, "redraft": ORANGE, "local-agreement": PURPLE}


def _front(lag: str) -> Callable[[Axes, Result], None]:
    def draw(axes: Axes, result: Result) -> None:
        labels = []
        for row in measured(result.rows, BACK, *LAGS):
            method = str(row["method"])
            labels.append(Label(value(row, lag), value(row, BACK), method, METHODS.get(method, GREEN)))
            fill = "full" if row["hold_back"] else "none"
            axes.plot(*labels[-1][:2], "o", color=labels[-1].colour, fillstyle=fill)
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=-0.3)
        ticks = (0, 1, 10, 100, 1000)
        axes.set_yticks(ticks, list(map(str, ticks)))
        axes.set_xlabel(LAGS[lag])
        axes.set_ylabel("retracted words a minute")
        leave_room(axes)
        beside(axes, labels)

    return draw


# Quality, flicker and processor time over the lag, for every method and display

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


def _trade(field: str) -> Callable[[Axes, Result], None]:
    def draw(axes: Axes, result: Result) -> None:
        labels, lines = [], []
        for colour, style, points in _series(result):
            if not points:
                continue
            at = [(value(row, LAG), value(row, field)) for _, row in points]
            axes.plot(*zip(*at, strict=True), style, marker="o", color=colour)
            lines.append(at)
            labels += [Label(*point, name, colour) for point, (name, _) in zip(at, points, strict=True)]
            for row in measured((row for _, row in points), "chrf_low", "chrf_high") if field == "chrf" else ():
                low, high = value(row, "chrf_low"), value(row, "chrf_high")
                axes.vlines(value(row, LAG), low, high, color=colour, alpha=0.15)
        axes.set_xlabel(column(LAG, result.rows).heading)
        axes.set_ylabel(FIGURES[field])
        leave_room(axes)
        beside(axes, labels, lines)

    return draw


# Live talks against a server


def _talks(axes: Axes, result: Result) -> None:
    """Draw p95 of the caption lag over the number of talks, with the name of each line to the right of the axes."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ends = []
    same = set.intersection(*(set(title.split()) for title in result.trials))
    for (title, trials), colour in zip(result.trials.items(), COLOURS * len(result.trials), strict=False):
        points = [(number, lag / 1e3) for number, lag in sorted(trials)]
        axes.plot(*zip(*points, strict=True), "-", marker="o", color=colour)
        ends.append(Label(*points[-1], " ".join(word for word in title.split() if word not in same), colour))
    axes.axhline(1.0, color=INK, linewidth=1, linestyle=":")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("talks at once")
    axes.set_ylabel("caption lag, p95 (s)")
    frame = axes.get_window_extent()
    placed = sorted((axes.transData.transform((label.x, label.y))[1], label) for label in ends)
    heights = spread([height for height, _ in placed], LINE, frame.y1 + LINE / 2)
    for height, (_, label) in zip(heights, placed, strict=True):
        at = {"xycoords": "figure pixels", "ha": "left", "va": "center"}
        axes.annotate(label.text, (frame.x1 + 6, height), color=label.colour, fontsize=SIZE, parse_math=False, **at)


def spread(heights: Sequence[float], gap: float, top: float) -> list[float]:
    """Move ascending heights down so that they are at least ``gap`` apart and none is above ``top``."""
    found: list[float] = []
    for height in reversed(heights):
        found.append(min(height, top))
        top = found[-1] - gap
    return found[::-1]


#: Benchmark -> its plot.
PLOTS = {
    "stream": Plot(
        "front",
        "Retracted words over the lag: down and to the left is better.",
        lambda result: len(measured(result.rows, BACK, *LAGS)) > 1,
        tuple(map(_front, LAGS)),
    ),
    "trade": Plot(
        "trade",
        "Quality (higher is better), visible flicker and processor time (lower is better) over the lag, which is "
        "better to the left. Blue: ssbd by β, everything shown. Orange: redraft by β, by lead (dashed), and as "
        "complete lines, each after at most so many seconds (dotted). −k: the last k tokens are held back. "
        "LA n: LocalAgreement of n texts.",
        lambda result: (
            len({row["method"] for row in measured(result.rows, LAG, *FIGURES)}) > 1
            and "seconds" in {row.get("latency_unit") for row in result.rows}
        ),
        tuple(map(_trade, FIGURES)),
        height=3.6 + BOTTOM,
    ),
    "capacity": Plot(
        "talks",
        "Caption lag by the number of simultaneous talks; the dotted line is one second.",
        lambda result: any(len(trials) > 1 for trials in result.trials.values()),
        (_talks,),
        right=1.6,
    ),
}


def plot_of(result: Result) -> Plot | None:
    """Return the plot that a result has the figures for, if any."""
    plot = PLOTS.get(result.bench)
    return plot if plot and plot.enough(result) else None
