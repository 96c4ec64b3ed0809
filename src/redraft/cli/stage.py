"""The work of ``redraft demo``: the talk is played to several methods, with a live picture of their captions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import track
from rich.table import Table
from rich.text import Text

from redraft.backends.llamacpp import LlamaCpp
from redraft.eval.contender import Contender
from redraft.eval.measure import Run, compare, open_runs
from redraft.eval.signature import signature, text_hash
from redraft.events import Update
from redraft.languages import parse_language, parse_targets
from redraft.methods import BETA, get_method
from redraft.stabilise import Mask
from redraft.streams.read import paced


def contenders(methods: Sequence[str], targets: Sequence[str], beta: float, mask: Mask) -> list[Contender]:
    """Every method into every language, each once.

    Raises:
        OptionError: a method or language is not known.
    """
    options = {name: (("beta", beta),) if BETA in get_method(name).options else () for name in methods}
    tags = parse_targets(targets)
    return [Contender(name, tag, options[name], mask) for tag in tags for name in options]


def play(
    backend: LlamaCpp,
    contenders: Sequence[Contender],
    talk: Sequence[Update],
    speed: float,
    console: Console,
    small: LlamaCpp | None = None,
) -> list[Run]:
    """Play the talk on a terminal, ``speed`` times as fast as it was spoken; 0 waits for nothing."""
    runs = open_runs(backend, contenders, small=small)
    with Stage(contenders, console) as stage:
        compare(runs, _timed(talk, speed) if speed else talk, stage.show)
    return runs


def _timed(talk: Sequence[Update], speed: float) -> Iterator[Update]:
    for item in paced(replace(update, time=(update.time or 0.0) / speed) for update in talk):
        if isinstance(item, Update):  # a talk has no failures
            yield item


def run(
    backend: LlamaCpp, contenders: Sequence[Contender], talk: Sequence[Update], small: LlamaCpp | None = None
) -> list[Run]:
    """Play the talk to nobody, as fast as possible, with a progress bar where standard error is a terminal."""
    progress = Console(stderr=True)
    heard = track(talk, "translating", console=progress, disable=not progress.is_terminal)
    runs = open_runs(backend, contenders, small=small)
    compare(runs, heard)
    return runs


def signed(backend: LlamaCpp, talk: Sequence[Update], masking: str) -> str:
    """The signature of a demo."""
    described = "\n".join(f"{update.utterance} {update.seq} {update.text}" for update in talk)
    return signature(backend.model.path, "talk", text_hash(described), hidden=masking or "nothing")


class Stage:
    """The live picture: what is heard above, then a block a language with a line a method."""

    EARLIER = 2
    LINES = 5

    def __init__(self, contenders: Sequence[Contender], console: Console) -> None:
        self._console = console
        self._languages = list(dict.fromkeys(each.language for each in contenders))
        self._earlier: dict[Contender, list[str]] = {each: [] for each in contenders}
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Stage:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, update: Update, runs: Sequence[Run]) -> None:
        """Redraw with the captions of all runs."""
        self._live.update(self.picture(update, runs), refresh=True)
        if update.final:
            for run in runs:
                if run.caption:
                    self._earlier[run.contender] = [*self._earlier[run.contender], run.caption.text][-self.EARLIER :]

    def picture(self, update: Update, runs: Sequence[Run]) -> RenderableType:
        """The source, then for every language one panel a method; the unstable end of a caption is dimmed."""
        grid = Table.grid(expand=True, padding=(0, 1))
        of_language = {tag: [run for run in runs if run.contender.language == tag] for tag in self._languages}
        for _ in next(iter(of_language.values())):
            grid.add_column(ratio=1)
        for tag, beside in of_language.items():
            # Borders and padding of a panel and the gap between two take five cells.
            width = max(10, self._console.width // len(beside) - 5)
            grid.add_row(*(self._panel(tag, run, width) for run in beside))
        heard = Text(update.text, style="bold" if update.final else "")
        return Group(Panel(heard, title="heard", title_align="left", border_style="dim"), grid)

    def _panel(self, tag: str, run: Run, width: int) -> Panel:
        text = Text()
        for earlier in self._earlier[run.contender]:
            text.append(earlier + "\n", style="dim")
        if run.caption:
            text.append(run.caption.text)
            text.append(run.caption.unstable, style="dim italic")
        # What is newest stays in sight: lines that do not fit leave at the top.
        newest = Text("\n").join(text.wrap(self._console, width)[-self.LINES :])
        title = f"{parse_language(tag).name} · [bold]{run.contender.title}[/bold]"
        figures = f"erased {run.display.erased} · {run.passes} passes"
        return Panel(
            newest, title=title, subtitle=figures, title_align="left", subtitle_align="right", height=self.LINES + 2
        )
