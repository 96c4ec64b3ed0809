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
from redraft.cli.shared.ending import Ending
from redraft.cli.shared.notice import notice
from redraft.errors import OptionError

EXAMPLES = """\b
Examples:
  redraft translate talk.txt --to de
  redraft translate talk.txt --rate 3 --to de --to ja
  my-recogniser | redraft translate --to de
  redraft translate talk.jsonl --input jsonl --to zh --output srt > talk.srt
  my-recogniser | redraft translate --to de --server http://127.0.0.1:8765
"""


@click.command(cls=common.Grouped, epilog=EXAMPLES)
@click.argument("file", default="-", metavar="[FILE|-]")
@captioning.languages
@common.heading("Input")
@common.form_or_server
@click.option(
    "--rate", type=common.Real(0, min_open=True), help="With --input text: words per second.  [default: no pauses]"
)
@common.sentences(None)
@captioning.translation
@common.needs("client", "--server needs")
def translate(file: str, form: str | None, rate: float | None, sentences: bool | None, **chosen: Any) -> None:
    """Translate a text from FILE, or a growing transcript from standard input.

    Ctrl-C finishes what has been read; a second one ends at once, and names the sentences that have no caption.

    Captions go to standard output, errors to standard error. The exit status is 1 if something could not be translated,
    and 2 if nothing was started. docs/streams.md describes all formats.
    """
    form = common.input_of(form, file)
    common.refuse_idle_text(form)
    remote = "://" in form
    if remote and "file" in common.given():
        raise OptionError(f"--input {form} reads from a server, so leave {file!r} out")

    @contextmanager
    def opened(ending: Ending) -> Iterator[Iterator[Item]]:
        from redraft.cli.shared import stream
        from redraft.speech.sentences import in_sentences

        ending.live = remote or rate is not None
        if remote:
            from redraft.speech.servers import ServerRecogniser

            ending.endless = True
            server = ServerRecogniser(form, news=notice)
            ending.when_asked(server.hurried.set)
            yield in_sentences(server.overhear(), whole=not sentences)
            return
        with stream.opened(file, form, ending) as source:
            by_line = sentences is False
            items = ending.until(stream.updates(source, form, rate, ending.sleep, by_line=by_line))
            items = _hinted(items, file, form)
            yield in_sentences(items, whole=form == "text" or not sentences)  # text is cut by its reader

    captioning.caption(opened, **chosen)


def _hinted(items: Iterator[Item], file: str, form: str) -> Iterator[Item]:
    """Yield the items; print a hint if the program reads from the keyboard."""
    if file == "-" and sys.stdin.isatty():
        growing = "type a sentence, Enter after each change; an empty line ends it"
        notice(growing if form == "lines" else f"type {form}")
        notice("Ctrl-D ends the input")
    yield from items
