"""Draw both visualizations on a sheet (`redraft_bench.viz.figure`), for SVG and PNG files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from redraft.decoding.types import Provenance
from redraft_bench.viz.ddg import SOURCE, Graph, Resolved
from redraft_bench.viz.drafts import ORIGINS, DraftRow
from redraft_bench.viz.figure import FAINT, INK, Sheet, wrapped
from redraft_bench.viz.labels import shortened, width
from redraft_bench.viz.trace import Given

#: Colours of grid cells: the iteration in which a token was resolved (alone, in parallel), and later ones.
ALONE, PARALLEL, SETTLED = "#cfe2f3", "#fbbf5d", "#f1f3f5"
EDGE, PARALLEL_EDGE = "#8c959f", "#b45f06"

COLORS: dict[Provenance | Given, str] = {
    Provenance.SHOWN: "#8fd19e",
    Provenance.PREVIOUS: "#d7efdc",
    Provenance.PROMPT: "#b9d7f4",
    Provenance.GENERATED: "#a5dfe0",
    Provenance.MODEL: "#dcc6f0",
    Provenance.ITERATION: "#f3e49b",
    Provenance.RECYCLED: "#f2c6dc",
    Given.CORRECTION: "#f5a68c",
    Given.BONUS: "#fcd5b0",
    Given.ALONE: "#e4e7ea",
}

#: Widths of the draft view's columns: names of updates, text, counts.
NAME, TEXT, COUNTS = 8, 72, 17

#: Right edges of the two columns of counts.
PASSES, SHARE = NAME + TEXT + 7, NAME + TEXT + COUNTS - 1


def draw_graph(graph: Graph, labels: Mapping[int, str], source: str, translation: str, summary: str) -> Sheet:
    """Draw the dependency graph above the grid of iterations by tokens."""
    columns = [min(16, max(4, width(labels[token.token]))) + 1.5 for token in graph.tokens]
    first = 11.0
    left = [first + sum(columns[:place]) for place in range(len(columns))]
    middle = [start + size / 2 for start, size in zip(left, columns, strict=True)]
    heights = [_height(position, token) for position, token in enumerate(graph.tokens)]
    line = 4.2 + max(heights, default=0)
    total = max(first + sum(columns) + 1, 84.0, width(summary) + 2)
    sheet = Sheet(total, line + graph.iterations + 5.0)
    sheet.text(1, 1, shortened(source, int(total) - 2), weight="bold")
    sheet.text(1, 2, shortened(f"→ {translation}", int(total) - 2), weight="bold")
    sheet.text(1, 3, summary, color=FAINT)
    sheet.text(first / 2, line + 0.6, "source", align="center", color=FAINT, style="italic")
    for token, x, height in zip(graph.tokens, middle, heights, strict=True):
        start = first / 2 if token.waited_for == SOURCE else middle[token.waited_for]
        sheet.arc(start, x, line, height, PARALLEL_EDGE if token.parallel else EDGE, 1.4 if token.parallel else 1.0)
    for place, token in enumerate(graph.tokens):
        if token.parallel:
            sheet.box(left[place] + 0.3, line + 0.1, columns[place] - 0.6, 1, PARALLEL)
        text = shortened(labels[token.token], int(columns[place]))
        sheet.text(middle[place], line + 0.6, text, align="center", weight="bold" if token.parallel else "normal")
    _draw_grid(sheet, graph, labels, line + 1.6, left, columns)
    y = line + graph.iterations + 2.7
    _legend(sheet, 1, y + 0.4, [("resolved", ALONE), ("resolved in parallel", PARALLEL), ("settled", SETTLED)])
    sheet.text(58, y + 0.4, "word: guess that changes", color=FAINT, size=9)
    sheet.text(1, y + 1.6, "An arrow leads from the token that another one waited for.", color=FAINT, size=9)
    return sheet


def _height(position: int, token: Resolved) -> float:
    """Return the height in lines of the arc to a token."""
    return 0.45 + 0.45 * (position - token.waited_for)


def _draw_grid(
    sheet: Sheet, graph: Graph, labels: Mapping[int, str], top: float, left: Sequence[float], columns: Sequence[float]
) -> None:
    sheet.text(1, top + 0.5, "iteration", color=FAINT)
    for number in range(1, graph.iterations + 1):
        y = top + number
        sheet.text(left[0] - 1 if left else 10, y + 0.5, str(number), align="right", color=FAINT)
        for place, token in enumerate(graph.tokens):
            guess = graph.grid[number - 1][place]
            text, color, fill = "", FAINT, "none"
            if number == token.iteration:
                text, color = f"{token.probability:.2f}", INK
                fill = PARALLEL if token.parallel else ALONE
            elif number > token.iteration:
                fill = SETTLED
            elif guess is not None:
                text = shortened(labels[guess.token], int(columns[place] - 0.5))
            sheet.box(left[place] + 0.15, y + 0.06, columns[place] - 0.3, 0.88, fill)
            if text:
                sheet.text(left[place] + columns[place] / 2, y + 0.5, text, align="center", color=color, size=8.5)


def draw_drafts(rows: Sequence[DraftRow], heading: str, summary: str) -> Sheet:
    """Draw each update as a block of lines: its source, and its translation with colours by origin."""
    used = [origin for origin in ORIGINS if any(cell.token.origin is origin for row in rows for cell in row.cells)]
    blocks = [_Block(row) for row in rows]
    legend = wrapped([f"   {ORIGINS[origin]}  " for origin in used], NAME + TEXT + COUNTS - 2)
    sheet = Sheet(NAME + TEXT + COUNTS, 4.2 + sum(block.lines for block in blocks) + 1.2 * len(legend))
    sheet.text(1, 1, heading, weight="bold")
    sheet.text(1, 2, summary, color=FAINT)
    y = 2.7
    for line in legend:
        _legend(sheet, 1, y + 0.5, [(ORIGINS[used[index]], COLORS[used[index]]) for index in line])
        y += 1.2
    hides = any(not cell.shown for row in rows for cell in row.cells)
    for x, title, align in (
        (1, "update", "left"),
        (NAME, f"source, translation{' (italics: not shown yet)' * hides}", "left"),
        (PASSES, "passes", "right"),
        (SHARE, "accepted", "right"),
    ):
        sheet.text(x, y + 0.6, title, color=FAINT, size=8.5, align=align)
    y += 1.2
    for block in blocks:
        block.draw(sheet, y)
        y += block.lines
    return sheet


class _Block:
    """The layout of one update."""

    def __init__(self, row: DraftRow) -> None:
        self.row = row
        self._source = _lines(row.source, TEXT)
        self._cells = [cell.text for cell in row.cells]
        self._translation = wrapped(self._cells, TEXT) if row.cells else []
        self._note = _lines(row.note, TEXT)
        self.lines = 0.5 + len(self._source) + len(self._translation) + len(self._note)

    def draw(self, sheet: Sheet, top: float) -> None:
        """Draw the block with its upper edge at height ``top``."""
        row, y = self.row, top + 0.5
        sheet.box(1, top - 0.02, NAME + TEXT + COUNTS - 2, 0.02, "#d0d7de")
        name = f"{row.utterance}.{row.seq}" if row.utterance else ""
        sheet.text(1, y + 0.1, shortened(name, NAME - 2), weight="bold" if row.final else "normal")
        if row.cells:
            sheet.text(PASSES, y + 0.1, str(row.passes), align="right")
            sheet.text(SHARE, y + 0.1, row.acceptance, align="right")
        for line in self._source:
            sheet.text(NAME, y + 0.1, line, color=FAINT)
            y += 1
        for indices in self._translation:
            self._draw_tokens(sheet, y, indices)
            y += 1
        for line in self._note:
            sheet.text(NAME, y, line, color=FAINT, style="italic")
            y += 1

    def _draw_tokens(self, sheet: Sheet, y: float, indices: Sequence[int]) -> None:
        x = float(NAME)
        for place, index in enumerate(indices):
            cell = self.row.cells[index]
            text = cell.text.lstrip() if place == 0 else cell.text
            columns = width(text)
            origin = cell.token.origin
            sheet.box(x, y - 0.42, max(columns, 0.3), 0.86, COLORS[origin], "#ffffff")
            weight = "bold" if origin is Given.CORRECTION else "normal"
            style, color = ("normal", INK) if cell.shown else ("italic", FAINT)
            inside = len(text) - len(text.lstrip())
            if text.strip():
                sheet.text(x + inside, y, text.strip(), weight=weight, style=style, color=color)
            x += columns


def _lines(text: str, columns: int) -> list[str]:
    """Break a text into lines of at most ``columns``, after spaces and between wide characters."""
    words = [shortened(word, columns) for word in re.findall(r"[\u2e80-\uffef]\s*|[^\s\u2e80-\uffef]+\s*", text)]
    return ["".join(words[index] for index in line).rstrip() for line in wrapped(words, columns)] if words else []


def _legend(sheet: Sheet, x: float, y: float, entries: Sequence[tuple[str, str]]) -> None:
    for text, color in entries:
        sheet.box(x, y - 0.32, 2, 0.64, color)
        sheet.text(x + 2.8, y, text, size=9)
        x += width(text) + 5
