"""Place labels next to their points without overlaps.  Lengths are in points."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import dist
from typing import TYPE_CHECKING

from redraft_bench.bench.plots.chart import POINTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Font size; then the average width of a character (upper bound) and the height of a line.
SIZE = POINTS - 1
_CHARACTER, _LINE = 0.64 * SIZE, 1.3 * SIZE
#: Longer labels are wrapped, in characters.
_WIDEST = 24
#: Half of a marker with padding; spacing of the boxes that keep labels off lines; space before a label.
_MARKER, _STEP, _GAP = 4.5, 6.0, 6.0


@dataclass(frozen=True, slots=True)
class Label:
    """A label for the data point (x, y)."""

    x: float
    y: float
    text: str
    colour: str


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: _Box) -> float:
        """Return the overlapping area."""
        across = min(self.right, other.right) - max(self.left, other.left)
        up = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, across) * max(0.0, up)

    @property
    def area(self) -> float:
        """The area in square points."""
        return (self.right - self.left) * (self.top - self.bottom)

    def nearest(self, point: tuple[float, float]) -> tuple[float, float]:
        """Return the point of the box closest to ``point``."""
        return min(max(point[0], self.left), self.right), min(max(point[1], self.bottom), self.top)

    def distance(self, point: tuple[float, float]) -> float:
        """Return the distance from the box to ``point``."""
        return dist(point, self.nearest(point))


def beside(axes: Axes, labels: Iterable[Label], lines: Iterable[Sequence[tuple[float, float]]] = ()) -> None:
    """Label points where there is most room; points at the same place share a label.

    Set the limits of the axes first.

    Args:
        lines: points of lines that labels should not cover.
    """
    to_page = axes.transData.transform
    frame = axes.get_window_extent()
    inside = _Box(frame.x0, frame.y0, frame.x1 + 8, frame.y1 + 4)
    taken = [box for line in lines for box in _along([tuple(to_page(point)) for point in line])]
    groups: dict[tuple[float, float], list[Label]] = {}
    for label in labels:
        x, y = to_page((label.x, label.y))
        near = (key for key in groups if abs(key[0] - x) < _MARKER and abs(key[1] - y) < _MARKER)
        groups.setdefault(next(near, (x, y)), []).append(label)
    taken += [_Box(x - _MARKER, y - _MARKER, x + _MARKER, y + _MARKER) for x, y in groups]
    for point, group in groups.items():
        text = textwrap.fill(" / ".join(dict.fromkeys(label.text for label in group)), _WIDEST, break_on_hyphens=False)
        others = [other for other in groups if other != point]

        def lost(box: _Box, point: tuple[float, float] = point, others: list[tuple[float, float]] = others) -> float:
            """Return the penalty of a position: outside the frame, overlapping, near another point, or far away."""
            away = box.distance(point)
            nearer = sum(box.distance(other) < away for other in others)
            return 20 * (box.area - box.overlap(inside)) + sum(map(box.overlap, taken)) + 60 * nearer + away

        lines_of = text.split("\n")
        size = max(map(len, lines_of)) * _CHARACTER, len(lines_of) * _LINE
        box = min(_around(*point, *size), key=lost)
        taken.append(box)
        _lead(axes, point, box, group[0].colour)
        _write(axes, (box.left + box.right) / 2, (box.bottom + box.top) / 2, text, group[0].colour, "center")


def _around(x: float, y: float, width: float, height: float) -> Iterator[_Box]:
    """Yield positions for a text around a point, preferred directions first, at growing distances."""
    for far in (_GAP, 2.2 * _GAP, 4 * _GAP, 6 * _GAP):
        for across, up in ((1, 0), (1, 1), (0, 1), (0, -1), (1, -1), (-1, 1), (-1, 0), (-1, -1)):
            middle = x + across * (width / 2 + (far if not up else far / 2)), y + up * (height / 2 + far / 2)
            yield _Box(middle[0] - width / 2, middle[1] - height / 2, middle[0] + width / 2, middle[1] + height / 2)


def _lead(axes: Axes, point: tuple[float, float], box: _Box, colour: str) -> None:
    """Draw a thin line from a point to its label if they are far apart."""
    if box.distance(point) > 1.5 * _GAP:
        arrow = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2}
        axes.annotate("", point, box.nearest(point), "figure pixels", "figure pixels", arrow)


def _along(points: Sequence[tuple[float, ...]]) -> Iterator[_Box]:
    """Yield small boxes that cover a line."""
    for (x, y), (to_x, to_y) in pairwise(points):
        steps = max(1, round(max(abs(to_x - x), abs(to_y - y)) / _STEP))
        for step in range(steps):
            at_x, at_y = x + (to_x - x) * step / steps, y + (to_y - y) * step / steps
            yield _Box(at_x - 3, at_y - 3, at_x + 3, at_y + 3)


def at_ends(axes: Axes, labels: Iterable[Label]) -> None:
    """Write labels to the right of the axes, at the heights of their points or as close as possible.

    Set the limits of the axes first, and leave room on the right.
    """
    frame = axes.get_window_extent()
    placed = sorted((axes.transData.transform((label.x, label.y))[1], label.text, label.colour) for label in labels)
    heights = spread([height for height, _text, _colour in placed], _LINE, frame.y1 + _LINE / 2)
    for height, (_, text, colour) in zip(heights, placed, strict=True):
        _write(axes, frame.x1 + _GAP, height, text, colour, "left")


def spread(heights: Sequence[float], gap: float, top: float) -> list[float]:
    """Move ascending heights down so that they are at least ``gap`` apart and none is above ``top``."""
    found: list[float] = []
    for height in reversed(heights):
        found.append(min(height, top))
        top = found[-1] - gap
    return found[::-1]


def _write(axes: Axes, x: float, y: float, text: str, colour: str, align: str) -> None:
    axes.annotate(
        text, (x, y), xycoords="figure pixels", ha=align, va="center", color=colour, fontsize=SIZE, parse_math=False
    )
