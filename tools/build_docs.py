"""Writes what the documentation takes from the code: docs/cli.md, docs/methods.md and the README's table of methods.

    python -m tools.build_docs             write them
    python -m tools.build_docs --check     fail where they are out of date
    python -m tools.build_docs --picture   play the demo's talk with the shipped model and draw docs/demo.svg

The picture takes about as long as the model needs for the talk, and is not checked.
"""

from __future__ import annotations

import argparse
import html
import io
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress import track
from rich.text import Text

from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_model
from redraft.cli.main import cli
from redraft.cli.stage import Stage, contenders, signed
from redraft.eval.contender import Contender
from redraft.eval.figures import lines, rows
from redraft.eval.measure import Run, compare, open_runs
from redraft.eval.table import print_table
from redraft.events import Update
from redraft.methods import BETA, Choice, Method, Option, all_methods
from redraft.serve.protocol import CODES
from redraft.serve.settings import ServeSettings, allowed
from redraft.stabilise import Mask
from redraft.talk import load_talk
from redraft.types import common_prefix

ROOT = Path(__file__).resolve().parents[1]

#: Columns of a help text.
WIDTH = 100
GENERATED = "<!-- Made from the code by `make docs`; changes here are lost. -->"

#: Columns of the picture, and of a panel's text in it; rows of a panel's text.
PICTURE_WIDTH = 110
PANEL_WIDTH = PICTURE_WIDTH // 2 - 5
PANEL_ROWS = Stage.EARLIER + 3
FONTS = "ui-monospace, 'Cascadia Mono', Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"


def documents(root: Path = ROOT) -> dict[Path, str]:
    """Every page that is made from the code, whole or in part, as it ought to read."""
    readme = (root / "README.md").read_text(encoding="utf-8")
    serving = (root / "docs" / "serving.md").read_text(encoding="utf-8")
    return {
        root / "docs" / "cli.md": cli_page(),
        root / "docs" / "methods.md": methods_page(),
        root / "docs" / "serving.md": between(between(serving, "settings", settings_table()), "codes", codes_table()),
        root / "README.md": between(readme, "methods", methods_table()),
    }


def between(page: str, name: str, text: str) -> str:
    """The page with ``text`` between its marks ``<!-- name -->`` and ``<!-- /name -->``.

    Raises:
        ValueError: the page has not each of the marks once, in this order.
    """
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"the page must hold {begin} and, after it, {end}, each once")
    head, rest = page.split(begin)
    return f"{head}{begin}\n{text}{end}{rest.split(end)[1]}"


def settings_table() -> str:
    """All settings of the server with their ranges."""
    rows = []
    for name, setting in ServeSettings.model_fields.items():
        usual = "" if setting.default is None else f"`{json.dumps(setting.default)}`"
        rows.append((f"`{name}`", usual, allowed(name), setting.description or ""))
    return table(("setting", "default", "allowed", "what it is"), rows)


def codes_table() -> str:
    """All codes of the server's errors."""
    return table(("code", "what it means"), [(f"`{code}`", means) for code, means in CODES.items()])


def cli_page() -> str:
    """All help texts."""
    parts = ["# The command line\n", f"{GENERATED}\n"]
    for path, text in help_texts(cli, "redraft", None):
        parts.append(f"## {path}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def help_texts(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    """Name and help text of a command and of all commands below it."""
    context = command.make_context(name, [], parent, resilient_parsing=True, terminal_width=WIDTH, color=False)
    yield context.command_path, "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None and not found.hidden:
                yield from help_texts(found, below, context)


def our_methods() -> list[Method]:
    """The methods that come with Redraft; those of installed plug-ins are left out."""
    return [method for method in all_methods().values() if method.build.__module__.split(".")[0] == "redraft"]


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in escaped)


def methods_table() -> str:
    """The README's table."""
    rows = [(f"`{each.name}`", each.drafter, each.rule, each.summary, each.source) for each in our_methods()]
    return table(("method", "drafter", "acceptance rule", "what it does", "source"), rows)


def methods_page() -> str:
    """A section for every method."""
    parts = [
        "# The methods\n",
        f"{GENERATED}\n",
        "Choose one with `--method` and set its options with `--option NAME=VALUE`. `redraft methods` prints this\n"
        "list, with the methods of installed plug-ins in it. How to add one: [development.md](development.md).\n\n"
        "What a method needs of a backend: llama.cpp has prompt rows and trees; transformers has these and early\n"
        "exit, but for decoder-only models only. Small models are named with `--draft-model`; the demo model has its\n"
        "own.\n",
    ]
    for method in our_methods():
        parts.append(f"## {method.name}\n\n{method.summary[0].upper()}{method.summary[1:]}.\n")
        facts = [f"- Drafter: {method.drafter}", f"- Acceptance rule: {method.rule}", f"- Source: {method.source}"]
        if method.needs:
            needs = ", ".join(need.replace("_", " ") for need in sorted(method.needs))
            facts.append(f"- Needs a backend with: {needs}")
        parts.append("\n".join(facts) + "\n")
        if method.options:
            parts.append(table(("option", "default", "allowed", "what it is"), [*map(_option_row, method.options)]))
    return "\n".join(parts)


def _option_row(option: Option | Choice) -> tuple[str, str, str, str]:
    return f"`{option.name}`", f"{option.default}", option.allowed, option.help


def stale(root: Path = ROOT) -> list[str]:
    """The pages that do not read as they ought to."""
    wanted = documents(root)
    return [
        str(path.relative_to(root))
        for path, text in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def write(root: Path = ROOT) -> None:
    """Write all pages anew."""
    for path, text in documents(root).items():
        path.write_text(text, encoding="utf-8", newline="\n")


class Photographer:
    """Watches the demo and keeps its live picture at the moment that shows most.

    That is the partial update after which the methods differ in the most languages; of several, the one at which the
    first method has just rewritten most and the last one least.  Every panel must have text, and room for all of it.
    """

    def __init__(self, contenders: Sequence[Contender]) -> None:
        self._contenders = contenders
        self._stage = Stage(contenders, Console(file=io.StringIO(), width=PICTURE_WIDTH))
        self._before: dict[Contender, str] = {}
        self._best = (0, 0)
        self.picture: RenderableType = ""

    def show(self, update: Update, runs: Sequence[Run]) -> None:
        """Look at what is shown after an update."""
        now = {run.contender: run.caption.text for run in runs if run.caption}
        if not update.final and all(_fits(run) for run in runs):
            languages = {each.language for each in self._contenders}
            differing = sum(len({now[each] for each in now if each.language == tag}) > 1 for tag in languages)
            first, last = (self._rewritten(self._contenders[index].method, now) for index in (0, -1))
            if (differing, first - last) > self._best:
                self._best, self.picture = (differing, first - last), self._stage.picture(update, runs)
        self._before = {} if update.final else now
        self._stage.show(update, runs)

    def _rewritten(self, method: str, now: dict[Contender, str]) -> int:
        """How many characters of a method's captions the update has erased."""
        pairs = [
            ([*map(ord, was)], [*map(ord, now[each])]) for each, was in self._before.items() if each.method == method
        ]
        return sum(len(before) - common_prefix(before, after) for before, after in pairs)


def _fits(run: Run) -> bool:
    """Whether the run's panel shows some text of the utterance, and all of it."""
    if run.caption is None or not run.caption.text:
        return False
    console = Console(file=io.StringIO())
    texts = [*(record.translation for record in run.records[-Stage.EARLIER :]), run.caption.text + run.caption.unstable]
    return sum(len(Text(text).wrap(console, PANEL_WIDTH)) for text in texts) <= PANEL_ROWS


def draw_picture(path: Path, threads: int) -> None:
    """Play the whole talk into three languages by ``ar`` and ``ssbd``, and draw one moment and the table of costs.

    Args:
        threads: CPU threads of the engine, 0 for all cores.
    """
    compared = contenders(("ar", "ssbd"), ("de", "zh", "ja"), BETA.default, Mask(3))
    backend = open_model("demo", LlamaOptions(context_length=512, slots=len(compared), threads=threads))
    photographer, talk = Photographer(compared), load_talk()
    runs = open_runs(backend, compared)
    compare(runs, track(talk, "playing the talk"), photographer.show)
    line = signed(backend, talk, compared[0].masking)
    backend.close()
    console = Console(record=True, width=PICTURE_WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(photographer.picture)
    console.print()
    print_table(rows(lines(runs)), "", console)
    path.write_text(self_contained(console.export_svg(title="redraft demo"), line), encoding="utf-8", newline="\n")


def self_contained(svg: str, description: str) -> str:
    """An SVG by rich with fonts of the reader's own, wide characters as wide as they are, and a description."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", FONTS)

    def stretch(found: re.Match[str]) -> str:
        # rich counts characters here, where a Chinese or Japanese one takes two cells.
        before, length, after, content = found.groups()
        text = html.unescape(content)
        return f"{before}{float(length) / len(text) * cell_len(text):g}{after}{content}<"

    svg = re.sub(r'(<text [^>]*textLength=")([\d.]+)("[^>]*>)([^<]+)<', stretch, svg)
    return svg.replace("<style>", f"<desc>{html.escape(description)}</desc>\n    <style>", 1)


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Do what the command line says; returns what is wrong, if anything."""
    parser = argparse.ArgumentParser(description="Write what the documentation takes from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where pages are out of date")
    parser.add_argument("--picture", action="store_true", help="play the talk and draw docs/demo.svg")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads for the picture; 0 takes all cores")
    chosen = parser.parse_args(arguments)
    if chosen.check:
        found = stale()
        return f"docs: out of date, run `make docs`: {', '.join(found)}" if found else None
    if chosen.picture:
        draw_picture(ROOT / "docs" / "demo.svg", chosen.threads)
    else:
        write()
    return None


if __name__ == "__main__":
    sys.exit(main())
