"""``redraft viz``: pictures of decoding, drawn by `redraft_bench.viz`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from redraft.cli.shared import options as common
from redraft.errors import InputError, OptionError

if TYPE_CHECKING:
    from redraft.decoding.method import Method
    from redraft_bench.viz.figure import Sheet

ENDINGS = (".svg", ".png")
ITERATING = ("jacobi", "gs-jacobi", "hybrid-jacobi")

EXAMPLES = """\b
Examples:
  redraft viz ddg "We met at the station." --to de --out ddg.svg
  redraft viz drafts talk.txt --input text --lag 3 --to de --out drafts.svg
"""

to = click.option("--to", "-t", required=True, metavar="LANGUAGE", help="Target language: de, ja, zh-CN, ...")
source_language = click.option(
    "--from", "source_language", default="en", metavar="LANGUAGE", help="Language of the source."
)
out = click.option(
    "--out",
    required=True,
    metavar="FILE",
    callback=lambda _context, _parameter, value: _checked(value),
    help="Output file: .svg or .png.",
)


@click.group(epilog=EXAMPLES, invoke_without_command=True)
@click.pass_context
def viz(context: click.Context) -> None:
    """Draw how a translation was decoded, as SVG or PNG."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@viz.command(short_help="Draw the decoding dependency graph of one sentence.")
@click.argument("text")
@to
@out
@source_language
@common.model
@click.option("--method", type=click.Choice(ITERATING), default="jacobi", help="Iterative decoding method.")
@common.option
@click.option("--max-tokens", type=common.Whole(1, 256), default=64, help="Maximum tokens of the translation.")
@common.threads
@common.gpu_layers
def ddg(
    text: str,
    to: str,
    out: Path,
    source_language: str,
    model: str,
    method: str,
    option: tuple[str, ...],
    max_tokens: int,
    threads: int,
    gpu_layers: int,
) -> None:
    """Draw which tokens of a translation had to wait for others, and which were decoded in parallel.

    The graph is above a grid of iterations and tokens with their probabilities (DDGviz, Santilli et al. 2023).
    """
    chosen = common.method_options(method, None, option)
    from redraft.backends.llamacpp import LlamaOptions
    from redraft.captions.events import Caption, Failure, Update
    from redraft.captions.formats.read import printable
    from redraft.captions.style import Style
    from redraft.decoding.methods import get_method
    from redraft.translator import Translator
    from redraft_bench.viz.ddg import graph
    from redraft_bench.viz.draw import draw_graph
    from redraft_bench.viz.labels import label
    from redraft_bench.viz.trace import Trace, traced

    text = printable(text).strip()
    if not text:
        raise InputError("TEXT must not be empty")
    traces: list[Trace] = []
    with Translator.open(
        model,
        to=[to],
        method=traced(get_method(method), traces),
        options=chosen,
        style=Style(source_language),
        max_tokens=max_tokens,
        engine=LlamaOptions(threads=threads, gpu_layers=gpu_layers),
    ) as translator:
        events = translator.translate(Update("1", 0, text, final=True))
        failures = [event.message for event in events if isinstance(event, Failure)]
        if not traces or not traces[0].steps:
            raise InputError("; ".join(failures))
        found = graph(traces[0])
        used = {token.token for token in found.tokens} | {each.token for row in found.grid for each in row if each}
        ends = translator.backend.end_tokens
        labels = {each: "[end]" if each in ends else label(translator.backend.token_bytes(each)) for each in used}
    for message in failures:
        click.echo(f"redraft: {message}", err=True)
    translation = "".join(event.text for event in events if isinstance(event, Caption))
    summary = (
        f"{_run_of(source_language, to, model, translator.method, chosen)}: {len(found.tokens)} tokens in "
        f"{found.iterations} iterations, {sum(token.parallel for token in found.tokens)} of them in parallel"
    )
    _save(draw_graph(found, labels, text, translation, summary), out)


@viz.command(short_help="Draw a stream's updates, tokens coloured by origin.")
@click.argument("file", default="-", metavar="[FILE|-]")
@to
@out
@source_language
@common.form
@common.lag
@click.option("--updates", type=common.Whole(1, 200), default=30, help="Stop after this many updates.")
@common.model
@common.draft_model
@common.method
@common.beta
@common.option
@common.max_tokens
@common.threads
@common.gpu_layers
def drafts(
    file: str,
    to: str,
    out: Path,
    source_language: str,
    form: str,
    lag: int,
    updates: int,
    model: str,
    draft_model: str | None,
    method: str,
    beta: float | None,
    option: tuple[str, ...],
    max_tokens: int,
    threads: int,
    gpu_layers: int,
) -> None:
    """Draw the origin of every token of a stream's translations: draft, correction, or a pass of its own."""
    common.refuse_idle_text(form)
    chosen = common.method_options(method, beta, option)
    from redraft.backends.llamacpp import LlamaOptions
    from redraft.captions.style import Style
    from redraft.cli.shared import stream
    from redraft.decoding.methods import get_method
    from redraft.translator import Translator
    from redraft_bench.viz.drafts import summary_of, view
    from redraft_bench.viz.draw import draw_drafts
    from redraft_bench.viz.trace import Trace, traced

    traces: list[Trace] = []
    with (
        stream.opened(file, form) as source_file,
        Translator.open(
            model,
            to=[to],
            method=traced(get_method(method), traces),
            options=chosen,
            style=Style(source_language),
            max_tokens=max_tokens,
            hold_back=False,  # a row draws the translation of the whole text beside it
            engine=LlamaOptions(threads=threads, gpu_layers=gpu_layers),
            draft_model=draft_model,
        ) as translator,
    ):
        items = stream.updates(source_file, form, lag, None)
        rows = list(view(items, translator.translate, traces, translator.backend.token_bytes, updates))
    heading = f"Where the tokens came from: {_run_of(source_language, to, model, translator.method, chosen)}"
    _save(draw_drafts(rows, heading, summary_of(rows)), out)


def _checked(value: str) -> Path:
    """Check the output path before a model is loaded."""
    path = Path(value)
    if path.suffix not in ENDINGS:
        raise OptionError(f"--out must end in {' or '.join(ENDINGS)}, not {value!r}")
    if path.is_dir() or not path.parent.is_dir():
        raise OptionError(f"--out must be a file in a folder that exists, not {value!r}")
    return path


def _run_of(source_language: str, to: str, model: str, method: Method, options: Mapping[str, float | str]) -> str:
    """Describe languages, model, method and the options that differ from their defaults."""
    values = [f"{each.name} {options[each.name]}" for each in method.options if options[each.name] != each.default]
    return f"{source_language} to {to}, {Path(model).name}, {method.name}" + (
        f" ({', '.join(values)})" if values else ""
    )


def _save(sheet: Sheet, path: Path) -> None:
    missing = sheet.save(path)
    if missing:
        click.echo(f"redraft: {_missing(missing)}", err=True)


def _missing(characters: Sequence[str]) -> str:
    return (
        f"no installed font has {len(characters)} of the characters, such as {characters[0]}; SVG files are shown with "
        "the fonts of the viewer's machine, PNG files have boxes instead (install a font such as Noto Sans CJK)"
    )
