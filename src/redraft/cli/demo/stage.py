"""The stage of `redraft demo`: players that translate the talk and count, and the view of their captions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from redraft.captions.events import Caption, Update
from redraft.captions.formats.live import breaks
from redraft.captions.formats.read import paced
from redraft.captions.languages import parse_language
from redraft.captions.talk import RECORDING
from redraft.decoding.backend import Backend
from redraft.decoding.method import Method
from redraft.decoding.types import Tally, common_prefix
from redraft.errors import RedraftError
from redraft.speech.audio import at_speed, file_blocks
from redraft.speech.backlog import Backlog
from redraft.speech.recogniser import Recogniser, transcribe
from redraft.speech.sentences import SentenceCutter
from redraft.translator import Translator


@dataclass(slots=True)
class Counts:
    """The current sentence of a player, and its totals since the start of the talk.

    Attributes:
        utterance: the sentence.
        text: its latest caption, without the end that is hidden because it may still change.
        likelihood: log-probability of its final caption per token, in nats; NaN if it is unknown.
        tally: totals over outputs.
        seconds: time of the passes.
        erased: tokens of captions that were removed again; tokens are those of the texts, tokenized again.
        length: tokens of the final captions.
        updates: updates translated, whether they were decoded once or again.
    """

    utterance: str = ""
    text: str = ""
    likelihood: float = math.nan
    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0
    erased: int = 0
    length: int = 0
    updates: int = 0


class Player:
    """Translates a talk with one method into one language.

    Attributes:
        now: the current sentence, and the totals so far.
        finished: the sentences so far, each with the totals at its end.
    """

    def __init__(self, backend: Backend, method: Method, language: str, small: Backend | None = None) -> None:
        self.method, self.language = method, language
        self.translator = Translator(backend, [language], method=method, small=small)
        self.now = Counts()
        self.finished: list[Counts] = []
        self._ids: list[int] = []

    def take(self, update: Update) -> None:
        """Translate an update and count; after a failure, the text stays as it was."""
        now = self.now
        if update.utterance != now.utterance:
            now.utterance, now.text, self._ids = update.utterance, "", []
        for event in self.translator.translate(update):
            if isinstance(event, Caption) and event.utterance == update.utterance:
                now.text = event.text
        state = self.translator.state(self.language)
        before, self._ids = self._ids, self.translator.backend.tokenize(now.text)
        now.tally, now.seconds = state.tally, self.translator.seconds
        now.erased += len(before) - common_prefix(before, self._ids)
        now.updates += 1
        if update.final:
            now.length += len(self._ids)
            likelihood = state.decoded.output.likelihood
            now.likelihood = likelihood.mean if likelihood else math.nan
            self.finished.append(replace(now))


def play(
    players: Sequence[Player], updates: Iterable[Update], show: Callable[[Update], object]
) -> KeyboardInterrupt | RedraftError | None:
    """Translate until the end, Ctrl-C or an error, which is returned.  All players then have the same sentences.

    The order of the players is reversed with each update, so that none is always first.
    """
    try:
        for number, update in enumerate(updates):
            for player in players if number % 2 == 0 else reversed(players):
                player.take(update)
            show(update)
    except (KeyboardInterrupt, RedraftError) as error:
        finished = min(len(player.finished) for player in players)
        for player in players:
            del player.finished[finished:]
        return error
    return None


#: Field -> name and number format; `rows` has more.
FIGURES = {
    "updates": ("updates", ",.0f"),
    "target_passes": ("passes of the model", ",.0f"),
    "draft_passes": ("passes of the small model", ",.0f"),
    "ne_display": ("erased tokens, per shown one", ".2f"),
    "seconds": ("seconds for all updates", ",.2f"),
    "speedup": ("speed-up over ar", ".2f"),
    "other_than_ar": ("finals unlike ar's, likelier", ".0f"),
}
#: What stands for a figure that a method does not have.
NONE = "–"
#: Minimum width where there is no terminal, in characters.
LEAST_WIDTH = 160


def rows(players: Sequence[Player]) -> list[dict[str, Any]]:
    """Return the figures of each player over its finished sentences; speed-ups are those of time over ``ar``."""
    baselines = {each.language: each for each in players if each.method.name == "ar"}
    found: list[dict[str, Any]] = []
    for player in players:
        counts, baseline = player.finished[-1], baselines.get(player.language)
        tally = counts.tally
        row = {
            "method": player.method.name,
            "target_language": player.language,
            "segments": len(player.finished),
            "updates": counts.updates,
            "output_tokens": tally.tokens,
            "target_passes": tally.passes,
            "draft_passes": tally.draft_passes or None,
            "draft_acceptance": _ratio(tally.accepted, tally.drafted),
            "ne_display": _ratio(counts.erased, counts.length),
            "seconds": round(counts.seconds, 3),
            "speedup": baseline and _ratio(baseline.finished[-1].seconds, counts.seconds),
        }
        if baseline not in (None, player):
            pairs = zip(player.finished, baseline.finished, strict=True)
            others = [(mine, theirs) for mine, theirs in pairs if mine.text != theirs.text]
            row["other_than_ar"] = len(others)
            row["more_probable"] = sum(mine.likelihood > theirs.likelihood for mine, theirs in others)
        found.append(row)
    return found


def _ratio(above: float, below: float) -> float | None:
    return round(above / below, 4) if below else None


def print_table(rows: Sequence[dict[str, Any]], console: Console) -> None:
    """Print a row per player and a column per figure, without empty columns."""
    if not console.is_terminal:  # only a terminal has a width that lines must not exceed
        console.width = max(console.width, LEAST_WIDTH)
    names = [name for name in FIGURES if any(row.get(name) is not None for row in rows)]
    table = Table("", header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(FIGURES[name][0], justify="right")
    for row in rows:
        table.add_row(f"{row['target_language']} {row['method']}", *(_cell(row, name) for name in names))
    console.print(table)


def _cell(row: dict[str, Any], name: str) -> str:
    if row.get(name) is None:
        return NONE
    more = f", {row['more_probable']}" if name == "other_than_ar" else ""
    return format(row[name], FIGURES[name][1]) + more


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
    """Yield what a recogniser makes of the recording at its original speed; raise its failure at the end."""
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


class Stage(Live):
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
        self._players, self._length, self._listening = players, length, listening
        self._languages = list(dict.fromkeys(each.language for each in players))
        self._update: Update | None = None
        self._drawn = -math.inf
        # By itself, it only has to notice other sizes of the terminal.
        super().__init__(console=console, screen=True, refresh_per_second=2, get_renderable=self._picture)

    def show(self, update: Update) -> None:
        """Redraw with the captions of all players, unless the last redraw was too recent."""
        self._update = update
        if time.monotonic() - self._drawn >= self.INTERVAL:
            self.refresh()
            self._drawn = time.monotonic()

    def _picture(self) -> RenderableType:
        return self.draw(self._update) if self._update else ""

    def draw(self, update: Update) -> RenderableType:
        """Draw the moment of an update; it fits the console's height if that allows one line per panel."""
        screen, legend, rows = Layout(), self._legend(), len(self._languages)
        room, below = self.console.height - TITLE - SOURCE, len(self.console.render_lines(legend))
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
            _Newest(*(Text(text, style="dim") for text in earlier), Text(player.now.text)),
            title=f"{parse_language(player.language).name} · [bold]{player.method.name}[/bold]",
            subtitle=f"{player.now.erased} erased · {player.now.tally.passes} passes",
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
