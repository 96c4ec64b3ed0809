"""Draw docs/demo.svg: `redraft demo` in motion, from a run with the demo model.

    python -m tools.demo_picture

The frames are the stage that the command shows on a terminal, one at the time of each update of the talk, as on a
machine that keeps up.  Needs the default install only.
"""

from __future__ import annotations

import html
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment

from redraft.backends.load import open_model
from redraft.backends.options import LlamaOptions
from redraft.captions.talk import load_talk
from redraft.cli.demo.stage import Player, Stage
from redraft.decoding.methods import get_method

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "demo.svg"
LANGUAGES = ("de", "zh")
METHODS = ("ar", "redraft")
#: The sentences of the talk that are shown, all of which the default method translates rightly; read them when they
#: change.
SENTENCES = range(26, 31)
#: Size of the terminal in cells, and of a cell in pixels.
COLUMNS, ROWS = 100, 21
WIDTH, HEIGHT = 8, 18
MARGIN = 12
#: Seconds for which the last frame stays.
PAUSE = 3.0
MOST_BYTES = 400_000

#: {0}: width, {1}: height, {2}: seconds, {3}: keyframes, {4}: position of the last frame, {5}: rows, {6}: frames.
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" role="img" aria-label="redraft demo">
<style>
text {{ font: 14px/1 "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d5d9de; white-space: pre; }}
.bold {{ font-weight: 700; fill: #fff; }}
.dim {{ fill: #8d96a3; }}
.cyan {{ fill: #56c2d6; }}
.film {{ animation: film {2:.2f}s step-end infinite; }}
@keyframes film {{ {3} }}
@media (prefers-reduced-motion: reduce) {{ .film {{ animation: none; transform: translateY({4}px); }} }}
</style>
<defs>
{5}
</defs>
<rect width="100%" height="100%" rx="8" fill="#15191f"/>
<svg x="{MARGIN}" y="{MARGIN}" width="{WIDTH}" height="{HEIGHT}"><g class="film">
{6}
</g></svg>
</svg>
"""


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture of the terminal, row by row, from a time in seconds on."""

    time: float
    rows: tuple[str, ...]


def play() -> Iterator[Frame]:
    """Translate a part of the talk; yield a frame for each update."""
    console = Console(file=io.StringIO(), width=COLUMNS, height=ROWS, force_terminal=True, color_system="truecolor")
    talk = load_talk()
    names = [each.utterance for each in talk if each.final][SENTENCES.start : SENTENCES.stop]
    updates = [each for each in talk if each.utterance in names]
    backend = open_model("demo", LlamaOptions(512, len(LANGUAGES) * len(METHODS), 0))
    try:
        players = [Player(backend, get_method(name), tag) for tag in LANGUAGES for name in METHODS]
        stage = Stage(players, console, talk[-1].time or 0.0)
        for update in updates:
            for player in players:
                player.take(update)
            lines = console.render_lines(stage.draw(update), pad=False)
            yield Frame((update.time or 0.0) - (updates[0].time or 0.0), tuple(map(row, lines[:ROWS])))
    finally:
        backend.close()


def row(segments: Sequence[Segment]) -> str:
    """Return a line of the terminal as SVG's texts, each as wide as its cells."""
    found, column = [], 0
    for text, style, _ in segments:
        cells = cell_len(text)
        if text.strip():
            colour = style.color.name if style and style.color else ""
            names = [name for name in ("bold", "dim") if style and getattr(style, name)]
            names += ["cyan"] if "cyan" in colour else []
            marked = f' class="{" ".join(names)}"' if names else ""
            place = f'x="{column * WIDTH}" textLength="{cells * WIDTH}" lengthAdjust="spacingAndGlyphs"'
            found.append(f"<text {place}{marked}>{html.escape(text, quote=False)}</text>")
        column += cells
    return "".join(found)


def draw(frames: Sequence[Frame]) -> str:
    """Return the picture: all frames below each other, of which a window shows one at a time."""
    texts = dict.fromkeys(text for frame in frames for text in frame.rows if text)
    names = {text: f"r{number}" for number, text in enumerate(texts)}
    height = ROWS * HEIGHT
    total = frames[-1].time + PAUSE
    films, keys = [], []
    for number, frame in enumerate(frames):
        shown = [(text, (line + 0.8) * HEIGHT) for line, text in enumerate(frame.rows) if text]
        uses = [f'<use href="#{names[text]}" y="{y:g}"/>' for text, y in shown]
        films.append(f'<g transform="translate(0 {number * height})">{"".join(uses)}</g>')
        start = 100 * frame.time / total if number else 0.0
        keys.append(f"{start:.3f}%{{transform:translateY({-number * height}px)}}")
    rows = "\n".join(f'<g id="{name}">{text}</g>' for text, name in names.items())
    size = (COLUMNS * WIDTH + 2 * MARGIN, height + 2 * MARGIN)
    last = -(len(frames) - 1) * height
    window = {"MARGIN": MARGIN, "WIDTH": COLUMNS * WIDTH, "HEIGHT": height}
    return SVG.format(*size, total, " ".join(keys), last, rows, "\n".join(films), **window)


def main() -> None:
    """Write the picture."""
    frames = [*play()]
    picture = draw(frames)
    if len(picture.encode()) > MOST_BYTES:
        sys.exit(
            f"the picture has {len(picture.encode())} bytes, and at most {MOST_BYTES} are meant: show fewer SENTENCES"
        )
    PICTURE.write_text(picture, encoding="utf-8")
    print(f"{PICTURE}: {len(frames)} frames, {len(picture.encode())} bytes")


if __name__ == "__main__":
    main()
