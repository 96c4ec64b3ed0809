"""Captions on a terminal, redrawn in place: a block per utterance, a column per language.

`rich.live` keeps them below all other output.  It assumes that each line takes one row: if a terminal becomes narrower
and wraps them, parts of the picture stay above the next one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.control import Control
from rich.live import Live
from rich.measure import Measurement
from rich.segment import Segment, SegmentLines
from rich.table import Table
from rich.text import Text

from redraft.captions.breaks import broken
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.read import printable
from redraft.captions.formats.write import Writer, by, failure_line
from redraft.captions.words import UNBREAKABLE

#: Minimum width of a column in character cells; narrower columns are stacked.
NARROWEST = 26
#: Cells between two columns.
_GAP = 2


@dataclass(slots=True)
class _Block:
    """An utterance on the screen: the newest source text and each language's newest caption.

    ``drawn`` caches its lines at a terminal ``width``, since most blocks do not change between two redraws.
    """

    source: str = ""
    seq: int = -1
    captions: dict[str, Caption] = field(default_factory=dict)
    drawn: list[list[Segment]] = field(default_factory=list)
    width: int = 0


class LiveWriter(Writer):
    """Shows growing captions below their source, with recent utterances above.

    Utterances that leave the redrawn part stay on the terminal as they were drawn, for scrolling back.  Other output to
    the console, and to standard error if that is a terminal too, appears above the captions.

    Args:
        languages: target languages, in the order of their columns.
        console: where to draw; standard output by default.
    """

    #: Maximum number of earlier utterances to redraw along with the newest.
    HISTORY = 3

    def __init__(self, languages: Sequence[str], console: Console | None = None) -> None:
        self._languages, self._console = tuple(languages), console or Console()
        self._blocks: dict[str, _Block] = {}
        #: Whether the picture may be taller than the screen.
        self._whole = False
        # What other threads print draws the captions again under this lock of rich: with a second lock, each thread
        # could wait for the other.
        self._lock = self._console._lock
        errors = sys.stderr is not None and sys.stderr.isatty()
        self._live = Live(
            self, console=self._console, auto_refresh=False, redirect_stderr=errors, vertical_overflow="visible"
        )

    def write(self, event: Event) -> None:
        """Show a caption; a failure is printed above the captions."""
        with self._lock:
            self._live.start()
            if isinstance(event, Failure):
                self._console.print(Text(failure_line(event), style="yellow"))
                return
            block = self._blocks.setdefault(event.utterance, _Block())
            block.captions[event.language], block.width = event, 0
            if event.seq >= block.seq:
                block.source, block.seq = by(event.speaker, event.source), event.seq
            leaving: list[RenderableType] = []
            while self._too_many():
                leaving.append(SegmentLines(self._lines(self._blocks.pop(next(iter(self._blocks)))), new_lines=True))
            self._console.print(*(leaving or [Control()]))

    def close(self) -> None:
        """Stop redrawing, and leave the captions on the screen."""
        with self._lock:
            self._whole = True
            self._live.stop()

    def render(self) -> SegmentLines:
        """Return the current picture: titles, and the utterances that are redrawn."""
        with self._lock:
            titles = self._grid([Text(each, style="bold") for each in self._languages])
            lines = self._console.render_lines(titles, pad=False) if self._side_by_side and self._blocks else []
            for block in self._blocks.values():
                lines += self._lines(block)
            return SegmentLines(lines, new_lines=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[SegmentLines]:
        lines = list(self.render().lines)
        yield SegmentLines(lines if self._whole else lines[-console.height :], new_lines=True)

    def _too_many(self) -> bool:
        """Whether an utterance must be printed for good, because the picture is taller than the screen."""
        count = len(self._blocks)
        tall = len(self.render().lines) >= self._console.height
        return count > 1 and (count > self.HISTORY + 1 or tall)

    @property
    def _side_by_side(self) -> bool:
        count = len(self._languages)
        return count > 1 and self._console.width >= count * NARROWEST + (count - 1) * _GAP

    def _lines(self, block: _Block) -> list[list[Segment]]:
        if block.width != self._console.width:
            block.drawn = self._console.render_lines(self._block(block), pad=False)
            block.width = self._console.width
        return block.drawn

    def _block(self, block: _Block) -> RenderableType:
        source = _Wrapped(block.source.strip(), "dim italic")
        shown = (block.captions.get(each) for each in self._languages)
        cells = [_Wrapped(each.text if each else "") for each in shown]
        if self._side_by_side:
            return Group(source, self._grid(cells), "")
        stacked = Table.grid(padding=(0, 1, 0, 0))
        stacked.add_column(no_wrap=True, max_width=max(1, self._console.width // 3))
        stacked.add_column(overflow="fold")
        for title, cell in zip(self._languages, cells, strict=True):
            stacked.add_row(Text(title, style="bold"), cell)
        return Group(source, stacked, "")

    def _grid(self, cells: Sequence[RenderableType]) -> Table:
        grid = Table.grid(padding=(0, _GAP, 0, 0), expand=True)
        for _ in self._languages:
            grid.add_column(ratio=1, overflow="fold")
        grid.add_row(*cells)
        return grid


class _Wrapped:
    """Text that may be broken between any two Chinese or Japanese characters.

    rich prefers to break at spaces, so a growing run of such characters would jump to the next line.
    """

    def __init__(self, text: str, style: str = "") -> None:
        self._text = Text(printable(text), style=style, overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield from self._text.divide(breaks(self._text.plain, options.max_width))


def breaks(text: str, width: int) -> list[int]:
    """Return the positions of line breaks for ``width`` cells; longer words are left for rich to fold."""
    pieces = list(UNBREAKABLE.finditer(text))
    lines = broken([piece[0] for piece in pieces], width)
    return [pieces[count].start() for count in accumulate(map(len, lines[:-1]))]
