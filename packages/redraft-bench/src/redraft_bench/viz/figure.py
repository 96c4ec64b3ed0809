"""A drawing surface on matplotlib, measured in characters and lines of a fixed-width font.

Uses neither pyplot nor a display; the file's extension selects the renderer.  Text stays text in SVG files, rendered in
the browser's fonts.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from redraft_bench.viz.labels import width

#: Font size in points; then the width of a character (0.602 of that) and the height of a line in inches.
POINTS = 10.0
CHARACTER = 0.602 * POINTS / 72
LINE = 0.235

#: Pixels per inch of PNG files, and the maximum pixels per side; the renderer's limit is below 65,536.
DPI, LARGEST = 160.0, 60_000

INK, FAINT, PAPER = "#1f2328", "#6e7781", "#ffffff"

FONT = "DejaVu Sans Mono"

#: Fonts with Chinese and Japanese characters; the first installed one is used.
CJK_FONTS = (
    "Noto Sans Mono CJK JP",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "IPAGothic",
    "IPAexGothic",
    "TakaoGothic",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "MS Gothic",
    "Microsoft YaHei",
    "SimHei",
    "Arial Unicode MS",
)


class Sheet:
    """A white sheet of ``columns`` by ``lines``, with the origin at the upper left corner."""

    def __init__(self, columns: float, lines: float) -> None:
        from matplotlib.figure import Figure

        self._texts: list[str] = []
        self._figure = Figure(figsize=(columns * CHARACTER, lines * LINE), facecolor=PAPER)
        self._axes = self._figure.add_axes((0, 0, 1, 1), xlim=(0, columns), ylim=(lines, 0))
        self._axes.set_axis_off()

    def text(self, x: float, y: float, text: str, *, color: str = INK, align: str = "left", **style: Any) -> None:
        """Write one line, vertically centred at ``y``; ``align`` is the part of it placed at ``x``."""
        self._texts.append(text)
        # half the height of a capital, so that all texts share a baseline
        y += 0.36 * style.get("size", POINTS) / 72 / LINE
        self._axes.text(x, y, text, color=color, ha=align, va="baseline", parse_math=False, **style)

    def box(self, x: float, y: float, columns: float, lines: float, fill: str, edge: str = "none") -> None:
        """Fill a rectangle, given by its upper left corner and size."""
        from matplotlib.patches import Rectangle

        self._axes.add_patch(Rectangle((x, y), columns, lines, facecolor=fill, edgecolor=edge, linewidth=0.8))

    def arc(self, start: float, end: float, y: float, height: float, color: str, weight: float = 1.0) -> None:
        """Draw an arrow from ``start`` to ``end``, both at height ``y``, with a peak ``height`` lines above."""
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path as Curve

        top = y - height / 0.75  # a cubic curve reaches three quarters of its control points' height
        bend = (end - start) / 8
        points = [(start, y), (start + bend, top), (end - bend, top), (end, y)]
        curve = Curve(points, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
        arrow = FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=8, color=color, linewidth=weight)
        arrow.set_fill(False)
        self._axes.add_patch(arrow)

    def save(self, path: Path) -> str:
        """Write an SVG or PNG file, chosen by the extension.

        Returns:
            The characters missing from all installed fonts, each once; PNG files show them as boxes.

        Raises:
            OSError: the file cannot be written.
        """
        from matplotlib import rc_context

        fonts, missing = _fonts("".join(self._texts))
        settings = {
            "font.family": [*fonts, "monospace"],
            "font.size": POINTS,
            "svg.fonttype": "none",
            "svg.hashsalt": "redraft",
        }
        for text in self._axes.texts:
            text.set_fontfamily([*fonts, "monospace"])
        metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else {}
        with rc_context(settings), warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from")  # the return value reports them once
            self._figure.savefig(path, dpi=min(DPI, LARGEST / max(self._figure.get_size_inches())), metadata=metadata)
        return missing


def _fonts(text: str) -> tuple[list[str], str]:
    """Return the names of the fonts for a text, and the characters that none of them has."""
    missing = _lacking(text, FONT)
    if not missing:
        return [FONT], ""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    second = next((name for name in CJK_FONTS if name in installed), None)
    if second is None:
        return [FONT], missing
    return [FONT, second], _lacking(missing, second)


def _lacking(text: str, font: str) -> str:
    from matplotlib.font_manager import findfont, get_font

    face = get_font(findfont(font))
    return "".join(dict.fromkeys(character for character in text if not face.get_char_index(ord(character))))


def wrapped(words: Sequence[str], columns: int) -> list[list[int]]:
    """Return the indices of the words on each line; a line exceeds ``columns`` only for a single wider word."""
    lines: list[list[int]] = [[]]
    used = 0
    for index, word in enumerate(words):
        if lines[-1] and used + width(word) > columns:
            lines.append([])
            used = 0
        lines[-1].append(index)
        used += width(word)
    return lines
