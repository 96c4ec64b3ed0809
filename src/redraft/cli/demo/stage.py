"""The work of ``redraft demo``: play a talk to several methods, with a live view of their captions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.live import Live
from rich.progress import track

from redraft.backends.llamacpp import LlamaCpp
from redraft.captions.events import Update
from redraft.captions.formats.read import paced
from redraft.captions.formats.resize import SizeWatch
from redraft.captions.languages import parse_targets
from redraft.captions.stabilise import Mask
from redraft.cli.demo.scene import EARLIER, Scene, View, draw
from redraft.decoding.methods import BETA, get_method
from redraft.measure.eval.contender import Contender
from redraft.measure.eval.measure import Run, compare, open_runs
from redraft.measure.eval.signature import signature, text_hash


def contenders(methods: Sequence[str], targets: Sequence[str], beta: float, mask: Mask) -> list[Contender]:
    """Combine every method with every language, without duplicates.

    Raises:
        OptionError: a method or a language is unknown.
    """
    options = {name: (("beta", beta),) if BETA in get_method(name).options else () for name in methods}
    tags = parse_targets(targets)
    return [Contender(name, tag, options[name], mask) for tag in tags for name in options]


@dataclass(frozen=True, slots=True)
class Played:
    """The results of a talk.

    Attributes:
        runs: one per contender, all with the same sentences.
        whole: whether the talk was played to its end rather than stopped by Ctrl-C.
    """

    runs: list[Run]
    whole: bool

    @property
    def sentences(self) -> int:
        """Number of finished sentences."""
        return len(self.runs[0].records)


def play(
    backend: LlamaCpp,
    contenders: Sequence[Contender],
    talk: Sequence[Update],
    speed: float,
    console: Console,
    small: LlamaCpp | None = None,
) -> Played:
    """Play the talk on a terminal at ``speed`` times its original speed; 0 plays without waiting."""
    runs = open_runs(backend, contenders, small=small)
    with Stage(contenders, console, talk[-1].utterance) as stage:
        whole = _compared(runs, _timed(talk, speed) if speed else talk, stage.show)
    return Played(runs, whole)


def _compared(
    runs: list[Run], updates: Iterable[Update], show: Callable[[Update, Sequence[Run]], None] | None = None
) -> bool:
    """Translate until the end or Ctrl-C; return whether the end was reached.  All runs then have the same sentences."""
    try:
        compare(runs, updates, show)
    except KeyboardInterrupt:
        finished = min(len(run.records) for run in runs)
        for run in runs:
            del run.records[finished:]
        return False
    return True


def _timed(talk: Sequence[Update], speed: float) -> Iterator[Update]:
    for item in paced(replace(update, time=(update.time or 0.0) / speed) for update in talk):
        if isinstance(item, Update):  # a talk contains no failures
            yield item


def run(
    backend: LlamaCpp, contenders: Sequence[Contender], talk: Sequence[Update], small: LlamaCpp | None = None
) -> Played:
    """Play the talk without a live view, as fast as possible, with a progress bar if standard error is a terminal."""
    progress = Console(stderr=True)
    updates = track(talk, "translating", console=progress, disable=not progress.is_terminal)
    runs = open_runs(backend, contenders, small=small)
    return Played(runs, _compared(runs, updates))


def talk_hash(talk: Sequence[Update]) -> str:
    """Return the hash of a talk."""
    return text_hash("\n".join(f"{update.utterance} {update.seq} {update.text}" for update in talk))


def signed(backend: LlamaCpp, talk: Sequence[Update], masking: str) -> str:
    """Return the signature of a demo run."""
    return signature(backend.model.path, "talk", talk_hash(talk), hidden=masking or "nothing")


class Stage:
    """The live view of a talk: the source at the top, then a row per language with a panel per method.

    It uses the terminal's alternate screen while the talk plays, so resizing works.  The last picture stays on the
    terminal.

    Args:
        contenders: the contenders to show.
        console: the terminal.
        last: name of the talk's last sentence, which is its number.
    """

    #: Minimum seconds between two redraws; drawing takes time from the methods under comparison.
    INTERVAL = 0.05

    def __init__(self, contenders: Sequence[Contender], console: Console, last: str) -> None:
        self._contenders, self._console, self._sentences = contenders, console, int(last)
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
        if self._scene is not None:
            self._console.print(draw(self._scene, self._console))

    def show(self, update: Update, runs: Sequence[Run]) -> None:
        """Redraw with the captions of all runs, unless the last redraw was too recent."""
        self._scene = self.scene(update, runs)
        if time.monotonic() - self._drawn >= self.INTERVAL:
            self._redraw()

    def _redraw(self) -> None:
        if self._scene is not None:
            self._live.update(draw(self._scene, self._console), refresh=True)
            self._drawn = time.monotonic()

    def scene(self, update: Update, runs: Sequence[Run]) -> Scene:
        """Return the scene after an update."""
        views = {run.contender: _view(run, update) for run in runs}
        shown = tuple(views[each] for each in self._contenders)
        return Scene(update.text, update.final, int(update.utterance), self._sentences, shown)


def _view(run: Run, update: Update) -> View:
    contender, caption = run.contender, run.caption
    here = caption if caption is not None and caption.utterance == update.utterance else None
    earlier = [record.translation for record in run.records if record.utterance != update.utterance][-EARLIER:]
    return View(
        contender.language,
        contender.method,
        contender.title,
        tuple(earlier),
        here.text if here else "",
        here.unstable if here else "",
        run.display.erased,
        run.passes,
    )
