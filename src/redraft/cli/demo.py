"""``redraft demo``: a talk translated live by several methods side by side, then what it cost."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import track
from rich.table import Table
from rich.text import Text

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import open_model
from redraft.cli import options as common
from redraft.errors import OptionError
from redraft.eval.measure import Contender, Run, compare, rows
from redraft.eval.signature import signature, text_hash
from redraft.eval.table import print_json, print_table
from redraft.events import Update
from redraft.languages import parse_language
from redraft.methods import BETA, get_method
from redraft.stabilise import Mask
from redraft.streams.read import paced
from redraft.talk import load_talk

DEFAULT_TARGETS = ["de", "zh", "ja"]


def demo(
    to: Annotated[list[str] | None, typer.Option("--to", "-t", help="Target languages; default de, zh, ja.")] = None,
    model: common.Model = "demo",
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Methods to compare, two or more; default ar and ssbd.")
    ] = None,
    beta: Annotated[float, typer.Option(help="Bias of ssbd, 0 to 1.", rich_help_panel=common.DECODING)] = 0.2,
    mask_k: common.MaskK = 3,
    speed: Annotated[
        float, typer.Option(help="How much faster than real time the talk is played; 0 is as fast as possible.")
    ] = 4.0,
    sentences: Annotated[int, typer.Option(help="Stop after so many sentences; 0 plays the whole talk.")] = 0,
    threads: common.Threads = 0,
    gpu_layers: common.GpuLayers = -1,
    exact: common.Exact = False,
    as_json: common.Json = False,
) -> None:
    """Watch a talk being translated live, by re-translation (ar) and by SSBD side by side.

    The talk is ours, with the false starts of a speech recogniser. Afterwards a table tells what each method cost: A/D is
    the share of drafted tokens that were kept, A/O their share of the output, NE how much of it was erased again.
    """
    if not 0 <= speed < float("inf"):
        raise OptionError(f"speed must be a number of 0 or more, not {speed!r}")
    if sentences < 0:
        raise OptionError(f"sentences must be 0 or more, not {sentences}")
    contenders = _contenders(method or ["ar", "ssbd"], to or DEFAULT_TARGETS, beta, Mask(mask_k))
    talk = [update for update in load_talk() if not sentences or int(update.utterance) <= sentences]
    engine = LlamaOptions(
        context_length=512, slots=len(contenders), threads=threads, gpu_layers=gpu_layers, exact=exact
    )
    backend = open_model(model, engine)
    console = Console()
    # On a terminal the talk plays in its own time; otherwise nobody watches.
    if console.is_terminal and not as_json:
        with Stage(contenders, console) as stage:
            updates = paced(_faster(talk, speed), time.monotonic, time.sleep) if speed else iter(talk)
            runs = compare(backend, contenders, updates, show=stage.show)
    else:
        progress = Console(stderr=True)
        runs = compare(
            backend, contenders, track(talk, "translating", console=progress, disable=not progress.is_terminal)
        )
    line = _signature(backend, talk, contenders[0].masking)
    backend.close()
    if as_json:
        print_json(rows(runs), line, sys.stdout)
    else:
        print_table(rows(runs), line, console)


def _contenders(methods: Sequence[str], targets: Sequence[str], beta: float, mask: Mask) -> list[Contender]:
    options = {name: (("beta", beta),) if BETA in get_method(name).options else () for name in methods}
    return [Contender(name, parse_language(tag).tag, options[name], mask) for tag in targets for name in methods]


def _faster(talk: Iterable[Update], speed: float) -> Iterator[Update]:
    return (replace(update, time=(update.time or 0.0) / speed) for update in talk)


def _signature(backend: LlamaCpp, talk: Sequence[Update], masking: str) -> str:
    described = "\n".join(f"{update.utterance} {update.seq} {update.text}" for update in talk)
    return signature(backend.model.path, "talk", text_hash(described), hidden=masking or "nothing")


class Stage:
    """The live picture: what is heard above, then a block a language with a line a method."""

    EARLIER = 2

    def __init__(self, contenders: Sequence[Contender], console: Console) -> None:
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
            grid.add_row(*(self._panel(tag, run) for run in beside))
        heard = Text(update.text, style="bold" if update.final else "")
        return Group(Panel(heard, title="heard", title_align="left", border_style="dim"), grid)

    def _panel(self, tag: str, run: Run) -> Panel:
        text = Text()
        for earlier in self._earlier[run.contender]:
            text.append(earlier + "\n", style="dim")
        if run.caption:
            text.append(run.caption.text)
            text.append(run.caption.unstable, style="dim italic")
        title = f"{parse_language(tag).name} · [bold]{run.contender.title}[/bold]"
        figures = f"erased {run.display.erased} · {run.passes} passes"
        return Panel(
            text, title=title, subtitle=figures, title_align="left", subtitle_align="right", height=self.EARLIER + 5
        )
