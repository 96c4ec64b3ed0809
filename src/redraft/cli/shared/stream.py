"""The work of ``redraft translate``: read a file, translate each update, write each event."""

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
from redraft.errors import InputError
from redraft.translator import Translator


def opened(file: str) -> AbstractContextManager[BinaryIO]:
    """Open a file for reading bytes; ``-`` is standard input.

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
    """Yield the items of a file line by line; ``form`` is one of `redraft.cli.shared.options.INPUTS`."""
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
    """Open a writer to standard output; it is always closed at the end.

    Args:
        form: output format.
        languages: target languages.
        layout: layout of reading mode; None turns it off.
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
    """Whether a writer wrote everything unchanged; subtitles cannot represent some times."""
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
    """Translate a stream; return whether everything succeeded."""
    whole = True
    for item in items:
        for event in [item] if isinstance(item, Failure) else translator.translate(item):
            whole = whole and not isinstance(event, Failure)
            writer.write(event)
    return whole


@dataclass(frozen=True, slots=True)
class RemoteTarget:
    """A server, and how to use it.

    Attributes:
        server: its URL.
        key: API key, if it needs one.
        room: name of the room whose viewers see the captions.
        take_over: whether to end the room's current session.
    """

    server: str
    key: str | None = None
    room: str | None = None
    take_over: bool = False


def remote(items: Iterable[Item], writer: Writer, place: RemoteTarget, languages: Sequence[str], **wanted: Any) -> bool:
    """Translate a stream on a server; return whether everything succeeded.

    Args:
        items: the updates.
        writer: writes the captions.
        place: the server and the room.
        languages: target languages.
        wanted: further arguments of `redraft.client.Client`.

    Raises:
        MissingExtra: the client's dependencies are not installed.
        ServerError: the server cannot be reached, refuses, or the connection is lost for good.
        OptionError: the address or an option is invalid.
    """
    from redraft.cli.shared.remote import run as run_remote  # needs an extra

    return run_remote(items, writer, place, languages, **wanted)
