"""The stage of ``redraft demo``: the talk as updates, and the live view of the players' captions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from threading import Event

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from redraft.captions.events import Update
from redraft.captions.formats.live import breaks
from redraft.captions.formats.read import paced
from redraft.captions.languages import parse_language
from redraft.captions.talk import RECORDING
from redraft.cli.demo.player import Player
from redraft.errors import RedraftError
from redraft.speech.audio import at_speed, file_blocks
from redraft.speech.backlog import Backlog
from redraft.speech.microphone import playing
from redraft.speech.recogniser import Recogniser, transcribe
from redraft.speech.sentences import SentenceCutter

NO_SOUND = " · no sound device"
#: Maximum number of earlier sentences above a caption.
EARLIER = 2
#: Maximum lines of text in a panel, and the minimum below which the legend is dropped.
MOST_LINES, FEWEST_LINES = 5, 2
#: Lines of source text shown.
SOURCE_LINES = 2
#: Minimum columns for languages in the title.
_WIDE = 90
#: Cells taken by a panel's borders and padding.
_FRAME = 4


def first(updates: Iterable[Update], sentences: int) -> Iterator[Update]:
    """Yield the updates of the first sentences; 0 yields all."""
    finished = 0
    for update in updates:
        yield update
        finished += update.final
        if sentences and finished == sentences:
            return


def timed(talk: Sequence[Update], speed: float, silent: Callable[[], None]) -> Iterator[Update]:
    """Yield the updates of a talk at ``speed`` times its original speed, with its sound if that is 1; 0 never waits.

    ``silent`` is called if the sound cannot be played.
    """
    if not speed:
        yield from talk
        return
    with playing(str(RECORDING)) if speed == 1 else nullcontext(True) as sounds:
        if not sounds:
            silent()
        yield from paced(talk, speed=speed)


def recognised(recogniser: Recogniser, found: list[Update], silent: Callable[[], None]) -> Iterator[Update]:
    """Yield what a recogniser makes of the recording of the talk at its original speed, while its sound plays.

    Every update is also appended to ``found``.  ``silent`` is called if the sound cannot be played.

    Raises:
        RedraftError: at the end, if the recogniser has failed.
    """
    with playing(str(RECORDING)) as sounds:
        if not sounds:
            silent()
        blocks = at_speed(file_blocks(str(RECORDING)), 1.0)
        problem = ""
        with closing(Backlog(transcribe(blocks, recogniser, SentenceCutter()), lambda: True)) as items:
            for item in items:
                if isinstance(item, Update):
                    found.append(item)
                    yield item
                else:  # a recogniser that was started again goes on
                    problem = item.message
        if problem:
            raise RedraftError(problem)


class Stage:
    """The live view of a talk: the source at the top, then a row per language with a panel per method.

    It uses the terminal's alternate screen while the talk plays, so resizing works.  Nothing of it stays on the
    terminal: a single sentence, for which any method may be the best, would look like the result of the talk.

    Args:
        players: the players to show, by language and then by method.
        console: the terminal.
        length: length of the talk in seconds.
        listening: name of the recogniser that recognises it now; empty if its text was recognised before.
        silent: set if the talk should be heard and cannot be.
    """

    #: Minimum seconds between two redraws; drawing takes time from the methods under comparison.
    INTERVAL = 0.05

    def __init__(
        self,
        players: Sequence[Player],
        console: Console,
        length: float,
        listening: str = "",
        silent: Event | None = None,
    ) -> None:
        self._players, self._console, self._length, self._listening = players, console, length, listening
        self._silent = silent or Event()
        self._languages = list(dict.fromkeys(each.language for each in players))
        self._update: Update | None = None
        self._drawn = -math.inf
        # By itself, it only has to notice other sizes of the terminal.
        self._live = Live(console=console, screen=True, refresh_per_second=2, get_renderable=self._picture)

    def __enter__(self) -> Stage:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, update: Update) -> None:
        """Redraw with the captions of all players, unless the last redraw was too recent."""
        self._update = update
        if time.monotonic() - self._drawn >= self.INTERVAL:
            self._live.refresh()
            self._drawn = time.monotonic()

    def _picture(self) -> RenderableType:
        return self.draw(self._update) if self._update else ""

    def draw(self, update: Update) -> RenderableType:
        """Draw the moment of an update; it fits the console's height if that allows one line per panel."""
        top, legend = Group(self._title(update), self._source(update)), self._legend()
        above, below = (len(self._console.render_lines(part)) for part in (top, legend))
        room = (self._console.height - above) // len(self._languages) - 2
        with_legend = (self._console.height - above - below) // len(self._languages) - 2
        if with_legend >= FEWEST_LINES:
            return Group(top, self._grid(update, min(with_legend, MOST_LINES)), legend)
        return Group(top, self._grid(update, min(max(room, 1), MOST_LINES)))

    def _title(self, update: Update) -> RenderableType:
        names = [parse_language(tag).name for tag in self._languages]
        listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
        title = Table.grid(expand=True, padding=(0, 1))
        title.add_column(no_wrap=True)
        title.add_column(ratio=1)
        title.add_column(no_wrap=True, justify="right")
        about = f"  a talk, live into {listed}" if self._console.width >= _WIDE else ""
        now, total = update.time or 0.0, max(1, self._length)
        title.add_row(
            Text.assemble(("Redraft demo", "bold"), about),
            ProgressBar(total=total, completed=now, complete_style="cyan", finished_style="cyan"),
            Text(f"{minutes(now)} of {minutes(self._length)}", style="dim"),
        )
        return title

    def _source(self, update: Update) -> Panel:
        note = NO_SOUND if self._silent.is_set() else ""
        words = Text(update.text, style="bold" if update.final else "")
        return Panel(
            self._newest([words], self._console.width - _FRAME, SOURCE_LINES),
            title=f"English, as {self._listening or 'the recogniser'} sends it{note}",
            title_align="left",
            border_style="dim",
            height=SOURCE_LINES + 2,
        )

    def _grid(self, update: Update, lines: int) -> Table:
        grid = Table.grid(expand=True, padding=(0, 1))
        rows = [[player for player in self._players if player.language == tag] for tag in self._languages]
        for _ in rows[0]:
            grid.add_column(ratio=1)
        for row in rows:
            width = self._console.width // len(row) - _FRAME - 1
            grid.add_row(*(self._panel(player, update, width, lines) for player in row))
        return grid

    def _panel(self, player: Player, update: Update, width: int, lines: int) -> Panel:
        caption = Text(player.text)
        earlier = [each.text for each in player.finished if each.utterance != update.utterance][-EARLIER:]
        return Panel(
            self._newest([*(Text(text, style="dim") for text in earlier), caption], width, lines),
            title=f"{parse_language(player.language).name} · [bold]{player.method.name}[/bold]",
            subtitle=f"{player.counts.erased_shown} erased · {player.counts.tally.passes} passes",
            title_align="left",
            subtitle_align="right",
            height=lines + 2,
        )

    def _newest(self, texts: Sequence[Text], width: int, lines: int) -> Text:
        """Return the last lines of several texts; older lines scroll off at the top."""
        width = max(10, width)
        pieces = [piece for text in texts for piece in text.divide(breaks(text.plain, width))]
        return Text("\n").join([line for piece in pieces for line in piece.wrap(self._console, width)][-lines:])

    def _legend(self) -> RenderableType:
        legend = Table.grid(padding=(0, 1))
        legend.add_column(no_wrap=True)
        legend.add_column()
        for name, summary in {each.method.name: each.method.summary for each in self._players}.items():
            legend.add_row(Text(name, style="bold"), Text(summary, style="dim"))
        for name, meaning in (
            ("erased", "tokens removed after they were shown"),
            ("passes", "runs of the model, which cost time"),
        ):
            legend.add_row(Text(name, style="bold"), Text(meaning, style="dim"))
        return legend


def minutes(seconds: float) -> str:
    """Return a time as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
