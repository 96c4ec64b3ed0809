"""Captions on a terminal, redrawn in place: a block per utterance, a column per language or method.

If the output is not a terminal, captions are written as plain lines.

`rich.live` redraws in place too, but it moves the cursor up by the height of its last picture: after a terminal has
become narrower and has wrapped those lines, parts of them appear twice.  It also crops a picture that is too tall, but
older utterances must stay for scrolling back, and refreshes from a timer, which would cost the model time.
"""

from __future__ import annotations

import io
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TextIO, cast

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.control import Control
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
#: Number of printed blocks and failures to keep, for drawing the screen again when its width changes.
_KEPT = 100
#: Cells between two columns.
_GAP = 2


class _Errors(io.TextIOBase):
    """Replaces standard error while captions are redrawn, so that its lines appear above them.

    Args:
        leave: called with each line.
    """

    def __init__(self, stream: TextIO, leave: Callable[[str], None]) -> None:
        self.stream, self._leave, self._begun = stream, leave, ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._leave(line)
        return len(text)

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.stream.fileno()


@dataclass(slots=True)
class _Printed:
    """A part that was printed above the captions, and its lines on the screen.

    A ``part`` of None stands for empty lines, left where there are fewer lines than before.
    """

    part: _Block | Text | None
    lines: list[str]


@dataclass(slots=True)
class _Block:
    """An utterance on the screen: the newest source text and each column's newest caption.

    ``drawn`` caches its rendering at a terminal ``width``, since most blocks do not change between two redraws.
    """

    source: str = ""
    seq: int = -1
    captions: dict[str, Caption] = field(default_factory=dict)
    drawn: list[list[Segment]] = field(default_factory=list)
    width: int = 0


class LiveWriter(Writer):
    """Shows growing captions below their source, with recent utterances above.

    Utterances that leave the redrawn part stay on the terminal for scrolling back.  When the terminal's width changes,
    it wraps all lines again; what is still on the screen is then redrawn, so that nothing appears twice.

    Other output to standard error appears above the captions, if that is a terminal too.

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
        self._above: deque[_Printed] = deque(maxlen=_KEPT)
        #: The redrawn lines as they are on the screen, and other output that waits to be printed.
        self._drawn: list[str] = []
        self._notices: deque[str] = deque()
        self._errors: _Errors | None = None
        #: Width of the terminal when they were drawn; 0 before anything was.
        self._drawn_width = 0
        self._resizes: SizeWatch | None = None
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
            if isinstance(event, Failure):
                self._redraw(Text(failure_line(event), style="yellow"))
            elif column is not None:
                self._place(event, column)
                self._redraw()

    def close(self) -> None:
        """Stop redrawing, and leave the captions on the screen."""
        if self._resizes:
            self._resizes.stop()
            self._resizes = None
        try:
            with self._lock:
                if self._drawn_width:
                    self._redraw(whole=True)
                    self._console.print("\n" if self._drawn else "", end="")
                    self._console.show_cursor(True)
        finally:
            self._blocks.clear()
            self._drawn, self._drawn_width = [], 0
            if self._errors and sys.stderr is self._errors:
                sys.stderr = self._errors.stream
            self._errors = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Draw nothing while the block runs; other threads that write, or find another size, wait for its end."""
        with self._lock:
            yield
            if self._notices:
                self._redraw()

    def render(self) -> RenderableType:
        """Return the current picture: titles, and the utterances that are redrawn."""
        parts = [self._lines(block) for block in self._blocks.values()]
        return Group(self._trimmed(self._titles()), *parts) if self._side_by_side else Group(*parts)

    def _place(self, caption: Caption, column: str) -> None:
        block = self._blocks.setdefault(caption.utterance, _Block())
        block.captions[column], block.width = caption, 0
        if caption.seq >= block.seq:
            block.source, block.seq = by(caption.speaker, caption.source), caption.seq

    def _notice(self, line: str) -> None:
        """Print another part's line to standard error, at once or when captions may be drawn again."""
        self._notices.append(line)
        if self._lock.acquire(blocking=False):
            try:
                self._redraw()
            finally:
                self._lock.release()

    def _begin(self) -> None:
        self._console.show_cursor(False)
        self._drawn_width = self._console.width
        self._resizes = SizeWatch(self._console, self._resized)
        self._resizes.start()
        if sys.stderr is not None and sys.stderr.isatty():
            self._errors = _Errors(sys.stderr, self._notice)
            sys.stderr = cast(TextIO, self._errors)

    def _resized(self) -> None:
        with self._lock:
            if self._drawn_width:
                self._redraw()

    def _redraw(self, *leaving: _Block | Text, whole: bool = False) -> None:
        """Draw the newest captions again, below parts that are printed for good.

        Args:
            leaving: the parts.
            whole: whether to draw also what is taller than the screen.
        """
        if not self._drawn_width:
            self._begin()
        width, height = self._console.size
        rows, parts, resized = len(self._drawn), list[_Block | Text](), width != self._drawn_width
        if resized:
            rows, parts = self._wrapped_again(width, height)
            self._drawn_width = width
        parts += [*leaving, *(Text.from_ansi(self._notices.popleft()) for _ in range(len(self._notices)))]
        while self._too_many():
            parts.append(self._blocks.pop(next(iter(self._blocks))))
        above = [(part, self._lines(part) if isinstance(part, _Block) else self._trimmed(part)) for part in parts]
        lines = self._console.render_lines(self.render(), pad=False) if self._blocks else []
        lines = lines if whole else lines[-height:]
        with self._console:  # written at once
            self._erase(rows)
            left = rows - sum(len(each.lines) for _, each in above) - len(lines)
            if resized and left > 0:  # so that nothing is empty below, which terminals keep
                self._above.append(_Printed(None, [""] * left))
                self._console.print("\n" * left, end="")
            for part, each in above:
                self._above.append(_Printed(part, [_text(line) for line in each.lines]))
                self._console.print(each, end="")
            self._console.print(SegmentLines(lines[:-1], new_lines=True), SegmentLines(lines[-1:]), end="")
        self._drawn = [_text(line) for line in lines]

    def _erase(self, rows: int) -> None:
        """Erase rows from that of the cursor upwards; the cursor is then at the beginning of the first.

        Row by row, since terminals keep a screen that is cleared at once for scrolling back, where it would be twice.
        """
        if rows:
            row = (ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)
            self._console.control(Control(ControlType.CARRIAGE_RETURN, row[1], *row * (rows - 1)))

    def _wrapped_again(self, width: int, height: int) -> tuple[int, list[_Block | Text]]:
        """Return what a terminal of another width still shows; captions that it has moved off the screen stay there.

        Returns:
            The number of rows, and the parts in them that are above the captions.
        """
        rows = _rows(self._drawn, width)
        while len(self._blocks) > 1 and rows > height:
            gone = self._blocks.pop(next(iter(self._blocks)))
            count = len(self._drawn) - sum(len(block.drawn) for block in self._blocks.values())
            self._above.append(_Printed(gone, self._drawn[: max(0, count)]))
            del self._drawn[: max(0, count)]
            rows = _rows(self._drawn, width)
        parts: list[_Block | Text] = []
        while self._above and rows + _rows(self._above[-1].lines, width) <= height:
            printed = self._above.pop()
            rows += _rows(printed.lines, width)
            parts = parts if printed.part is None else [printed.part, *parts]
        return min(rows, height), parts

    def _too_many(self) -> bool:
        """Whether an utterance must be printed for good, because the picture is taller than the screen."""
        if len(self._blocks) <= 1:
            return False
        if len(self._blocks) > self.HISTORY + 1:
            return True
        height = sum(len(self._lines(block).lines) for block in self._blocks.values())
        return height + self._side_by_side >= self._console.height

    @property
    def _side_by_side(self) -> bool:
        count = len(self._columns)
        return count > 1 and self._console.width >= count * NARROWEST + (count - 1) * _GAP

    def _titles(self) -> RenderableType:
        return self._grid([Text(title, style="bold") for title in self._columns])

    def _lines(self, block: _Block) -> SegmentLines:
        if block.width != self._console.width:
            block.drawn = list(self._trimmed(self._block(block)).lines)
            block.width = self._console.width
        return SegmentLines(block.drawn, new_lines=True)

    def _trimmed(self, part: RenderableType) -> SegmentLines:
        """Return the lines of a part without spaces at their ends, which terminals would wrap into more lines."""
        return SegmentLines(map(_trimmed, self._console.render_lines(part, pad=False)), new_lines=True)

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


def _trimmed(line: list[Segment]) -> list[Segment]:
    while line and not line[-1].text.strip():
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else []


def _text(line: Iterable[Segment]) -> str:
    return "".join(segment.text for segment in line)


def _rows(lines: Iterable[str], width: int) -> int:
    """Return how many rows lines take on a terminal that wraps them anywhere."""
    count = 0
    for line in lines:
        count, used = count + 1, 0
        for character in line:
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
