"""Captions on a terminal, redrawn in place: a block per utterance, a column per language or method.

If the output is not a terminal, captions are written as plain lines.

rich's hook for printing keeps them below all other output, as `rich.live` does, which assumes that each line takes one
row: after a terminal has become narrower and has wrapped them, parts would appear twice.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TextIO, cast

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, Group, RenderableType, RenderHook
from rich.control import Control
from rich.file_proxy import FileProxy
from rich.measure import Measurement
from rich.segment import ControlType, Segment, SegmentLines
from rich.table import Table
from rich.text import Text

from redraft.captions.breaks import broken
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.read import printable
from redraft.captions.formats.write import LinesWriter, Writer, by, failure_line
from redraft.captions.words import UNBREAKABLE
from redraft.errors import OptionError


class SizeWatch:
    """Calls a function, on a separate thread, after a terminal's size has changed.

    It polls, because a SIGWINCH handler would wait until the main thread returns from the model or the input, and
    Windows has no such signal.

    Args:
        changed: called without arguments, never concurrently.
    """

    def __init__(self, console: Console, changed: Callable[[], None], seconds: float = 0.1) -> None:
        self._console, self._changed, self._seconds = console, changed, seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="redraft-resize", daemon=True)

    def start(self) -> None:
        """Start polling."""
        self._thread.start()

    def stop(self) -> None:
        """Stop polling, and wait for a running call unless called from it."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        size = self._console.size
        while not self._stop.wait(self._seconds):
            if (now := self._console.size) != size:
                size = now
                self._changed()


#: Minimum width of a column in character cells; narrower columns are stacked.
NARROWEST = 26
#: Cells between two columns.
_GAP = 2


@dataclass(slots=True)
class _Block:
    """An utterance on the screen: the newest source text and each column's newest caption.

    ``drawn`` caches its lines at a terminal ``width``, since most blocks do not change between two redraws.
    """

    source: str = ""
    seq: int = -1
    captions: dict[str, Caption] = field(default_factory=dict)
    drawn: list[list[Segment]] = field(default_factory=list)
    width: int = 0


class LiveWriter(Writer, RenderHook):
    """Shows growing captions below their source, with recent utterances above.

    Utterances that leave the redrawn part stay on the terminal as they were drawn, for scrolling back.  Other output to
    the console, and to standard error if that is a terminal too, appears above the captions.

    Args:
        columns: titles, in order: target languages, or names of methods to compare.
        console: where to draw; standard output by default.

    Raises:
        OptionError: there are no columns, or a title occurs twice.
    """

    #: Maximum number of earlier utterances to redraw along with the newest.
    HISTORY = 3

    def __init__(self, columns: Sequence[str], console: Console | None = None) -> None:
        if not columns or len(set(columns)) < len(columns):
            raise OptionError(f"must be one or more different titles, not {list(columns)!r}", "columns")
        self._columns = tuple(columns)
        self._console = Console() if console is None else console
        self._blocks: dict[str, _Block] = {}
        #: The lines that are redrawn, and how many rows of the screen they take.
        self._drawn: list[list[Segment]] = []
        self._rows = 0
        #: Width of the terminal when they were drawn; 0 before anything was.
        self._width = 0
        self._resizes = SizeWatch(self._console, self._draw)
        self._errors: TextIO | None = None
        self._lock = threading.RLock()
        self._plain: LinesWriter | None = None
        if self._console.is_dumb_terminal or not self._console.is_terminal:
            self._plain = LinesWriter(self._console.file, sys.stderr)

    def write(self, event: Event, column: str | None = None) -> None:
        """Show a caption in ``column`` (by default, its language); a failure is printed above the captions.

        Raises:
            OptionError: the column does not exist.
        """
        if isinstance(event, Caption):
            column = event.language if column is None else column
            if column not in self._columns:
                raise OptionError(f"must be one of {', '.join(self._columns)}, not {column!r}", "column")
        if self._plain:
            self._plain.write(event, column)
            return
        with self._lock:
            if not self._width:
                self._begin()
            if isinstance(event, Failure):
                self._draw(Text(failure_line(event), style="yellow"))
            elif column is not None:
                block = self._blocks.setdefault(event.utterance, _Block())
                block.captions[column], block.width = event, 0
                if event.seq >= block.seq:
                    block.source, block.seq = by(event.speaker, event.source), event.seq
                self._draw()

    def close(self) -> None:
        """Stop redrawing, and leave the captions on the screen."""
        if not self._width:
            return
        self._resizes.stop()
        try:
            with self._lock:
                self._draw(whole=True)
                self._console.pop_render_hook()
                self._console.print("\n" if self._drawn else "", end="")
                self._console.show_cursor(True)
        finally:
            self._blocks.clear()
            self._drawn, self._rows, self._width = [], 0, 0
            if self._errors is not None:
                sys.stderr, self._errors = self._errors, None

    def render(self) -> SegmentLines:
        """Return the current picture: titles, and the utterances that are redrawn."""
        titles = self._grid([Text(each, style="bold") for each in self._columns])
        lines = self._trimmed(titles) if self._side_by_side else []
        for block in self._blocks.values():
            lines += self._lines(block)
        return SegmentLines(lines, new_lines=True)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Erase the captions before other output, and draw them below it; the console calls this at every print."""
        erased, self._rows = self._rows, len(self._drawn)
        # Row by row, since terminals keep a screen that is cleared at once for scrolling back, where it would be twice.
        row = (ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)
        erase = Control(ControlType.CARRIAGE_RETURN, row[1], *row * (erased - 1)) if erased else Control()
        last = SegmentLines(self._drawn[-1:])
        return [erase, *renderables, SegmentLines(self._drawn[:-1], new_lines=True), last]

    def _begin(self) -> None:
        self._console.show_cursor(False)
        self._console.push_render_hook(self)
        self._width = self._console.width
        self._resizes = SizeWatch(self._console, self._draw)
        self._resizes.start()
        if sys.stderr is not None and sys.stderr.isatty():
            self._errors = sys.stderr
            sys.stderr = cast(TextIO, _Errors(self._console, sys.stderr, self._lock))

    def _draw(self, *leaving: RenderableType, whole: bool = False) -> None:
        """Draw the newest captions again, below parts that are printed for good.

        Args:
            leaving: the parts.
            whole: whether to draw also what is taller than the screen.
        """
        with self._lock:
            width, height = self._console.size
            if width < self._width:
                self._wrapped_again(width, height)
            parts, self._width = list(leaving), width
            while self._too_many():
                parts.append(SegmentLines(self._lines(self._blocks.pop(next(iter(self._blocks)))), new_lines=True))
            lines = list(self.render().lines) if self._blocks else []
            self._drawn = lines if whole else lines[-height:]
            self._console.print(*(parts or [Control()]))

    def _wrapped_again(self, width: int, height: int) -> None:
        """Count the rows of a terminal that has become narrower; what it has moved off the screen stays there."""
        while len(self._blocks) > 1 and _count_rows(self._drawn, width) > height:
            del self._blocks[next(iter(self._blocks))]
            del self._drawn[: len(self._drawn) - sum(len(block.drawn) for block in self._blocks.values())]
        self._rows = min(_count_rows(self._drawn, width), height)

    def _too_many(self) -> bool:
        """Whether an utterance must be printed for good, because the picture is taller than the screen."""
        count = len(self._blocks)
        tall = len(self.render().lines) >= self._console.height
        return count > 1 and (count > self.HISTORY + 1 or tall)

    @property
    def _side_by_side(self) -> bool:
        count = len(self._columns)
        return count > 1 and self._console.width >= count * NARROWEST + (count - 1) * _GAP

    def _lines(self, block: _Block) -> list[list[Segment]]:
        if block.width != self._console.width:
            block.drawn, block.width = self._trimmed(self._block(block)), self._console.width
        return block.drawn

    def _trimmed(self, part: RenderableType) -> list[list[Segment]]:
        """Return the lines of a part without spaces at their ends, which terminals would wrap into more lines."""
        return [_trimmed(line) for line in self._console.render_lines(part, pad=False)]

    def _block(self, block: _Block) -> RenderableType:
        source = _Wrapped(Text(printable(block.source).strip(), style="dim italic", overflow="fold"))
        cells = [_shown(block.captions.get(column)) for column in self._columns]
        if self._side_by_side:
            return Group(source, self._grid(cells), "")
        stacked = Table.grid(padding=(0, 1, 0, 0))
        stacked.add_column(no_wrap=True, max_width=max(1, self._console.width // 3))
        stacked.add_column(overflow="fold")
        for title, cell in zip(self._columns, cells, strict=True):
            stacked.add_row(Text(title, style="bold"), cell)
        return Group(source, stacked, "")

    def _grid(self, cells: Sequence[RenderableType]) -> Table:
        grid = Table.grid(padding=(0, _GAP, 0, 0), expand=True)
        for _ in self._columns:
            grid.add_column(ratio=1, overflow="fold")
        grid.add_row(*cells)
        return grid


class _Errors(FileProxy):
    """Standard error while captions are redrawn: its lines appear above them."""

    def __init__(self, console: Console, stream: TextIO, lock: threading.RLock) -> None:
        super().__init__(console, stream)
        self._lock = lock

    def write(self, text: str) -> int:
        with self._lock:
            return super().write(text)


def _trimmed(line: list[Segment]) -> list[Segment]:
    while line and not line[-1].text.strip():
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else []


def _count_rows(lines: Iterable[Iterable[Segment]], width: int) -> int:
    """Return how many rows lines take on a terminal that wraps them anywhere."""
    count = 0
    for line in lines:
        count, used = count + 1, 0
        for character in "".join(segment.text for segment in line):
            used += (cells := cell_len(character))
            if used > width:
                count, used = count + 1, cells
    return count


class _Wrapped:
    """Text that may be broken between any two Chinese or Japanese characters.

    rich prefers to break at spaces, so a growing run of such characters would jump to the next line.
    """

    def __init__(self, text: Text) -> None:
        self._text = text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield from self._text.divide(breaks(self._text.plain, options.max_width))


def breaks(text: str, width: int) -> list[int]:
    """Return the positions of line breaks for ``width`` cells; longer words are left for rich to fold."""
    pieces = list(UNBREAKABLE.finditer(text))
    lines = broken([piece[0] for piece in pieces], width)
    return [pieces[count].start() for count in accumulate(map(len, lines[:-1]))]


def _shown(caption: Caption | None) -> _Wrapped:
    """Return what is shown of a caption."""
    text = Text(overflow="fold")
    if caption is not None:
        text.append(printable(caption.text))
    return _Wrapped(text)
