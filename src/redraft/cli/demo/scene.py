"""One moment of the demo as plain data, and its drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from redraft.captions.formats.live import breaks
from redraft.captions.languages import parse_language
from redraft.decoding.methods import get_method

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


@dataclass(frozen=True, slots=True)
class View:
    """The display of one method in one language.

    Attributes:
        title: the method with its options.
        earlier: the finished sentences before this one.
        text: the stable part of the caption.
        unstable: its end, which captions hide because it may still change.
        erased: tokens shown and then removed, so far.
        passes: passes of the model so far.
    """

    language: str
    method: str
    title: str
    earlier: tuple[str, ...] = ()
    text: str = ""
    unstable: str = ""
    erased: int = 0
    passes: int = 0


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment of the demo.

    Attributes:
        source: the recogniser's text of the current sentence.
        final: whether that text is final.
        time: seconds since the start of the talk.
        length: length of the talk in seconds.
        views: by language, then by method.
        listening: name of the recogniser that hears the talk now; empty if its text was recognised before.
    """

    source: str
    final: bool
    time: float
    length: float
    views: tuple[View, ...]
    listening: str = ""


def draw(scene: Scene, console: Console) -> RenderableType:
    """Draw the scene; it fits the console's height if that allows one line per panel."""
    languages = list(dict.fromkeys(view.language for view in scene.views))
    top, legend = Group(_title(scene, languages, console), _source(scene, console)), _legend(scene)
    above, below = (len(console.render_lines(part)) for part in (top, legend))
    room = (console.height - above) // len(languages) - 2
    with_legend = (console.height - above - below) // len(languages) - 2
    if with_legend >= FEWEST_LINES:
        return Group(top, _grid(scene, languages, console, min(with_legend, MOST_LINES)), legend)
    return Group(top, _grid(scene, languages, console, min(max(room, 1), MOST_LINES)))


def _title(scene: Scene, languages: Sequence[str], console: Console) -> RenderableType:
    names = [parse_language(tag).name for tag in languages]
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
    title = Table.grid(expand=True, padding=(0, 1))
    title.add_column(no_wrap=True)
    title.add_column(ratio=1)
    title.add_column(no_wrap=True, justify="right")
    about = f"  a talk, live into {listed}" if console.width >= _WIDE else ""
    title.add_row(
        Text.assemble(("Redraft demo", "bold"), about),
        ProgressBar(total=max(1, scene.length), completed=scene.time, complete_style="cyan", finished_style="cyan"),
        Text(f"{minutes(scene.time)} of {minutes(scene.length)}", style="dim"),
    )
    return title


def minutes(seconds: float) -> str:
    """Return a time as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _source(scene: Scene, console: Console) -> Panel:
    words = Text(scene.source, style="bold" if scene.final else "")
    return Panel(
        _newest([words], console, max(10, console.width - _FRAME), SOURCE_LINES),
        title=f"English, as {scene.listening or 'the recogniser'} sends it",
        title_align="left",
        border_style="dim",
        height=SOURCE_LINES + 2,
    )


def _grid(scene: Scene, languages: Sequence[str], console: Console, lines: int) -> Table:
    grid = Table.grid(expand=True, padding=(0, 1))
    rows = [[view for view in scene.views if view.language == tag] for tag in languages]
    for _ in rows[0]:
        grid.add_column(ratio=1)
    for row in rows:
        width = max(10, console.width // len(row) - _FRAME - 1)
        grid.add_row(*(_panel(view, console, width, lines) for view in row))
    return grid


def _panel(view: View, console: Console, width: int, lines: int) -> Panel:
    caption = Text(view.text)
    caption.append(view.unstable, style="dim italic")
    texts = [*(Text(earlier, style="dim") for earlier in view.earlier[-EARLIER:]), caption]
    return Panel(
        _newest(texts, console, width, lines),
        title=f"{parse_language(view.language).name} · [bold]{view.title}[/bold]",
        subtitle=f"{view.erased} erased · {view.passes} passes",
        title_align="left",
        subtitle_align="right",
        height=lines + 2,
    )


def _newest(texts: Sequence[Text], console: Console, width: int, lines: int) -> Text:
    """Return the last lines of several texts; older lines scroll off at the top."""
    pieces = [piece for text in texts for piece in text.divide(breaks(text.plain, width))]
    return Text("\n").join([line for piece in pieces for line in piece.wrap(console, width)][-lines:])


def _legend(scene: Scene) -> RenderableType:
    legend = Table.grid(padding=(0, 1))
    legend.add_column(no_wrap=True)
    legend.add_column()
    for method in dict.fromkeys(view.method for view in scene.views):
        legend.add_row(Text(method, style="bold"), Text(get_method(method).summary, style="dim"))
    legend.add_row(
        Text("italics", style="dim italic"), Text("may still change: the demo shows it, captions do not", style="dim")
    )
    legend.add_row(Text("erased", style="bold"), Text("tokens removed after they were shown: flicker", style="dim"))
    legend.add_row(Text("passes", style="bold"), Text("runs of the model: cost", style="dim"))
    return legend
