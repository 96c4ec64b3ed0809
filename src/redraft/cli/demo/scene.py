"""One moment of the demo as plain data, and how it is drawn."""

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

#: Earlier sentences above a caption, as far as there is room.
EARLIER = 2
#: The most lines of text in a panel, and the fewest before the legend is left out.
MOST_LINES, FEWEST_LINES = 5, 2
#: Lines of the source that are shown.
SOURCE_LINES = 2
#: Columns from which on the title has room for the languages.
_WIDE = 90
#: Cells that the borders and the padding of a panel take.
_FRAME = 4


@dataclass(frozen=True, slots=True)
class View:
    """What one method shows in one language.

    Attributes:
        title: the method with its options.
        earlier: the finished sentences before this one.
        text, unstable: of the caption; the second part is hidden in captions, since it may still change.
        erased: tokens that were removed after they had been shown, so far.
        passes: passes of the model, so far.
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
        source: what the recogniser sends of the current sentence.
        final: whether it is the last that it sends of it.
        sentence, sentences: number of the current sentence, and of all.
        views: by language, then by method.
    """

    source: str
    final: bool
    sentence: int
    sentences: int
    views: tuple[View, ...]


def draw(scene: Scene, console: Console) -> RenderableType:
    """The scene for a console, as high as its screen at most, if that has room for a line a panel."""
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
        ProgressBar(
            total=max(1, scene.sentences), completed=scene.sentence, complete_style="cyan", finished_style="cyan"
        ),
        Text(f"sentence {scene.sentence} of {scene.sentences}", style="dim"),
    )
    return title


def _source(scene: Scene, console: Console) -> Panel:
    words = Text(scene.source, style="bold" if scene.final else "")
    return Panel(
        _newest([words], console, max(10, console.width - _FRAME), SOURCE_LINES),
        title="English, as the recogniser sends it",
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
    """The last lines of texts: what is newest stays in sight, and lines that do not fit leave at the top."""
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
