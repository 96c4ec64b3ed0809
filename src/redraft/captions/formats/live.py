"""Captions on a terminal, redrawn in place: a block per utterance, a column per language.

`rich.live` keeps them below all other output.  It assumes that each line takes one row: if a terminal becomes narrower
and wraps them, parts of the picture stay above the next one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.control import Control
from rich.live import Live
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
        #: Utterance -> its newest caption in each language.
        self._blocks: dict[str, dict[str, Caption]] = {}
        #: Returns the lines of captions; most do not change between two redraws.
        self._drawn = lru_cache(maxsize=16)(self._lines)
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
            self._blocks.setdefault(event.utterance, {})[event.language] = event
            leaving: list[RenderableType] = []
            while self._too_many():
                lines = self._drawn((*self._blocks.pop(next(iter(self._blocks))).values(),), self._console.width)
                leaving.append(SegmentLines(lines, new_lines=True))
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
            for captions in self._blocks.values():
                lines += self._drawn((*captions.values(),), self._console.width)
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

    def _lines(self, captions: tuple[Caption, ...], width: int) -> list[list[Segment]]:
        """Return the lines of an utterance."""
        newest = max(captions, key=lambda caption: (caption.source != "", caption.seq))
        shown = {each.language: each.text for each in captions}
        source = _wrapped(by(newest.speaker, newest.source).strip(), width, "dim italic")
        texts = [shown.get(each, "") for each in self._languages]
        if self._side_by_side:
            grid = self._grid([_wrapped(text, width // len(texts) - _GAP) for text in texts])
        else:
            most = max(1, width // 3)
            room = width - min(most, max(map(cell_len, self._languages))) - 1
            grid = Table.grid(padding=(0, 1, 0, 0))
            grid.add_column(no_wrap=True, max_width=most)
            grid.add_column(overflow="fold")
            for title, text in zip(self._languages, texts, strict=True):
                grid.add_row(Text(title, style="bold"), _wrapped(text, room))
        return self._console.render_lines(Group(source, grid, ""), pad=False)

    def _grid(self, cells: Sequence[RenderableType]) -> Table:
        grid = Table.grid(padding=(0, _GAP, 0, 0), expand=True)
        for _ in self._languages:
            grid.add_column(ratio=1, overflow="fold")
        grid.add_row(*cells)
        return grid


def _wrapped(text: str, width: int, style: str = "") -> Text:
    """Return a text in lines, also between any two Chinese or Japanese characters.

    rich prefers to break at spaces, so a growing run of such characters would jump to the next line.
    """
    whole = Text(printable(text), style=style, overflow="fold")
    return Text("\n").join(whole.divide(breaks(whole.plain, width)))


def breaks(text: str, width: int) -> list[int]:
    """Return the positions of line breaks for ``width`` cells; longer words are left for rich to fold."""
    pieces = list(UNBREAKABLE.finditer(text))
    lines = broken([piece[0] for piece in pieces], width)
    return [pieces[count].start() for count in accumulate(map(len, lines[:-1]))]
