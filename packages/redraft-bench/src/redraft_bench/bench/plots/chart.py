"""Charts with matplotlib: transparent, with colours for light and dark backgrounds.

Uses neither pyplot nor a display.  Margins are in inches, so positions are known while drawing and labels can be moved
apart.  Text stays text in the SVG, rendered in the browser's fonts.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Blue, orange, green, purple after Okabe and Ito: distinguishable with colour blindness, contrast of at least 3.4 : 1
#: on white and black.
BLUE, ORANGE, GREEN, PURPLE = COLOURS = ("#2f87c9", "#d55e00", "#009e73", "#aa5fa3")
#: Colour of text and axes: contrast 3.9 : 1 on white, 4.9 : 1 on GitHub's dark background.
INK = "#768390"

#: Font size in points; then the size of a panel with its axes, and its margins, in inches.
POINTS = 10.0
WIDTH, HEIGHT = 4.1, 3.0
LEFT, RIGHT, TOP, BOTTOM = 0.72, 0.15, 0.12, 0.52

#: Draws one panel, without its title.
Draw: TypeAlias = "Callable[[Axes], None]"


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel's draw function, title and size in inches; ``right`` is the space for labels at line ends."""

    draw: Draw
    title: str = ""
    height: float = HEIGHT
    left: float = LEFT
    right: float = RIGHT


def svg(panels: Sequence[Panel], name: str, columns: int = 0) -> str:
    """Draw panels as an SVG document.

    Args:
        name: prefix of all ids, so that several documents can share a page.
        columns: panels side by side; 0 for all.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = columns or len(panels)
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    top = TOP + (0.25 if any(panel.title for panel in panels) else 0)
    heights = [max(panel.height for panel in row) + top for row in rows]
    width, height = WIDTH * columns, sum(heights)
    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), dpi=72)  # one pixel per point, as in the SVG
        for number, row in enumerate(rows):
            above = sum(heights[:number]) + top
            for place, panel in enumerate(row):
                x, y = WIDTH * place + panel.left, height - above - panel.height + BOTTOM
                size = WIDTH - panel.left - panel.right, panel.height - BOTTOM
                axes = figure.add_axes((x / width, y / height, size[0] / width, size[1] / height))
                panel.draw(axes)
                axes.set_title(panel.title, loc="left", fontsize=POINTS, parse_math=False)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True)
    return _cleaned(out.getvalue(), name)


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


def _cleaned(document: str, name: str) -> str:
    """Remove the prologue and metadata (URLs and date), and prefix all ids with ``name``."""
    document = re.sub(r"\s*<metadata>.*?</metadata>", "", document[document.index("<svg") :], flags=re.DOTALL)
    return re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", document)
