"""The work of ``redraft translate``: a file is read, every update translated, every event written."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from redraft.captions.events import Failure
from redraft.captions.formats.live import LiveWriter
from redraft.captions.formats.push import CaptionService, PushWriter
from redraft.captions.formats.read import Item, ended, paced, read_jsonl, read_lines, read_text
from redraft.captions.formats.rows import RowsWriter
from redraft.captions.formats.simulstreaming import read_simulstreaming
from redraft.captions.formats.write import JsonlWriter, LinesWriter, SubtitleWriter, Writer
from redraft.captions.reading import Layout
from redraft.errors import InputError, MissingExtra
from redraft.translator import Translator


def opened(file: str) -> AbstractContextManager[BinaryIO]:
    """A file to read bytes from, standard input for ``-``.

    Raises:
        InputError: it cannot be read.
    """
    if file == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed: name a file to read")
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise InputError(f"input file {file!r} cannot be read: {error.strerror}") from error


def updates(source: BinaryIO, form: str, lag: int, rate: float | None) -> Iterator[Item]:
    """What a file holds, read line by line; ``form`` is one of `redraft.cli.shared.options.INPUTS`."""
    if form == "lines":
        return read_lines(source)
    if form == "jsonl":
        return ended(read_jsonl(source))
    if form == "simulstreaming":
        return read_simulstreaming(source)
    items = read_text(source, lag=lag, rate=rate)
    return items if rate is None else paced(items)


@contextmanager
def writer(
    form: str, languages: Sequence[str], layout: Layout | None = None, push: Sequence[tuple[str, CaptionService]] = ()
) -> Iterator[Writer]:
    """A writer to standard output; closed at the end, whatever happens.

    Args:
        layout: of reading mode, if it is wanted.
        push: languages whose captions are also sent to a service.
    """
    made = _writer(form, languages)
    for language, service in push:
        made = PushWriter(made, service, language)
    if layout is not None:
        made = RowsWriter(made, layout)
    try:
        yield made
    finally:
        made.close()


def is_whole(writer: Writer) -> bool:
    """Whether a writer has written everything as it was given: subtitles have no place for every time."""
    while isinstance(writer, PushWriter | RowsWriter):
        if isinstance(writer, PushWriter) and writer.given_up:
            return False
        writer = writer.writer
    return not (isinstance(writer, SubtitleWriter) and writer.complained)


def _writer(form: str, languages: Sequence[str]) -> Writer:
    if form == "live":
        return LiveWriter(languages)
    if form == "jsonl":
        return JsonlWriter(sys.stdout)
    if form == "lines":
        return LinesWriter(sys.stdout, sys.stderr)
    return SubtitleWriter(sys.stdout, sys.stderr, form, languages)


def run(items: Iterable[Item], translator: Translator, writer: Writer) -> bool:
    """Translate all of a stream; whether nothing in it failed."""
    whole = True
    for item in items:
        for event in [item] if isinstance(item, Failure) else translator.translate(item):
            whole = whole and not isinstance(event, Failure)
            writer.write(event)
    return whole


@dataclass(frozen=True, slots=True)
class RemoteTarget:
    """Where on which server a stream is translated.

    Attributes:
        server: its address.
        key: API key, where it wants one.
        room: name of the room whose viewers see the captions.
        take_over: whether to end the session that the room may have now.
    """

    server: str
    key: str | None = None
    room: str | None = None
    take_over: bool = False


def remote(items: Iterable[Item], writer: Writer, place: RemoteTarget, languages: Sequence[str], **wanted: Any) -> bool:
    """Translate all of a stream on a server; whether nothing in it failed.

    Args:
        wanted: how to translate, as of `redraft.client.Client`.

    Raises:
        MissingExtra: what a client needs is not installed.
        ServerError: the server cannot be reached, refuses, or is lost for good.
        OptionError: the address or an option is none.
    """
    try:
        from redraft.cli.shared.remote import run as run_remote
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"--server needs {error.name}, which is not installed: pip install 'redraft[serve]'"
        ) from error
    return run_remote(items, writer, place, languages, **wanted)
