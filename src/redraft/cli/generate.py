"""``redraft generate``: continue a text by any method, with one of the models that translate or write anything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import IO

import click

from redraft.cli.shared import options as common
from redraft.cli.shared.notice import notice
from redraft.errors import InputError, OptionError

EXAMPLES = """\b
Examples:
  redraft generate --model my.gguf "Name three rivers in Europe."
  redraft generate --model my.gguf --method aasd --prompt-file report.txt
  redraft generate --model my.gguf --method ssbd --previous old.txt "..."
  redraft generate --model hf:google/flan-t5-small "Is Bern in France?"
  cat main.py | redraft generate --model my.gguf --raw --method pld --json
"""


@click.command(epilog=EXAMPLES, short_help="Continue a text: answers, summaries, code.")
@click.argument("text", required=False, metavar="[TEXT]")
@click.option("--prompt-file", type=click.File(encoding="utf-8"), metavar="FILE", help="Read the text from a file.")
@click.option(
    "--previous",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="What was written before, for methods that draft it, such as ssbd: a summary of a text that has grown since, "
    "or a text to edit.",
)
@click.option("--raw", is_flag=True, help="Continue the text as it is, without the model's chat template.")
@common.model
@common.draft_model
@click.option("--method", default="ar", metavar="NAME", help="Decoding method, from `redraft methods`.")
@common.option
@common.engine
@click.option("--json", "as_json", is_flag=True, help="Print the text with its passes as a line of JSON.")
def generate(
    text: str | None,
    prompt_file: IO[str] | None,
    previous: IO[str] | None,
    raw: bool,
    model: str,
    draft_model: str | None,
    method: str,
    option: tuple[str, ...],
    as_json: bool,
    engine: Mapping[str, float | str],
) -> None:
    """Continue TEXT, or standard input, and print what the model writes as it is decoded.

    The text is a turn of the user if the model has a chat template. Encoder-decoders such as T5 read it as it is.
    Models that only translate, such as the demo models, are not made for this.
    """
    from redraft.cli.shared.stream import standard_input
    from redraft.generator import Generator

    chosen = common.method_options(method, option)
    if text is not None and prompt_file is not None:
        raise OptionError("give TEXT or --prompt-file, not both")
    if text is None:
        text = prompt_file.read() if prompt_file else standard_input().read().decode(errors="replace")
    if not text.strip():
        raise InputError("there is no text to continue: give TEXT, --prompt-file or standard input")
    with Generator.open(
        model,
        method=method,
        options=chosen,
        raw=raw,
        engine={"context_length": 4096, **engine},
        draft_model=draft_model,
    ) as generator:
        before = previous.read().rstrip("\n") if previous else ""
        made = generator.generate(text, None if as_json else partial(click.echo, nl=False), previous=before)
    if as_json:
        counts = {name: getattr(made.output, name) for name in ("passes", "drafted", "accepted", "draft_passes")}
        row = {"text": made.text, "tokens": len(made.output.tokens), "finished": made.output.finished, **counts}
        click.echo(json.dumps(row, ensure_ascii=False))
    else:
        click.echo()
    if not made.text.strip():
        notice("the model ended the text at once; one that only translates, such as demo, cannot continue a text")
