"""The command line application: its commands, and the format of errors."""

from __future__ import annotations

import atexit
import gc
import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import NoReturn, cast

import click

from redraft import __version__, interrupt
from redraft.cli.shared.notice import notice
from redraft.errors import OptionError, RedraftError, Unavailable, missing_package

SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100}


EXAMPLES = """\b
Examples:
  redraft demo
  redraft translate talk.txt --to de
  redraft serve
  redraft COMMAND --help

\b
Shell completion (also zsh_source, fish_source):
  eval "$(_REDRAFT_COMPLETE=bash_source redraft)"
"""


#: Commands that have a heading of their own in the list.
RESEARCH = ("generate", "viz", "bench", "finetune")
#: Built-in commands in the order of use; each is a module here and the command in it.
COMMANDS = {
    "demo": "Watch a talk being translated live by two methods.",
    "translate": "Translate a live transcript or a text.",
    "listen": "Translate speech from a microphone or a recording.",
    "serve": "Serve live translation to many sessions.",
    "generate": "Continue a text: answers, summaries, code.",
    "models": "List and download models.",
    "methods": "List the decoding methods.",
    "transcript": "Convert a transcript that a server has kept.",
    "doctor": "See how many languages keep up on this machine.",
}

#: Other distributions add commands here; each entry point has a command's name and refers to a `click.Command`.
ENTRY_POINT_GROUP = "redraft.commands"
#: Commands of this repository's other distributions: their line in the list, and the folders to install for them.
ELSEWHERE = {
    "bench": ("Benchmark methods on your model, text and machine.", ["packages/redraft-bench"]),
    "viz": ("Show how translations were decoded, token by token.", ["packages/redraft-bench"]),
    "finetune": ("Fine-tune a model so that it flickers less.", ["packages/redraft-bench", "packages/redraft-train"]),
}


class Commands(click.Group):
    """Imports a command only when it is run or prints its help; the list uses its short help from here."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names: the built-in commands, then those of other distributions."""
        return [*COMMANDS, *sorted(added())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with a name; raise `MissingExtra` if its distribution is not installed."""
        if cmd_name in COMMANDS:
            return cast(click.Command, getattr(import_module(f"redraft.cli.{cmd_name}"), cmd_name))
        if point := added().get(cmd_name):
            interrupt.raises()
            return cast(click.Command, point.load())
        if cmd_name in ELSEWHERE:
            folders = ELSEWHERE[cmd_name][1]
            raise missing_package(f"{cmd_name} is a command of {Path(folders[-1]).name}", *folders)
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list in ``redraft --help``."""
        rows = [*COMMANDS.items()]
        for name in sorted(added()):
            if name in ELSEWHERE:
                rows.append((name, ELSEWHERE[name][0]))
            elif (command := self.get_command(ctx, name)) is not None:
                rows.append((name, command.get_short_help_str(80)))
        for heading, research in (("Commands", False), ("Other texts, measurements and training", True)):
            if listed := [row for row in rows if (row[0] in RESEARCH) is research]:
                with formatter.section(heading):
                    formatter.write_dl(listed)


def added() -> dict[str, EntryPoint]:
    """Return the commands that other distributions add, by name."""
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


@click.group(
    cls=Commands,
    commands=[click.Command(name) for name in COMMANDS],  # for suggestions
    epilog=EXAMPLES,
    invoke_without_command=True,
    context_settings=SETTINGS,
)
@click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version and exit.")
@click.pass_context
def cli(context: click.Context) -> None:
    """Translate live speech into captions that appear quickly and rarely change."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; an expected error is one sentence on standard error and exit status 2.

    Args:
        arguments: arguments after the program's name; None uses the process's.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            # Opened so that writing to it fails, since output must not be lost silently.
            mode = os.O_RDONLY if name == "stdout" else os.O_WRONLY
            setattr(sys, name, os.fdopen(os.open(os.devnull, mode), "w"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Files and pipes get UTF-8; a terminal without Chinese characters must not end a stream.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
            with suppress(OSError):  # it has no descriptor
                if os.name == "posix":  # a program that shares the pipe, such as node, may not want to wait for readers
                    os.set_blocking(stream.fileno(), True)
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _Messages(sys.stderr.buffer, sys.stderr.encoding, sys.stderr.errors)
    atexit.register(gc.freeze)  # otherwise Python visits all objects several times at exit, which takes .3 s
    sys.exit(_run(arguments))


class _Messages(io.TextIOWrapper):
    """Standard error; a message that cannot be written, for example on a full disk, is dropped."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            super().write(text)
        self.flush()
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def _run(arguments: Sequence[str] | None) -> int:
    """Return the exit status: 0 success, 1 something could not be translated, 2 error, 128 and more interrupted."""
    try:
        status = cli.main(arguments, prog_name="redraft", standalone_mode=False) or 0
        sys.stdout.flush()
        return status
    except (SystemExit, BrokenPipeError):  # the reader has gone, as after `| head`; click and rich then exit
        _drop_output()
        return 0
    except click.UsageError as error:
        notice(_sentence(error))
    except OptionError as error:
        notice(error.about(_option(error.field or "", sys.argv[1:] if arguments is None else arguments)))
    except Unavailable as error:  # a service manager may start it again
        notice(error)
        return 1
    except RedraftError as error:
        notice(error)
    except OSError as error:
        place = f"{error.filename!r}: " if error.filename else ""
        notice(f"{place}{error.strerror or error}")
        _drop_output()
    except click.Abort:
        return 130
    return 2


def _drop_output() -> None:
    """Drop what is still buffered: Python would try to write it at exit, and report another error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


#: Parameters that have another name in the library.
_OTHERWISE = {"glossary": "term", "source language": "from", "target language": "to"}
#: Separates words by spaces.
_SPACED = str.maketrans("-_", "  ")


def _option(field: str, arguments: Sequence[str]) -> str:
    """Return the option for a parameter of the library, of the arguments' command; the parameter if it has none."""
    command: click.Command = cli
    for word in arguments:
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), word) or command
    named = {name.translate(_SPACED).strip(): max(each.opts, key=len) for each in command.params for name in each.opts}
    named |= {(each.name or "").translate(_SPACED): max(each.opts, key=len) for each in command.params}
    words = field.translate(_SPACED)
    return named.get(_OTHERWISE.get(words, words), field)


def _sentence(error: click.UsageError) -> str:
    """Return click's message as one sentence, with the allowed values and a pointer to the help."""
    text = " ".join(error.format_message().split()).rstrip(".").replace(". Choose from:", ": choose from")
    text = re.sub(r"\. \(?Did you mean (.*)\?\)?$", r"; did you mean \1", text)
    if error.ctx is None:
        return text
    if isinstance(error.ctx.command, click.Group):
        text += f"; commands: {', '.join(error.ctx.command.list_commands(error.ctx))}"
    return f"{text} (see {error.ctx.command_path} --help)"
