"""Labels of points and lines, without overlaps: next to points by the library textalloc, and at the ends of lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redraft_bench.bench.plots.chart import POINTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Font size, and the height of a line of text, in points.
SIZE = POINTS - 1
_LINE = 1.3 * SIZE
#: Longer labels are wrapped, in characters.
_WIDEST = 24
#: Points closer than this share a label; space before a label at the end of a line.  In points.
_TOGETHER, _GAP = 4.5, 6.0


@dataclass(frozen=True, slots=True)
class Label:
    """A label for the data point (x, y)."""

    x: float
    y: float
    text: str
    colour: str


def beside(axes: Axes, labels: Iterable[Label], lines: Iterable[Sequence[tuple[float, float]]] = ()) -> None:
    """Label points where there is room; points at the same place share a label.

    Set the limits of the axes first.

    Args:
        lines: points of lines that labels should not cover.
    """
    from textalloc import allocate

    groups: list[list[Label]] = []
    places: list[tuple[float, float]] = []
    for label in labels:
        x, y = axes.transData.transform((label.x, label.y))
        near = (n for n, place in enumerate(places) if max(abs(place[0] - x), abs(place[1] - y)) < _TOGETHER)
        if (found := next(near, None)) is None:
            groups.append([label])
            places.append((x, y))
        else:
            groups[found].append(label)
    points, colours = [group[0] for group in groups], [group[0].colour for group in groups]
    joined = [" / ".join(dict.fromkeys(label.text for label in group)) for group in groups]
    across, up = [point.x for point in points], [point.y for point in points]
    kept = [line for line in lines if len(line) > 1]
    allocate(
        axes,
        across,
        up,
        [textwrap.fill(text, _WIDEST, break_on_hyphens=False) for text in joined],
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


def at_ends(axes: Axes, labels: Iterable[Label]) -> None:
    """Write labels to the right of the axes, at the heights of their points or as close as possible.

    Set the limits of the axes first, and leave room on the right.
    """
    frame = axes.get_window_extent()
    placed = sorted((axes.transData.transform((label.x, label.y))[1], label.text, label.colour) for label in labels)
    heights = spread([height for height, _text, _colour in placed], _LINE, frame.y1 + _LINE / 2)
    for height, (_, text, colour) in zip(heights, placed, strict=True):
        at = {"xycoords": "figure pixels", "ha": "left", "va": "center"}
        axes.annotate(text, (frame.x1 + _GAP, height), color=colour, fontsize=SIZE, parse_math=False, **at)


def spread(heights: Sequence[float], gap: float, top: float) -> list[float]:
    """Move ascending heights down so that they are at least ``gap`` apart and none is above ``top``."""
    found: list[float] = []
    for height in reversed(heights):
        found.append(min(height, top))
        top = found[-1] - gap
    return found[::-1]
