"""``redraft viz``: where the tokens of a stream's translations came from; `redraft_bench.viz` draws it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from redraft.cli.shared import options as common
from redraft.errors import OptionError

if TYPE_CHECKING:
    from redraft.decoding.method import Method

EXAMPLES = """\b
Examples:
  redraft viz talk.txt --input text --to de
  redraft viz talk.txt --input text --lag 3 --to de --out drafts.svg
"""


@click.command(epilog=EXAMPLES, short_help="Show where the tokens of translations came from.")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option("--to", "-t", required=True, metavar="LANGUAGE", help="Target language: de, ja, zh-CN, ...")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="SVG file.  [default: the terminal]"
)
@click.option("--from", "source_language", default="en", metavar="LANGUAGE", help="Language of the source.")
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
def viz(
    file: str,
    to: str,
    out: Path | None,
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
    """Show the origin of every token of a stream's translations: draft, correction, or a pass of its own."""
    if out is not None and (out.suffix != ".svg" or not out.parent.is_dir()):
        raise OptionError(f"--out must be a file in a folder that exists and end in .svg, not {str(out)!r}")
    common.refuse_idle_text(form)
    chosen = common.method_options(method, beta, option)
    from rich.console import Console

    from redraft.backends.llamacpp import LlamaOptions
    from redraft.captions.style import Style
    from redraft.cli.shared import stream
    from redraft.decoding.methods import get_method
    from redraft.translator import Translator
    from redraft_bench.viz import Trace, layout, svg, traced, view

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
            hold_back=False,  # a row shows the translation of the whole text beside it
            engine=LlamaOptions(threads=threads, gpu_layers=gpu_layers),
            draft_model=draft_model,
        ) as translator,
    ):
        items = stream.updates(source_file, form, lag, None)
        rows = list(view(items, translator.translate, traces, translator.backend.token_bytes, updates))
    heading = f"Where the tokens came from: {_run_of(source_language, to, model, translator.method, chosen)}"
    if out is None:
        Console().print(layout(rows, heading))
    else:
        out.write_text(svg(rows, heading), encoding="utf-8", newline="\n")


def _run_of(source_language: str, to: str, model: str, method: Method, options: Mapping[str, float | str]) -> str:
    """Describe languages, model, method and the options that differ from their defaults."""
    values = [f"{each.name} {options[each.name]}" for each in method.options if options[each.name] != each.default]
    return f"{source_language} to {to}, {Path(model).name}, {method.name}" + f" ({', '.join(values)})" * bool(values)
