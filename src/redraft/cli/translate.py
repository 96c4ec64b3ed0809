"""``redraft translate``: input options; `redraft.cli.shared.captioning` makes the captions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from redraft.captions.formats.read import Item
from redraft.cli.shared import captioning
from redraft.cli.shared import options as common
from redraft.errors import OptionError

EXAMPLES = """\b
Examples:
  echo "Good evening. I have a dog." | redraft translate --input text --rate 3 --to de
  redraft translate talk.txt --input text --rate 3 --to de --to ja
  my-recogniser | redraft translate --to de --mask-margin 0.02
  redraft translate talk.jsonl --input jsonl --to zh --output srt > talk.srt
  redraft translate talk.txt --input text --to de --server http://127.0.0.1:8765 --room hall-1
"""


@click.command(epilog=EXAMPLES)
@click.argument("file", default="-", metavar="[FILE|-]")
@captioning.languages
@common.form_or_server
@common.lag
@click.option(
    "--rate", type=common.Real(0, min_open=True), help="With --input text: words per second.  [default: no pauses]"
)
@captioning.translation
def translate(file: str, form: str, lag: int, rate: float | None, **chosen: Any) -> None:
    """Translate a growing transcript from FILE or standard input.

    Captions go to standard output, errors to standard error, one sentence each. The exit status is 0 if everything was
    translated, 1 if something in the stream could not be translated, and 2 if nothing was started. docs/streams.md
    describes all formats.
    """
    common.refuse_idle(form)
    if "://" in form and common.is_given("file"):
        raise OptionError(f"--input {form} reads from a server, so leave {file!r} out")

    @contextmanager
    def opened() -> Iterator[Iterator[Item]]:
        from redraft.cli.shared import stream

        if "://" in form:
            from redraft.speech.newest import newest
            from redraft.speech.servers import overhear

            yield newest(overhear(form))
            return
        with stream.opened(file) as source:
            yield _hinted(stream.updates(source, form, lag, rate), file, form)

    captioning.caption(opened, **chosen)


def _hinted(items: Iterator[Item], file: str, form: str) -> Iterator[Item]:
    """Yield the items; print a hint if the program reads from the keyboard."""
    if file == "-" and sys.stdin is not None and sys.stdin.isatty():
        what = {"lines": "one growing hypothesis per line, an empty line after each utterance", "text": "plain text"}
        click.echo(f"redraft: reading {what.get(form, form)} from the keyboard; Ctrl-D ends it", err=True)
    yield from items
