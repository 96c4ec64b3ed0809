"""The exceptions of Redraft.

    RedraftError                     catch this to catch them all
    ├── OptionError                  an option out of range, or unknown          (also a ValueError)
    ├── InputError                   a stream line that cannot be used           (also a ValueError)
    ├── ModelError                   a model file that is absent, broken or unfit
    │   └── CapabilityError          the model or backend cannot do what a method needs
    ├── ContextOverflow              source and output do not fit the model's context
    ├── Unavailable                  what is needed cannot be reached now, and may be later
    └── MissingExtra                 an optional dependency is not installed     (also an ImportError)

Each message is one sentence that names the field and the allowed values; the command line prints it unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


def first_sentence(error: BaseException) -> str:
    """Return the first sentence of another library's error without its full stop; its type if it is empty."""
    line = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return re.split(r"\.(?: +(?=[A-Z])|$)", line)[0]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return an ending of a sentence that suggests the known name most like another one; empty if none is."""
    found = get_close_matches(name, known, 1)
    return f"; the nearest is {found[0]}" if found else ""


class RedraftError(Exception):
    """Base class of all exceptions of this package."""


class Unavailable(RedraftError):
    """What is needed cannot be reached now; unlike with a wrong option, the same command may succeed later."""


class OptionError(RedraftError, ValueError):
    """An option is out of range or unknown.

    Args:
        problem: what is wrong and what is allowed: a sentence, without the field with which it begins.
        field: name of the field; None if the sentence is complete.
    """

    def __init__(self, problem: str, field: str | None = None) -> None:
        self.problem, self.field = problem, field
        super().__init__(self.about(field or ""))

    def about(self, field: str) -> str:
        """Return the sentence with another name for the field, such as an option of the command line."""
        between = " " if field and not self.problem.startswith(":") else ""
        return f"{field}{between}{self.problem}"


def expect(value: object, kind: type, field: str, example: str) -> None:
    """Raise `OptionError` for a value that is not of a type."""
    if not isinstance(value, kind):
        raise OptionError(f"must be a {kind.__name__}, such as {example}, not {value!r}", field)


def whole(name: str, value: int, low: int, high: int | None = None) -> int:
    """Return a whole number that must be at least ``low`` and at most ``high``; raise `OptionError` for others."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
        allowed = f"of {low} or more" if high is None else f"from {low} to {high}"
        raise OptionError(f"must be a whole number {allowed}, not {value!r}", name)
    return value


class InputError(RedraftError, ValueError):
    """A line of input is invalid.

    Attributes:
        line: its number in the stream, from 1; None if unknown.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


class ModelError(RedraftError):
    """A model file is missing, broken or unsuitable."""


class CapabilityError(ModelError):
    """A model or backend does not support what was requested; the message names both."""


class ContextOverflow(RedraftError):
    """Prompt and output exceed the model's context length."""


#: The command that installs an extra of the Redraft that is installed, wherever that came from.
INSTALL = "pip install 'redraft[{extra}]'"


def install(extra: str) -> str:
    """Return the command that installs an extra, or several with commas between."""
    return INSTALL.format(extra=extra)


class MissingExtra(RedraftError, ImportError):
    """An optional dependency is missing; the message names the extra to install."""


def missing_package(what: str, *folders: str) -> MissingExtra:
    """Return the error for a package of this repository that is not installed, with the folders to install."""
    command = " ".join(["pip install", *(f"./{folder}" for folder in folders)])
    return MissingExtra(f"{what}: {command} in a clone of Redraft")


@contextmanager
def from_extra(extra: str, who: str = "this needs") -> Iterator[None]:
    """Raise `MissingExtra` if an import in the block fails, with a sentence that begins with ``who``."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise MissingExtra(f"{who} {package}, which is not installed: {install(extra)}") from error
