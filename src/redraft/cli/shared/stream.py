"""Inputs and outputs of commands that make captions."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from redraft.captions.formats.cues import PROFILES, Profile
from redraft.captions.formats.jsonl import read_jsonl
from redraft.captions.formats.outputs import Output, open_writer
from redraft.captions.formats.push import CaptionService, PushWriter
from redraft.captions.formats.read import Item, ended, paced, read_lines, read_text
from redraft.captions.formats.rows import RowsWriter
from redraft.captions.formats.simulstreaming import read_simulstreaming
from redraft.captions.formats.write import SpokenWriter, Writer
from redraft.cli.shared.ending import Ending
from redraft.cli.shared.forms import refuse_other
from redraft.cli.shared.options import is_file
from redraft.errors import InputError


def standard_input(ending: Ending | None = None, *, drained: bool = False) -> io.BufferedReader:
    """Return standard input; if it is a descriptor, its data ends when that is asked for (`Ending.pipe`).

    Raises:
        InputError: it is closed.
    """
    if sys.stdin is None:
        raise InputError("standard input is closed: name a file to read")
    stdin = sys.stdin.buffer  # of programs that call commands, it may be any stream
    if ending is not None:
        with suppress(OSError):
            return ending.pipe(stdin.fileno(), drained=drained)
    return stdin if isinstance(stdin, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stdin))


#: Words of a text that each update adds.
LAG = 3


@contextmanager
def opened(file: str, form: str, ending: Ending | None = None) -> Iterator[io.BufferedReader]:
    """Open a file for reading bytes; ``-`` is standard input.

    Raises:
        InputError: it cannot be read, or is clearly in another format.
    """
    # What is left in a pipe at the end has been recognised, except plain text.
    drained = form != "text" and not is_file(file)
    if file == "-":
        yield standard_input(ending, drained=drained)
        return
    path = Path(file)
    try:
        source = path.open("rb")
    except OSError as error:
        raise InputError(f"input file {str(path)!r} cannot be read: {error.strerror}") from error
    with source:
        reader = source if ending is None else ending.pipe(source.fileno(), drained=drained)
        refuse_other(reader, form, f"input file {file!r}")
        yield reader


def updates(
    source: io.BufferedReader,
    form: str,
    rate: float | None,
    sleep: Callable[[float], object] = time.sleep,
    *,
    by_line: bool = False,
    lag: int = LAG,
) -> Iterator[Item]:
    """Yield the items of a file line by line.

    Args:
        form: one of `redraft.cli.shared.options.INPUTS`.
        rate: see `redraft.captions.formats.read.read_text`, as for ``by_line`` and ``lag``.
        sleep: waits for the time at which a word of a text is spoken.

    Raises:
        InputError: standard input is clearly in another format.
    """
    refuse_other(source, form)
    if form == "lines":
        yield from read_lines(source)
    elif form == "jsonl":
        yield from ended(read_jsonl(source))
    elif form == "simulstreaming":
        yield from read_simulstreaming(source)
    else:
        items = read_text(source, lag=lag, rate=rate, by_line=by_line)
        yield from items if rate is None else paced(items, sleep=sleep)


@contextmanager
def writer(
    form: str,
    languages: Sequence[str],
    width: int | None = None,
    push: Sequence[tuple[str, CaptionService]] = (),
    *,
    spoken: str | None = None,
    live: bool = False,
    profile: Profile = PROFILES["web"],
) -> Iterator[Writer]:
    """Open a writer to standard output; it is always closed at the end, after an interruption without more pushes.

    Args:
        form: output format.
        languages: languages of the output.
        width: width of the lines of reading mode in cells; None turns it off.
        push: languages whose captions are also sent to a service.
        spoken: the language that is spoken, if it is one of them.
        live: whether captions come while they are spoken.
        profile: what readers of subtitles need.
    """
    made = open_writer(Output(form, sys.stdout, sys.stderr, languages, profile))
    for language, service in push:
        made = PushWriter(made, service, language)
    if width is not None:
        made = RowsWriter(made, width, live=live)
    if spoken is not None:
        made = SpokenWriter(made, spoken)
    try:
        yield made
    except KeyboardInterrupt:
        made.drop()
        raise
    finally:
        made.close()
