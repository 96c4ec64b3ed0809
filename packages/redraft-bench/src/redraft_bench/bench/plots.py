"""The plots of the benchmarks, one for each that has any, with matplotlib: transparent, for light and dark backgrounds.

Uses neither pyplot nor a display.  Margins are in inches, so positions are known while drawing and labels can be moved
apart.  Text stays text in the SVG, rendered in the browser's fonts.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple, cast

from redraft_bench.bench.read import Result, options
from redraft_bench.eval.columns import COLUMNS, column
from redraft_bench.eval.figures import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Blue, orange, green, purple after Okabe and Ito: distinguishable with colour blindness, contrast of at least 3.4 : 1
#: on white and black.
BLUE, ORANGE, GREEN, PURPLE = "#2f87c9", "#d55e00", "#009e73", "#aa5fa3"
OTHERS = ("#b8860b", "#4b8b8b", "#c44e7b", "#7a7fd0", "#5f8f3e", "#a0623a")
#: Method -> its colour, in every plot; those of different papers share some.  Others have the next that is free.
METHODS = {
    **{"ssbd": BLUE, "redraft": ORANGE, "cd": GREEN, "local-agreement": PURPLE},
    **dict(zip(("bild", "aasd", "jacobi", "gs-jacobi", "hybrid-jacobi", "speculative-sampling"), OTHERS, strict=True)),
    **dict(zip(("bild-early-exit", "ssbd-aasd", "pld", "sampling"), OTHERS, strict=False)),
}
#: Colour of text and axes: contrast 3.9 : 1 on white, 4.9 : 1 on GitHub's dark background.
INK = "#768390"
#: Font size of axes in points, that of labels, and the height of a line of labels.
POINTS, SIZE, LINE = 10.0, 9.0, 11.7
#: Width of one of several panels and of a single one, and the margins of its axes, in inches.
WIDTH, ALONE, LEFT, TOP, BOTTOM = 4.1, 7.0, 0.72, 0.12, 0.52

Points = list[tuple[float, float]]
Panel = Callable[["Axes", Result], None]


@dataclass(frozen=True, slots=True)
class Plot:
    """The plot of a benchmark.

    Attributes:
        name: used in file names.
        about: what it shows, in a sentence.
        panels: returns what draws a result on axes each, side by side; nothing if the result lacks what it draws.
        height: height of the panels in inches.
        right: right margin of the panels in inches.
        top: margin above them in inches.
    """

    name: str
    about: str
    panels: Callable[[Result], Sequence[Panel]]
    height: float = 3.0
    right: float = 0.15
    top: float = TOP

    def draw(self, result: Result, name: str) -> str:
        """Return an SVG document; ``name`` is the prefix of all ids, so that several documents can share a page."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        panels = self.panels(result)
        wide = WIDTH if len(panels) > 1 else ALONE
        width, height = wide * len(panels), self.height + self.top
        with rc_context(_STYLE):
            figure = Figure(figsize=(width, height), dpi=72)  # one pixel per point, as in the SVG
            for place, panel in enumerate(panels):
                x, y = (wide * place + LEFT) / width, BOTTOM / height
                panel(
                    figure.add_axes(
                        (x, y, (wide - LEFT - self.right) / width, (self.height - BOTTOM) / height),
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
    """Label points, by the library textalloc; points at the same place share a label, and without room there is none.

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
    if not groups:
        return
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
        draw_all=False,
        max_distance=0.5,
        nbr_candidates=600,
    )


def colours(result: Result) -> dict[str, str]:
    """Return the colour of each method of a result."""
    methods = [*dict.fromkeys(str(row["method"]) for row in result.rows)]
    taken = {METHODS.get(method) for method in methods}
    free = cycle([colour for colour in OTHERS if colour not in taken] or OTHERS)
    others = [method for method in methods if method not in METHODS and method != "ar"]
    return {"ar": INK} | METHODS | dict(zip(others, free, strict=False))


# Retracted words over the lag, for every method on a recogniser's text

BACK = "retracted"
#: Figure -> label of its axis.
LAGS = {"lag_first": "first shown (s after the word was spoken)", "lag_good": "shown for good (s)"}


def _front(lag: str) -> Panel:
    def draw(axes: Axes, result: Result) -> None:
        labels, of_method = [], colours(result)
        for row in measured(result.rows, BACK, *LAGS):
            method = str(row["method"])
            name = f"{method} {row['options']}" if row["options"] == "stop=0" else method
            labels.append(Label(value(row, lag), value(row, BACK), name, of_method[method]))
            axes.plot(*labels[-1][:2], "o", color=labels[-1].colour)
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=-0.3)
        ticks = (0, 1, 10, 100, 1000)
        axes.set_yticks(ticks, list(map(str, ticks)))
        axes.set_xlabel(LAGS[lag])
        axes.set_ylabel("retracted words a minute")
        leave_room(axes)
        beside(axes, labels)

    return draw


# A sweep: quality, flicker and processor time over the lag, or else over the speed-up

#: Figure -> label of its axis.  The first that was measured is the horizontal one.
ACROSS = {"dal": "", "speedup": "speed-up over ar"}
QUALITIES = ("chrf", "f1", "rouge_l", "edit_similarity")
FIGURES = {
    **{name: COLUMNS[name].heading for name in QUALITIES},
    "ne_display": "NE shown (per final token)",
    "cpu_ms": "processor time of an update (ms)",
}
#: Markers of the lines of a method that has several.
MARKERS = ("o", "s", "^", "D", "v", "X")
#: Settings that are an axis of their own, over which the speed-up is drawn.
AXES = ("threads", "batch")


class _Point(NamedTuple):
    """A line of the table: its row, and its settings by name, as far as those of its method differ.

    If the method's first line has no options, these are the differences from it.
    """

    row: Row
    settings: dict[str, str]


def _swept(result: Result) -> dict[str, list[_Point]]:
    """Return method -> its lines, with the settings in which they differ."""
    rows: dict[str, list[Row]] = {}
    for row in result.rows:
        rows.setdefault(str(row["method"]), []).append(row)
    found = {}
    for method, own in rows.items():
        settings = [_settings(row) for row in own]
        if not own[0].get("options"):
            settings = [_difference(each, settings[0]) for each in settings]
        names = [*dict.fromkeys(name for each in settings for name in each)]
        differing = [name for name in names if len({each.get(name) for each in settings}) > 1]
        found[method] = [
            _Point(row, {name: each[name] for name in differing if name in each})
            for row, each in zip(own, settings, strict=True)
        ]
    return found


def _difference(settings: Mapping[str, str], default: Mapping[str, str]) -> dict[str, str]:
    without = {f"no {name}": "" for name in default if name not in settings}
    return {name: text for name, text in settings.items() if default.get(name) != text} | without


def _settings(row: Row) -> dict[str, str]:
    more = {name: str(row[name]) for name in AXES if row.get(name)}
    return {**options(row), **_shown(str(row.get("display") or "")), **more}


def _shown(display: str) -> dict[str, str]:
    """Return the parts of a display in words by name, such as ``agree`` -> ``2``."""
    parts = filter(None, display.replace("lines, ", "lines ").split(", "))
    found = [re.fullmatch(r"(\d+) (agree)|(.*?) ([\d.]+(?: s)?)", part) or part for part in parts]
    return dict((each, "") if isinstance(each, str) else (each[2] or each[3], each[1] or each[4]) for each in found)


def _lines(points: Sequence[_Point]) -> Iterator[tuple[dict[str, str], list[_Point]]]:
    """Yield the points that differ in the last setting only, a line each, and the settings that they share."""
    last = next(reversed([name for point in points for name in point.settings]), "")
    groups: dict[tuple[tuple[str, str], ...], list[_Point]] = {}
    for point in points:
        rest = tuple((name, text) for name, text in point.settings.items() if name != last)
        groups.setdefault(rest, []).append(point)
    for rest, group in groups.items():
        if sum(last in point.settings for point in group) > 1:
            yield dict(rest), group
        else:
            yield from (({}, [point]) for point in group)


def _words(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {text}".strip() for name, text in settings.items())


def _label(method: str, points: Sequence[_Point], place: int, shared: Mapping[str, str]) -> str:
    """Return the name of a point: what differs from the one before on the line, or the method if nothing differs.

    Args:
        shared: settings of the whole line, which the legend names.
    """
    own, before = points[place].settings, points[place - 1].settings if place else shared
    return _words({name: text for name, text in own.items() if before.get(name) != text}) or method


def _sweep(across: str, up: str) -> Panel:
    def draw(axes: Axes, result: Result) -> None:
        from matplotlib.ticker import MaxNLocator

        labels, drawn, of_method = [], [], colours(result)
        legend: dict[str, tuple[str, str]] = {}
        for method, points in _swept(result).items():
            lines = [*_lines([point for point in points if measured([point.row], across, up)])]
            named = sum(len(line) > 1 for _, line in lines) > 1
            markers = cycle(MARKERS)
            for shared, line in lines:
                at = [(value(point.row, across), value(point.row, up)) for point in line]
                # Several lines of a method have markers of their own, and the legend says what their points share.
                own = shared if named else {}
                marker = next(markers) if named and len(line) > 1 else "o"
                legend[", ".join(filter(None, (method, _words(own))))] = of_method[method], marker
                axes.plot(*zip(*at, strict=True), "-", marker=marker, color=of_method[method])
                drawn.append(at)
                if across in AXES:
                    continue
                labels += [
                    Label(*point, _label(method, line, place, own), of_method[method]) for place, point in enumerate(at)
                ]
        axes.set_xlabel(ACROSS.get(across) or column(across, result.rows).heading)
        axes.set_ylabel(FIGURES.get(up) or column(up, result.rows).heading)
        if across in AXES:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        leave_room(axes)
        beside(axes, labels, drawn)
        if axes is axes.figure.axes[0]:
            _legend(axes, legend)

    return draw


def _legend(axes: Axes, names: Mapping[str, tuple[str, str]]) -> None:
    """Name the lines above the axes, in their colours and with their markers."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, marker=marker, label=name) for name, (colour, marker) in names.items()]
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=3,
        frameon=False,
        fontsize=SIZE,
        labelcolor="linecolor",
        handlelength=1,
        borderaxespad=0.2,
        columnspacing=1,
    )


def _sweeps(result: Result) -> Sequence[Panel]:
    """Return the panels of a sweep; nothing if no method has lines that differ."""
    if all(len(points) < 2 for points in _swept(result).values()):
        return ()
    for axis in AXES:
        if len({row.get(axis) for row in result.rows}) > 1:
            return (_sweep(axis, "speedup"),)
    timed = "seconds" in {row.get("latency_unit") for row in result.rows}
    across = next((each for each in ACROSS if len(measured(result.rows, each)) > 1 and (timed or each != "dal")), "")
    found = [up for up in FIGURES if len(measured(result.rows, across, up)) > 1 and (timed or up != "cpu_ms")]
    differing = [up for up in found if len({row.get(up) for row in result.rows}) > 1]
    return tuple(_sweep(across, up) for up in differing)


# Live talks against a server


def _talks(axes: Axes, result: Result) -> None:
    """Draw p95 of the caption lag over the number of talks, with the name of each line to the right of the axes."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ends = []
    same = set.intersection(*(set(title.split()) for title in result.trials))
    of_method = colours(result)
    for title, trials in result.trials.items():
        colour = of_method.get(title.split()[0], INK)
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


SWEEP = Plot(
    "trade",
    "The lines of the table by their settings.",
    _sweeps,
    height=3.6 + BOTTOM,
    top=0.5,
)
#: Benchmark -> its plot; others have the one of a sweep.
PLOTS = {
    "stream": Plot(
        "front",
        "Retracted words over the lag: down and to the left is better.",
        lambda result: tuple(map(_front, LAGS)) if len(measured(result.rows, BACK, *LAGS)) > 1 else (),
    ),
    "capacity": Plot(
        "talks",
        "Caption lag by the number of simultaneous talks; the dotted line is one second.",
        lambda result: (_talks,) if any(len(trials) > 1 for trials in result.trials.values()) else (),
        right=1.6,
    ),
}


def plot_of(result: Result) -> Plot | None:
    """Return the plot that a result has the figures for, if any."""
    plot = PLOTS.get(result.bench, SWEEP)
    return plot if plot.panels(result) else None
