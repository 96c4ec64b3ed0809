"""Captions on a terminal, redrawn in place: a block per utterance, a column per language or method.

If the output is not a terminal, captions are written as plain lines.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.control import Control
from rich.live import Live
from rich.measure import Measurement
from rich.segment import ControlType, Segment, SegmentLines
from rich.table import Table
from rich.text import Text

from redraft.captions.breaks import broken
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.read import printable
from redraft.captions.formats.write import LinesWriter, by, failure_line
from redraft.captions.words import UNBREAKABLE
from redraft.errors import OptionError


class SizeWatch:
    """Calls a function, on a separate thread, after a terminal's size has changed.

    It polls, because a SIGWINCH handler would wait until the main thread returns from the model or the input, and
    Windows has no such signal.

    Args:
        console: the terminal.
        changed: called without arguments, never concurrently.
        seconds: polling interval.
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


class LiveWriter:
    """Shows growing captions below their source, with recent utterances above.

    Utterances that leave the redrawn part stay on the terminal for scrolling back.  When the terminal's width changes,
    the screen is cleared and drawn again, because the terminal has rewrapped the lines.

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
        self._above: deque[_Block | Text] = deque(maxlen=_KEPT)
        self._live: Live | None = None
        self._resizes: SizeWatch | None = None
        self._drawn_width = 0
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
                self._leave(Text(failure_line(event), style="yellow"))
            elif column is not None:
                self._place(event, column)
                self._redraw()

    def close(self) -> None:
        """Stop redrawing, and leave the captions on the screen."""
        if self._resizes:
            self._resizes.stop()
            self._resizes = None
        if self._live:
            self._live.stop()
            self._live = None
            self._blocks.clear()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Draw nothing while the block runs: other threads that write, or notice another size, wait for its end."""
        with self._lock:
            yield

    def render(self) -> RenderableType:
        """Return the current picture: titles, and the utterances that are redrawn."""
        parts = [self._lines(block) for block in self._blocks.values()]
        return Group(self._titles(), *parts) if self._side_by_side else Group(*parts)

    def _place(self, caption: Caption, column: str) -> None:
        block = self._blocks.setdefault(caption.utterance, _Block())
        block.captions[column], block.width = caption, 0
        if caption.seq >= block.seq:
            block.source, block.seq = by(caption.speaker, caption.source), caption.seq

    def _leave(self, part: _Block | Text) -> None:
        """Print a part that is no longer redrawn, above the live part."""
        self._above.append(part)
        self._console.print(self._final(part), end="" if isinstance(part, _Block) else "\n")

    def _final(self, part: _Block | Text) -> RenderableType:
        return self._lines(part) if isinstance(part, _Block) else part

    def _redraw(self) -> None:
        if self._live is not None and self._drawn_width != self._console.width:
            self._start_over(self._live)
        if self._live is None:
            # What is printed to standard error stands above the captions, unless it goes elsewhere.
            above = sys.stderr is not None and sys.stderr.isatty()
            self._live = Live(console=self._console, auto_refresh=False, redirect_stderr=above)
            self._live.start()
            self._drawn_width = self._console.width
        if self._resizes is None:
            self._resizes = SizeWatch(self._console, self._resized)
            self._resizes.start()
        while self._too_many():
            self._leave(self._blocks.pop(next(iter(self._blocks))))
        self._live.update(self.render(), refresh=True)

    def _resized(self) -> None:
        with self._lock:
            if self._live is not None:
                self._redraw()

    def _start_over(self, live: Live) -> None:
        """Clear the screen and print the most recent parts again."""
        live.transient = True
        live.update(Group())  # it would be drawn once more
        live.stop()
        self._live = None
        # Row by row: terminals keep a screen that is cleared at once for scrolling back, where it would stand twice.
        row = (ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_DOWN, 1)
        self._console.control(Control(ControlType.HOME, *row * self._console.height, ControlType.HOME))
        room, shown = self._console.height - len(self._console.render_lines(self.render())) - 1, []
        for part in reversed(self._above):
            room -= len(self._console.render_lines(self._final(part)))
            if room < 0:
                break
            shown.append(part)
        for part in reversed(shown):
            self._console.print(self._final(part), end="" if isinstance(part, _Block) else "\n")

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
            block.drawn = self._console.render_lines(self._block(block), pad=False)
            block.width = self._console.width
        return SegmentLines(block.drawn, new_lines=True)

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
