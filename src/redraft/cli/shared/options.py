"""Options shared by several commands, and their types."""

from __future__ import annotations

import inspect
import math
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from redraft.errors import OptionError, install
from redraft.models.hub import default_model

if TYPE_CHECKING:
    from redraft.captions.formats.cues import Profile

#: The inputs; docs/contracts.md has their contracts.
INPUTS = ("text", "lines", "jsonl", "simulstreaming")
INPUT_HELP = (
    "text: sentences, revealed a few words at a time. lines: the whole text so far on each line, an empty line after "
    "each utterance. jsonl: objects with utterance, seq and text. simulstreaming: its rows."
)
_INPUT_DEFAULT = "[default: text for a file, lines for a pipe]"


def is_file(file: str) -> bool:
    """Whether an input, or with ``-`` standard input, is a regular file."""
    try:
        return stat.S_ISREG(os.stat(sys.stdin.fileno() if file == "-" and sys.stdin else file).st_mode)  # noqa: PTH116
    except OSError:
        return False


def input_of(form: str | None, file: str) -> str:
    """Return the input that was chosen, or else the default: a file is text, and a pipe is lines."""
    return form or ("text" if is_file(file) else "lines")


class Whole(click.IntRange):
    """An integer in a range."""

    name = "integer"


class Real(click.FloatRange):
    """A finite number in a range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert a text to a number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):  # NaN passes range checks, since every comparison with it is false
            self.fail(f"{number} is not in the range {self._describe_range()}.", param, ctx)
        return number


def _input(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    """Return the name of an input format, or the address of a recognition server as ``NAME:ws://...``."""
    if given is None or given in INPUTS or "://" in given:
        return given
    known = ", ".join(map(repr, INPUTS))
    raise click.BadParameter(f"{given!r} is not one of {known}, or a server such as vosk:ws://127.0.0.1:2700.")


class Output(click.Choice[str]):
    """An output format; subtitles may name a profile, as ``srt:broadcast,start=10:00:00``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the format, with its profile."""
        form, _, profile = str(value).partition(":")
        if profile and form in ("srt", "vtt"):
            profile_of(str(value))
            return str(value)
        return str(super().convert(value, param, ctx))


def profile_of(output: str) -> tuple[str, Profile]:
    """Return the format of an `Output` and what readers of its subtitles need; raise `OptionError` for others."""
    from redraft.captions.formats import cues

    form, _, profile = output.partition(":")
    return form, cues.profile(profile or "web")


to = click.option(
    "--to",
    "-t",
    required=True,
    multiple=True,
    metavar="LANGUAGE",
    help="Target language: de, ja, zh-CN, ..., or the one that is spoken; repeatable.",
)
MODELS = "A name from `redraft models`, or a GGUF file."
HF_MODELS = "Transformers: hf:NAME, hf:FILE.gguf or a folder."
REMOTE_MODELS = "Server: vllm:URL or sglang:URL."
#: What the help says of the default of --model.
DEFAULT_MODEL = "[default: that of `redraft models use`, else demo]"
model = click.option(
    "--model",
    "-m",
    default=default_model,
    show_default=False,
    metavar="MODEL",
    help=f"{MODELS} {HF_MODELS} {REMOTE_MODELS}  {DEFAULT_MODEL}",
)
gguf_model = click.option(
    "--model", "-m", default=default_model, show_default=False, metavar="MODEL", help=f"{MODELS}  {DEFAULT_MODEL}"
)
demo_model = click.option("--model", "-m", default="demo", metavar="MODEL", help=MODELS)
draft_model = click.option(
    "--draft-model",
    metavar="MODEL",
    help="Small model for methods such as bild, with the same vocabulary.  [default: demo-tiny for demo]",
)
engine = click.option(
    "--engine",
    multiple=True,
    callback=lambda _context, _option, given: engine_options(given),
    metavar="NAME=VALUE",
    help="Option of the engine, such as threads=2, gpu_layers=0 or context_length=4096; repeatable. docs/models.md "
    "lists all.",
)
form = click.option("--input", "-i", "form", type=click.Choice([*INPUTS]), help=f"{INPUT_HELP}  {_INPUT_DEFAULT}")
form_or_server = click.option(
    "--input",
    "-i",
    "form",
    metavar=f"[{'|'.join(INPUTS)}|NAME:URL]",
    callback=_input,
    help=f"{INPUT_HELP} NAME:URL: a recognition server, such as vosk:ws://127.0.0.1:2700.  {_INPUT_DEFAULT}",
)
method = click.option("--method", default="redraft", metavar="NAME", help="Decoding method, from `redraft methods`.")
option = click.option(
    "--option",
    "-o",
    multiple=True,
    metavar="NAME=VALUE",
    help="Option of the method, from `redraft methods NAME`; repeatable.",
)
punctuation = click.option(
    "--punctuation", metavar="FOLDER", help="Punctuation model of sherpa-onnx, for recognisers without punctuation."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON Lines instead of a table.")


def sentences(default: bool | None) -> Callable[[Any], Any]:
    """Return the option ``--sentences`` with this default; with None, it is on for plain text only."""
    shown = "on for text, else off" if default is None else "on" if default else "off"
    return click.option(
        "--sentences/--no-sentences",
        default=default,
        show_default=False,
        help=f"Cut the transcript into sentences instead of at pauses.  [default: {shown}]",
    )


def all_of(options: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Combine several options into one decorator."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


def heading(name: str) -> Callable[[Any], Any]:
    """Return a decorator that puts the options below it, up to the next heading, under one in a `Grouped` command."""

    def mark(function: Any) -> Any:
        for each in function.__click_params__:
            each.heading = getattr(each, "heading", name)
        return function

    return mark


class Grouped(click.Command):
    """A command whose help lists its options under headings (`heading`); others follow as "Options"."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        records: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            if isinstance(each, click.Option) and (record := each.get_help_record(ctx)) is not None:
                records.setdefault(getattr(each, "heading", "Options"), []).append(record)
        for heading, rows in records.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def needs(extra: str, what: str = "This needs") -> Callable[[Any], Any]:
    """Return a decorator that adds a sentence to the help of a command: the extra that it needs.

    Args:
        extra: the extra, or several with commas between.
        what: the beginning of the sentence.
    """

    def extended(function: Any) -> Any:
        function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n{what} an extra: {install(extra)}."
        return function

    return extended


def given() -> set[str]:
    """Return the names of the options given to the current command, not by the environment."""
    context = click.get_current_context()
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def refuse_idle(uses: Mapping[str, str]) -> None:
    """Raise `OptionError` for an option that was given and would have no effect.

    Args:
        uses: option -> what it is for, and what to do; empty if it has an effect.
    """
    for name, use in uses.items():
        if use and name in given():
            raise OptionError(f"--{name.replace('_', '-')} is for {use}")


def refuse_idle_text(form: str) -> None:
    """Raise `OptionError` for options of plain text with another input format."""
    use = "" if form == "text" else f"--input text, so leave it out with --input {form}"
    refuse_idle({"lag": use, "rate": use})


def method_options(method: str, given: Sequence[str]) -> dict[str, float | str]:
    """Return the options of a method that were given; raise `OptionError` if one cannot be used."""
    from redraft.decoding.methods import get_method

    options = _named("--option", given)
    checked = get_method(method).check(options)
    return {name: checked[name] for name in options}


def engine_options(given: Sequence[str]) -> dict[str, float | str]:
    """Return the options of the engine that were given; raise `OptionError` if one cannot be used."""
    from redraft.backends.options import checked

    return checked(_named("--engine", given))


def _named(option: str, given: Sequence[str]) -> dict[str, float | str]:
    """Parse values that are given as NAME=VALUE."""
    found: dict[str, float | str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not (sign and name and value):
            raise OptionError(f"{option} must be NAME=VALUE, not {text!r}")
        if name in found:
            raise OptionError(f"{option} {name} is given twice, so leave one out")
        found[name] = value
        for kind in (float, int):
            with suppress(ValueError):
                found[name] = kind(value)
    return found
