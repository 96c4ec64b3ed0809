"""Every error that Redraft raises on purpose, in one tree.

    RedraftError                     catch this to catch them all
    ├── OptionError                  an option out of range, or unknown          (also a ValueError)
    ├── InputError                   a stream line that cannot be used           (also a ValueError)
    ├── ModelError                   a model file that is absent, broken or unfit
    │   └── CapabilityError          the model or backend cannot do what a method needs
    ├── ContextOverflow              source and output do not fit the model's context
    └── MissingExtra                 an optional dependency is not installed     (also an ImportError)

Each message is one sentence that names the field and what is allowed; the command line prints it as it stands.
"""

from __future__ import annotations

import re


def first_sentence(error: BaseException) -> str:
    """What another library says of an error, cut to one sentence without its stop; its type if it says nothing."""
    line = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return re.split(r"\.(?: +(?=[A-Z])|$)", line)[0]


class RedraftError(Exception):
    """Base of all errors of this package."""


class OptionError(RedraftError, ValueError):
    """An option is out of its range or not known."""


class InputError(RedraftError, ValueError):
    """A line of input cannot be used.

    Attributes:
        line: its number in the stream, from 1; None when unknown.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


class ModelError(RedraftError):
    """A model file is missing, is broken or cannot be used."""


class CapabilityError(ModelError):
    """A model or backend cannot do what was asked of it; the message names both."""


class ContextOverflow(RedraftError):
    """A prompt with its output does not fit into the model's context."""


class MissingExtra(RedraftError, ImportError):
    """An optional dependency is needed; the message says which extra to install."""
