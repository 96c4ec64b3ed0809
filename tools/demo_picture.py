"""The picture of the demo in the README: docs/demo.svg, drawn from docs/demo.json.

`record` plays the talk with the demo's defaults and saves one moment and the table of costs; `picture` draws them as
``redraft demo`` does.  `problem` reports when the picture is out of date because the model, the talk, the defaults or
the drawing have changed.
"""

from __future__ import annotations

import html
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import track
from rich.text import Text

from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_model
from redraft.captions.events import Update
from redraft.captions.stabilise import Mask
from redraft.captions.talk import load_talk
from redraft.cli.demo import demo
from redraft.cli.demo.costs import print_table, rows
from redraft.cli.demo.player import Contender, Player, contenders, take_turns
from redraft.cli.demo.scene import EARLIER, MOST_LINES, Scene, View, draw
from redraft.cli.demo.stage import Stage, signed, talk_hash
from redraft.decoding.types import common_prefix
from redraft.models import shipped_path
from redraft.signature import file_hash

#: Columns of the picture and of the text in a panel; rows that suffice for everything.
WIDTH, HEIGHT = 114, 40
PANEL_WIDTH = WIDTH // 2 - 5
FONTS = "ui-monospace, 'Cascadia Mono', Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"
#: Command that updates the picture.
COMMAND = "make docs ARGS=--picture"


def inputs() -> dict[str, Any]:
    """Return what determines the picture: the model, the talk, and the demo's defaults."""
    defaults = {each.name: each.default for each in demo.params}
    shown = {name: defaults[name] for name in ("to", "method", "beta", "mask_k", "mask_margin", "source_policy")}
    found = {"model": file_hash(shipped_path("demo")), "talk": talk_hash(load_talk()), **shown}
    return dict(json.loads(json.dumps(found)))


def record(path: Path, threads: int = 0) -> None:
    """Play the whole talk; save the most instructive moment, and the table.

    Args:
        path: the record to write.
        threads: CPU threads of the engine, 0 for all cores.
    """
    made_from = inputs()
    mask = Mask(made_from["mask_k"], margin=made_from["mask_margin"])
    compared = contenders(made_from["method"], made_from["to"], made_from["beta"], mask, made_from["source_policy"])
    backend = open_model("demo", LlamaOptions(context_length=512, slots=len(compared), threads=threads))
    photographer, talk = Photographer(compared), load_talk()
    players = [Player(backend, each) for each in compared]
    take_turns(players, track(talk, "playing the talk"), photographer.look)
    line = signed(backend, talk, compared[0])
    backend.close()
    if photographer.scene is None:
        raise ValueError("there is no moment of the talk at which all panels have text and room for it")
    kept = {"inputs": made_from, "signature": line, "scene": asdict(photographer.scene), "rows": rows(players)}
    path.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n")


def picture(path: Path) -> str:
    """Return the picture of a record as SVG."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    views = (View(**{**view, "earlier": tuple(view["earlier"])}) for view in kept["scene"]["views"])
    scene = Scene(**{**kept["scene"], "views": tuple(views)})
    console = Console(record=True, width=WIDTH, height=HEIGHT, file=io.StringIO(), force_terminal=True)
    console.print(draw(scene, console))
    console.print()
    print_table(kept["rows"], "", console)
    return self_contained(console.export_svg(title="redraft demo", unique_id="redraft"), kept["signature"])


def problem(folder: Path) -> str:
    """Return briefly why the picture in a folder of pages is out of date; empty if it is not."""
    recorded, drawn = folder / "demo.json", folder / "demo.svg"
    if not (recorded.exists() and drawn.exists()):
        return "is missing"
    kept, now = json.loads(recorded.read_text(encoding="utf-8"))["inputs"], inputs()
    if changed := [name for name in now if kept.get(name) != now[name]]:
        return f"shows another {' and another '.join(changed)}"
    # Compare texts, since other versions of rich write the same picture with other bytes.
    same = visible(picture(recorded)) == visible(drawn.read_text(encoding="utf-8"))
    return "" if same else "is not what the demo draws now"


def visible(svg: str) -> list[str]:
    """Return the words of a picture in order."""
    root = ElementTree.fromstring(svg)
    texts = ["".join(each.itertext()) for each in root.iter() if each.tag.endswith(("}text", "}desc"))]
    return " ".join(texts).split()


class Photographer:
    """Watches the demo and saves the most instructive moment.

    That is the partial update after which the methods differ in the most languages; of several, the one in which the
    first method has just rewritten most and the last one least.  Every panel must have text, and room for all of it.
    """

    def __init__(self, contenders: Sequence[Contender]) -> None:
        self._contenders = contenders
        self._stage = Stage(contenders, Console(file=io.StringIO(), width=WIDTH), load_talk()[-1].time or 0.0)
        self._before: dict[Contender, str] = {}
        self._best = (0, 0)
        self.scene: Scene | None = None

    def look(self, update: Update, players: Sequence[Player]) -> None:
        """Look at the display after an update."""
        now = {player.contender: player.caption.text for player in players if player.caption}
        scene = self._stage.scene(update, players)
        if not update.final and all(map(_fits, scene.views)):
            languages = {each.language for each in self._contenders}
            differing = sum(len({now[each] for each in now if each.language == tag}) > 1 for tag in languages)
            first, last = (self._rewritten(self._contenders[index].method, now) for index in (0, -1))
            if (differing, first - last) > self._best:
                self._best, self.scene = (differing, first - last), scene
        self._before = {} if update.final else now

    def _rewritten(self, method: str, now: dict[Contender, str]) -> int:
        """Return how many characters of a method's captions the update has erased."""
        pairs = [
            ([*map(ord, was)], [*map(ord, now[each])]) for each, was in self._before.items() if each.method == method
        ]
        return sum(len(before) - common_prefix(before, after) for before, after in pairs)


def _fits(view: View) -> bool:
    """Whether a panel shows some text of the utterance, and all of it."""
    console = Console(file=io.StringIO())
    texts = [*view.earlier[-EARLIER:], view.text + view.unstable]
    return bool(view.text) and sum(len(Text(text).wrap(console, PANEL_WIDTH)) for text in texts) <= MOST_LINES


def self_contained(svg: str, description: str) -> str:
    """Adapt rich's SVG: the reader's own fonts, correct widths of wide characters, and a description."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", FONTS)

    def stretch(found: re.Match[str]) -> str:
        # rich counts characters here, but Chinese and Japanese ones take two cells.
        before, length, after, content = found.groups()
        text = html.unescape(content)
        return f"{before}{float(length) / len(text) * cell_len(text):g}{after}{content}<"

    svg = re.sub(r'(<text [^>]*textLength=")([\d.]+)("[^>]*>)([^<]+)<', stretch, svg)
    return svg.replace("<style>", f"<desc>{html.escape(description)}</desc>\n    <style>", 1)
