"""The work of ``redraft demo``: play a talk to several methods, with a live view of their captions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import track

from redraft.backends.llamacpp import LlamaCpp
from redraft.captions.events import Update
from redraft.captions.formats.live import SizeWatch
from redraft.captions.formats.read import paced
from redraft.captions.talk import RECORDING
from redraft.cli.demo.player import Contender, Player, take_turns
from redraft.cli.demo.scene import EARLIER, Scene, View, draw
from redraft.errors import RedraftError
from redraft.signature import signature, text_hash
from redraft.speech.audio import at_speed, file_blocks
from redraft.speech.microphone import playing
from redraft.speech.newest import newest
from redraft.speech.recogniser import Recogniser, transcribe
from redraft.speech.sentences import Sentences


@dataclass(frozen=True, slots=True)
class Played:
    """The results of a talk.

    Attributes:
        players: one per contender, all with the same sentences.
        stopped: what stopped the talk before its end, Ctrl-C or an error; None if nothing did.
    """

    players: list[Player]
    stopped: KeyboardInterrupt | RedraftError | None

    @property
    def sentences(self) -> int:
        """Number of finished sentences."""
        return len(self.players[0].finished)


def play(
    backend: LlamaCpp,
    contenders: Sequence[Contender],
    updates: Iterable[Update],
    length: float,
    console: Console,
    small: LlamaCpp | None = None,
    listening: str = "",
) -> Played:
    """Translate updates as they come, with a live view on a terminal.

    The other arguments are those of `Stage`.
    """
    players = [Player(backend, each, small) for each in contenders]
    with Stage(contenders, console, length, listening) as stage:
        stopped = _played(players, updates, stage.show)
    return Played(players, stopped)


def _played(
    players: list[Player], updates: Iterable[Update], show: Callable[[Update, Sequence[Player]], None] | None = None
) -> KeyboardInterrupt | RedraftError | None:
    """Translate until the end, Ctrl-C or an error, which is returned.  All players then have the same sentences."""
    try:
        take_turns(players, updates, show)
    except (KeyboardInterrupt, RedraftError) as error:
        finished = min(len(player.finished) for player in players)
        for player in players:
            del player.finished[finished:]
        return error
    return None


def first(updates: Iterable[Update], sentences: int) -> Iterator[Update]:
    """Yield the updates of the first sentences; 0 yields all."""
    finished = 0
    for update in updates:
        yield update
        finished += update.final
        if sentences and finished == sentences:
            return


def timed(talk: Sequence[Update], speed: float) -> Iterator[Update]:
    """Yield the updates of a talk at ``speed`` times its original speed, with its sound if that is 1; 0 never waits."""
    if not speed:
        yield from talk
        return
    with playing(str(RECORDING)) if speed == 1 else nullcontext():
        yield from _paced(talk, speed)


def _paced(talk: Sequence[Update], speed: float) -> Iterator[Update]:
    for item in paced(replace(update, time=(update.time or 0.0) / speed) for update in talk):
        if isinstance(item, Update):  # a talk contains no failures
            yield item


def recognised(recogniser: Recogniser, found: list[Update]) -> Iterator[Update]:
    """Yield what a recogniser hears in the recording of the talk at its original speed, while its sound plays.

    Every update is also appended to ``found``.

    Raises:
        RedraftError: at the end, if the recogniser has failed.
    """
    with playing(str(RECORDING)):
        blocks = at_speed(file_blocks(str(RECORDING)), 1.0)
        problem = ""
        for item in newest(transcribe(blocks, recogniser, Sentences())):
            if isinstance(item, Update):
                found.append(item)
                yield item
            else:  # a recogniser that was started again goes on
                problem = item.message
        if problem:
            raise RedraftError(problem)


def run(
    backend: LlamaCpp,
    contenders: Sequence[Contender],
    updates: Iterable[Update],
    number: int,
    small: LlamaCpp | None = None,
) -> Played:
    """Translate about this number of updates without a live view; a terminal for errors gets a progress bar."""
    progress = Console(stderr=True)
    shown = track(updates, "translating", number, console=progress, disable=not progress.is_terminal)
    players = [Player(backend, each, small) for each in contenders]
    return Played(players, _played(players, shown))


def talk_hash(talk: Sequence[Update]) -> str:
    """Return the hash of a talk."""
    return text_hash("\n".join(f"{update.utterance} {update.seq} {update.text}" for update in talk))


def signed(backend: LlamaCpp, talk: Sequence[Update], contender: Contender, listening: str = "") -> str:
    """Return the signature of a demo run, all of whose contenders have the mask and the source policy of this one."""
    hidden = contender.mask.label or "nothing"
    more: dict[str, Any] = {"recogniser": listening} if listening else {}
    return signature(backend.model.path, "talk", talk_hash(talk), hidden=hidden, source=contender.source, **more)


class Stage:
    """The live view of a talk: the source at the top, then a row per language with a panel per method.

    It uses the terminal's alternate screen while the talk plays, so resizing works.  Nothing of it stays on the
    terminal: one sentence, of which any method may be the best, would look like the result of the talk.

    Args:
        contenders: the contenders to show.
        console: the terminal.
        length: length of the talk in seconds.
        listening: name of the recogniser that hears it now; empty if the text was recognised before.
    """

    #: Minimum seconds between two redraws; drawing takes time from the methods under comparison.
    INTERVAL = 0.05

    def __init__(self, contenders: Sequence[Contender], console: Console, length: float, listening: str = "") -> None:
        self._contenders, self._console, self._length, self._listening = contenders, console, length, listening
        self._live = Live(console=console, auto_refresh=False, screen=True)
        self._resizes = SizeWatch(console, self._redraw)
        self._scene: Scene | None = None
        self._drawn = -math.inf

    def __enter__(self) -> Stage:
        self._live.start()
        self._resizes.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._resizes.stop()
        self._live.stop()

    def show(self, update: Update, players: Sequence[Player]) -> None:
        """Redraw with the captions of all players, unless the last redraw was too recent."""
        self._scene = self.scene(update, players)
        if time.monotonic() - self._drawn >= self.INTERVAL:
            self._redraw()

    def _redraw(self) -> None:
        if self._scene is not None:
            self._live.update(draw(self._scene, self._console), refresh=True)
            self._drawn = time.monotonic()

    def scene(self, update: Update, players: Sequence[Player]) -> Scene:
        """Return the scene after an update."""
        views = {player.contender: _view(player, update) for player in players}
        shown = tuple(views[each] for each in self._contenders)
        return Scene(update.text, update.final, update.time or 0.0, self._length, shown, self._listening)


def _view(player: Player, update: Update) -> View:
    contender, caption = player.contender, player.caption
    here = caption if caption is not None and caption.utterance == update.utterance else None
    earlier = [each.text for each in player.finished if each.utterance != update.utterance][-EARLIER:]
    counts = player.so_far
    return View(
        contender.language,
        contender.method,
        contender.title,
        tuple(earlier),
        here.text if here else "",
        here.unstable if here else "",
        counts.erased_shown,
        counts.passes,
    )
