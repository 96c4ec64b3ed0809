"""The stage of ``redraft demo``: the talk as updates, and the live view of the players' captions."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
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
from redraft.speech.recogniser import Recogniser, transcribe
from redraft.speech.sentences import SentenceCutter

#: Maximum number of earlier sentences above a caption.
EARLIER = 2
#: Lines of a panel of captions with its frame: at most, and at least beside the legend.
HIGHEST, LOWEST = 7, 4
#: Lines of the title, and of the source text with its frame.
TITLE, SOURCE = 1, 4
#: What the figures of the panels are.
_FIGURES = {"erased": "tokens removed after they were shown", "passes": "runs of the model, which cost time"}


def first(updates: Iterable[Update], sentences: int) -> Iterator[Update]:
    """Yield the updates of the first sentences; 0 yields all."""
    finished = 0
    for update in updates:
        yield update
        finished += update.final
        if sentences and finished == sentences:
            return


def timed(talk: Sequence[Update], speed: float) -> Iterator[Update]:
    """Yield the updates of a talk at ``speed`` times its original speed; 0 never waits."""
    return paced(talk, speed=speed) if speed else iter(talk)


def recognised(recogniser: Recogniser) -> Iterator[Update]:
    """Yield what a recogniser makes of the recording of the talk at its original speed.

    Raises:
        RedraftError: at the end, if the recogniser has failed.
    """
    blocks = at_speed(file_blocks(str(RECORDING)), 1.0)
    problem = ""
    with closing(Backlog(transcribe(blocks, recogniser, SentenceCutter()), live=True)) as items:
        for item in items:
            if isinstance(item, Update):
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
    """

    #: Minimum seconds between two redraws; drawing takes time from the methods under comparison.
    INTERVAL = 0.05

    def __init__(self, players: Sequence[Player], console: Console, length: float, listening: str = "") -> None:
        self._players, self._console, self._length, self._listening = players, console, length, listening
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
        screen, legend, rows = Layout(), self._legend(), len(self._languages)
        room, below = self._console.height - TITLE - SOURCE, len(self._console.render_lines(legend))
        explained = (room - below) // rows >= LOWEST
        height = (room - below * explained) // rows
        grid = []
        for tag in self._languages:
            grid.append(Layout(size=min(max(height, 1), HIGHEST)))
            grid[-1].split_row(*(self._panel(each, update) for each in self._players if each.language == tag))
        screen.split_column(
            Layout(self._title(), size=TITLE),
            Layout(self._source(update), size=SOURCE),
            *grid,
            *([Layout(legend, size=below)] if explained else []),
        )
        return screen

    def _title(self) -> Text:
        names = [parse_language(tag).name for tag in self._languages]
        listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
        return Text.assemble(
            ("Redraft demo", "bold"), f"  a talk, live into {listed}", no_wrap=True, overflow="ellipsis"
        )

    def _source(self, update: Update) -> Panel:
        clock = f"{minutes(update.time or 0.0)} of {minutes(self._length)}"
        title = f"{clock} · English, as {self._listening or 'the recogniser'} sends it"
        words = Text(update.text, style="bold" if update.final else "")
        return Panel(_Newest(words), title=title, title_align="left", border_style="dim")

    def _panel(self, player: Player, update: Update) -> Panel:
        earlier = [each.text for each in player.finished if each.utterance != update.utterance][-EARLIER:]
        return Panel(
            _Newest(*(Text(text, style="dim") for text in earlier), Text(player.text)),
            title=f"{parse_language(player.language).name} · [bold]{player.method.name}[/bold]",
            subtitle=f"{player.counts.erased} erased · {player.counts.tally.passes} passes",
            title_align="left",
            subtitle_align="right",
        )

    def _legend(self) -> Table:
        legend = Table.grid(padding=(0, 1))
        legend.add_column(no_wrap=True, style="bold")
        legend.add_column(style="dim")
        for row in ({each.method.name: each.method.summary for each in self._players} | _FIGURES).items():
            legend.add_row(*row)
        return legend


class _Newest:
    """Draws the last lines of several texts that fit into their place; older lines scroll off at the top."""

    def __init__(self, *texts: Text) -> None:
        self._texts = texts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        pieces = [piece for text in self._texts for piece in text.divide(breaks(text.plain, width))]
        lines = [line for piece in pieces for line in piece.wrap(console, width)]
        yield Text("\n").join(lines[-(options.height or 1) :])


def minutes(seconds: float) -> str:
    """Return a time as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
