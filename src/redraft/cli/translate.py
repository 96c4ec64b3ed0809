"""``redraft translate``: a stream of transcripts in, captions out."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from redraft.backends.llamacpp import LlamaOptions
from redraft.cli import options as common
from redraft.errors import InputError, OptionError
from redraft.events import Failure, Update
from redraft.stabilise import Mask
from redraft.streams.live import LiveWriter
from redraft.streams.read import paced, read_jsonl, read_lines, read_text
from redraft.streams.write import JsonlWriter, LinesWriter, SubtitleWriter, Writer
from redraft.translator import Style, Translator


class Input(str, Enum):
    """What is read."""

    lines = "lines"
    jsonl = "jsonl"
    text = "text"


class Output(str, Enum):
    """What is written."""

    live = "live"
    lines = "lines"
    jsonl = "jsonl"
    srt = "srt"
    vtt = "vtt"


class Unit(str, Enum):
    """What mask-k counts."""

    tokens = "tokens"
    words = "words"


INPUT_HELP = (
    "lines: one hypothesis a line, an empty line ends the utterance. jsonl: one object a line with utterance, seq, text "
    "and optionally final, time. text: plain text, streamed by --lag words."
)
PROMPT = "Prompt"


def translate(
    to: common.To,
    file: Annotated[str, typer.Argument(help="A file, or - for standard input.")] = "-",
    model: common.Model = "demo",
    method: common.MethodName = "ssbd",
    input_format: Annotated[Input, typer.Option("--input", "-i", help=INPUT_HELP)] = Input.lines,
    output_format: Annotated[
        Output | None, typer.Option("--output", help="Form of the captions; live on a terminal, else lines.")
    ] = None,
    lag: Annotated[int, typer.Option(help="With --input text: words that come at a time.")] = 3,
    rate: Annotated[float | None, typer.Option(help="With --input text: words a second; default at once.")] = None,
    beta: common.Beta = None,
    option: common.MoreOptions = None,
    mask_k: common.MaskK = 0,
    mask_unit: Annotated[
        Unit, typer.Option(help="What --mask-k counts.", rich_help_panel=common.DECODING)
    ] = Unit.tokens,
    plain_mask: Annotated[
        bool,
        typer.Option("--plain-mask", help="Take what is hidden from the draft too.", rich_help_panel=common.DECODING),
    ] = False,
    max_tokens: Annotated[
        int, typer.Option(help="The most tokens of one translation.", rich_help_panel=common.DECODING)
    ] = 256,
    source: Annotated[str, typer.Option("--from", help="Language spoken.", rich_help_panel=PROMPT)] = "en",
    context: Annotated[
        int, typer.Option(help="Earlier sentences that the prompt carries.", rich_help_panel=PROMPT)
    ] = 0,
    term: Annotated[
        list[str] | None,
        typer.Option(metavar="TERM=TRANSLATION", help="A glossary entry; repeat.", rich_help_panel=PROMPT),
    ] = None,
    template: Annotated[
        str | None, typer.Option(help="Prompt template: tower, qwen3, chat, plain-tag.", rich_help_panel=PROMPT)
    ] = None,
    threads: common.Threads = 0,
    context_length: common.ContextLength = 2048,
    gpu_layers: common.GpuLayers = -1,
    exact: common.Exact = False,
) -> None:
    """Translate a stream while it grows.

    Examples:
      redraft translate talk.txt --input text --rate 3 --to de --to ja

      recogniser | redraft translate --to de --mask-k 3

      redraft translate talk.jsonl --input jsonl --to zh --output srt > talk.srt
    """
    mask = Mask(mask_k, mask_unit.value, display_only=not plain_mask)
    chosen = common.method_options(method, beta, option or [])
    style = Style(source, template, tuple(_glossary(term or [])), context)
    engine = LlamaOptions(context_length=context_length, threads=threads, gpu_layers=gpu_layers, exact=exact)
    output = output_format or (Output.live if sys.stdout.isatty() else Output.lines)
    with (
        _opened(file) as stream,
        Translator.open(
            model, to=to, method=method, options=chosen, mask=mask, style=style, max_tokens=max_tokens, engine=engine
        ) as translator,
    ):
        updates = _updates(stream, input_format, lag, rate)
        with _writer(output, to) as writer:
            failed = _run(updates, translator, writer)
    if failed:
        raise typer.Exit(1)


def _run(updates: Iterable[Update | Failure], translator: Translator, writer: Writer) -> bool:
    """Translate all of the stream; whether something in it could not be."""
    failed = False
    for update in updates:
        events = [update] if isinstance(update, Failure) else translator.translate(update)
        for event in events:
            failed = failed or isinstance(event, Failure)
            writer.write(event)
    return failed


def _updates(stream: BinaryIO, form: Input, lag: int, rate: float | None) -> Iterator[Update | Failure]:
    if form is Input.lines:
        return read_lines(stream)
    if form is Input.jsonl:
        return read_jsonl(stream)
    updates = read_text(stream, lag=lag, rate=rate)
    return updates if rate is None else paced(updates, time.monotonic, time.sleep)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = Path(file).open("rb")
    except OSError as error:
        raise InputError(f"input file {file!r} cannot be read: {error.strerror}") from error
    with stream:
        yield stream


@contextmanager
def _writer(output: Output, languages: list[str]) -> Iterator[Writer]:
    writer: Writer
    if output is Output.live:
        writer = LiveWriter(languages)
    elif output is Output.jsonl:
        writer = JsonlWriter(sys.stdout)
    elif output is Output.lines:
        writer = LinesWriter(sys.stdout, sys.stderr, languages)
    else:
        writer = SubtitleWriter(sys.stdout, sys.stderr, languages, output.value)
    try:
        yield writer
    finally:
        writer.close()


def _glossary(terms: list[str]) -> Iterator[tuple[str, str]]:
    for text in terms:
        term, sign, translation = (part.strip() for part in text.partition("="))
        if not (term and sign and translation):
            raise OptionError(f"--term must be TERM=TRANSLATION, not {text!r}")
        yield term, translation
