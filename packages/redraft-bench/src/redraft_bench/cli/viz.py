"""``redraft viz``: pictures of decoding, drawn by `redraft_bench.viz` and `redraft_bench.ddg`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redraft.cli.shared import options as common
from redraft.errors import InputError, OptionError

if TYPE_CHECKING:
    from redraft.captions.formats.read import Item
    from redraft.decoding.method import Method
    from redraft.translator import Translator
    from redraft_bench.ddg import Graph
    from redraft_bench.viz import DraftRow

EXAMPLES = """\b
Examples:
  redraft viz talk.txt --to de
  redraft viz talk.txt --lag 3 --to de --out drafts.svg
  echo "She was born in 1990." | redraft viz --ddg --to de
"""


@click.command(epilog=EXAMPLES, short_help="Show how translations were decoded, token by token.")
@click.argument("file", default="-", metavar="[FILE|-]")
@common.to
@click.option("--ddg", is_flag=True, help="Draw the dependency graph of each final text, by a method such as jacobi.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="SVG file.  [default: the terminal]"
)
@click.option(
    "--width",
    type=common.Whole(40, 1000),
    help="With --ddg: most characters of a line.  [default: the terminal's width; none in a file]",
)
@click.option("--json", "as_json", is_flag=True, help="With --ddg: print each graph as a line of JSON.")
@click.option("--from", "source_language", default="en", metavar="LANGUAGE", help="Language of the source.")
@common.form
@click.option("--lag", type=common.Whole(1), default=3, help="With --input text: words added per update.")
@click.option("--updates", type=common.Whole(1, 200), default=30, help="Stop after this many updates.")
@common.model
@common.draft_model
@click.option("--method", metavar="NAME", help="Decoding method.  [default: redraft; jacobi with --ddg]")
@common.option
@common.engine
def viz(
    file: str,
    to: tuple[str, ...],
    ddg: bool,
    out: Path | None,
    width: int | None,
    as_json: bool,
    form: str | None,
    lag: int,
    updates: int,
    method: str | None,
    option: tuple[str, ...],
    **given: Any,
) -> None:
    """Show the origin of every token of a stream's translations: draft, correction, or a pass of its own.

    With --ddg, show which tokens became final in which iteration of Jacobi decoding, and which earlier ones they waited
    for.
    """
    if out is not None and (out.suffix != ".svg" or not out.parent.is_dir()):
        raise OptionError(f"--out must be a file in a folder that exists and end in .svg, not {str(out)!r}")
    if as_json and (not ddg or out is not None):
        raise OptionError("--json is for --ddg without --out")
    if width is not None and (not ddg or as_json):
        raise OptionError("--width is for --ddg without --json")
    form = common.input_of(form, file)
    common.refuse_idle_text(form)
    method = method or ("jacobi" if ddg else "redraft")
    chosen = common.method_options(method, option)
    from rich.console import Console

    from redraft.captions.languages import parse_languages
    from redraft.cli.shared import stream
    from redraft.speech.sentences import in_sentences
    from redraft_bench import viz as drafts

    languages = parse_languages(to)
    with stream.opened(file, form) as source:
        read = in_sentences(stream.updates(source, form, None, lag=lag), whole=True)
        items = list(islice(filter(_is_final, read) if ddg else read, updates))
    if ddg:
        if not items:
            raise InputError("--ddg draws final texts, and the input has none")
        drawn = [each for language in languages for each in _graphs(items, method, chosen, language, **given)]
        _show_graphs(drawn, out, width, as_json=as_json)
        return
    shown = [_rows(items, method, chosen, language, **given) for language in languages]
    if out is None:
        for rows, heading in shown:
            Console().print(drafts.layout(rows, heading))
    else:
        _write(out, drafts.svg(shown))


def _show_graphs(
    drawn: Sequence[tuple[Graph, dict[str, Any], str]], out: Path | None, width: int | None, *, as_json: bool
) -> None:
    """Write dependency graphs to a file or to the terminal, given facts and a heading for each."""
    from rich.console import Console

    from redraft_bench.ddg import layout, svg

    console = Console()
    if out is not None:
        _write(out, svg([(found, heading) for found, _facts, heading in drawn], width))
        return
    for found, facts, heading in drawn:
        if as_json:
            click.echo(json.dumps({**facts, **found.as_json()}, ensure_ascii=False))
        else:
            console.width = max(console.width, width or 0)
            console.print(layout(found, heading, width or console.width))


def _is_final(item: Item) -> bool:
    return getattr(item, "final", True)  # also of a line that is invalid


def _write(out: Path, document: str) -> None:
    out.write_text(document, encoding="utf-8", newline="\n")


def _open(
    method: Method,
    chosen: Mapping[str, float | str],
    to: str,
    *,
    source_language: str,
    **more: Any,
) -> Translator:
    from redraft.captions.style import Style
    from redraft.translator import Translator

    return Translator.open(
        to=[to],
        method=method,
        options=chosen,
        style=Style(source_language),
        **more,
    )


def _rows(
    items: Iterable[Item], method: str, chosen: Mapping[str, float | str], to: str, **given: Any
) -> tuple[Sequence[DraftRow], str]:
    """Return the rows of the draft view into one language, and its heading."""
    from redraft.decoding.methods import get_method
    from redraft_bench.viz import Trace, traced, view

    traces: list[Trace] = []
    with _open(traced(get_method(method), traces), chosen, to, **given) as translator:
        rows = list(view(items, translator.translate, traces, translator.backend.token_bytes))
    run = _run_of(given["source_language"], to, given["model"], translator.method, chosen)
    return rows, f"Where the tokens came from: {run}"


def _graphs(
    items: Iterable[Item], method: str, chosen: Mapping[str, float | str], to: str, **given: Any
) -> Iterator[tuple[Graph, dict[str, Any], str]]:
    """Yield the dependency graph of each final text into one language, with facts about it and its heading."""
    from redraft.captions.events import Failure, Update
    from redraft.decoding.method import Setup
    from redraft.decoding.methods import get_method
    from redraft.decoding.types import Drafter
    from redraft_bench.ddg import Iterations, graph, label
    from redraft_bench.viz import wrapped

    found: list[Iterations] = []

    def record(drafter: Drafter, _setup: Setup) -> Drafter:
        found.append(Iterations(drafter))
        return found[-1]

    with _open(wrapped(get_method(method), record), chosen, to, **given) as translator:
        backend = translator.backend
        for item in items:
            found.clear()
            events = translator.translate(item) if isinstance(item, Update) else [item]
            for event in events:
                if isinstance(event, Failure):
                    click.echo(f"redraft: {event.message}", err=True)
            state = translator.state(to)
            decoded = [
                each for each in found if tuple(each.output[: len(state.output)]) == state.output and each.passes
            ]
            if isinstance(item, Failure) or not decoded:
                continue
            made = graph(decoded[-1], backend.end_tokens, lambda token: label(backend.token_bytes(token)))
            run = _run_of(given["source_language"], to, given["model"], translator.method, chosen)
            facts = {"source": item.text, "target_language": to, "method": method, "options": chosen}
            yield made, facts, f"{run}: {item.text}"


def _run_of(source_language: str, to: str, model: str, method: Method, options: Mapping[str, float | str]) -> str:
    """Describe languages, model, method and the options that differ from their defaults."""
    defaults = {each.name: each.default for each in method.all_options}
    values = [f"{name} {value}" for name, value in options.items() if value != defaults[name]]
    return f"{source_language} to {to}, {Path(model).name}, {method.name}" + f" ({', '.join(values)})" * bool(values)
