"""Shared by the readers: splitting bytes into lines, parsing JSON objects, checking fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from redraft.captions.events import Failure, is_seconds, is_text, is_whole, shown
from redraft.errors import InputError, OptionError

#: Maximum length of a line in bytes; a spoken utterance has a few hundred.
MAX_LINE_BYTES = 65_536

#: A check of a field's value, and the allowed values in words.
Field: TypeAlias = tuple[Callable[[Any], bool], str]


class LineSource(Protocol):
    """An input; any binary file has this method."""

    def readline(self, size: int = -1, /) -> bytes:
        """Return the next line with its end, truncated to ``size`` bytes; empty at the end of the file."""


def decoded(source: LineSource, limit: int) -> Iterator[tuple[int, str | Failure]]:
    """Yield the number and text of each line, or a failure for an invalid line, in bounded memory."""
    number = 0
    while raw := source.readline(limit + 2):  # 2 more for CR LF
        number += 1
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        if len(line) > limit:
            yield number, Failure(f"the line is longer than {limit} bytes and was skipped", number)
            while raw and not raw.endswith(b"\n"):
                raw = source.readline(limit)
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            found = f"byte 0x{line[error.start]:02x} at offset {error.start}"
            yield number, Failure(f"the line must be UTF-8, but {found} of the line is not", number)
            continue
        yield number, text.removeprefix("\ufeff") if number == 1 else text


def json_object(text: str, names: Sequence[str]) -> dict[str, Any]:
    """Parse a line as a JSON object.

    Args:
        text: the line.
        names: the allowed fields, for the error message.

    Raises:
        InputError: it is not JSON, or not an object.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"the line is not valid JSON: {error.msg} at character {error.pos + 1}") from None
    except ValueError:  # Python's limit on the digits of integers
        raise InputError("the line is not usable JSON: a whole number has too many digits") from None
    except RecursionError:
        raise InputError("the line is not usable JSON: it is nested too deeply") from None
    if not isinstance(value, dict):
        raise InputError(f"the line must be a JSON object with {', '.join(names)}, not {shown(value)}")
    return value


def refuse_unknown(found: Mapping[str, Any], known: Collection[str]) -> None:
    """Check that all fields are known.

    Raises:
        InputError: a field is unknown; the message has its name.
    """
    for name in found:
        if name not in known:
            raise InputError(f"the field {shown(name)} is not known: allowed are {', '.join(known)}")


def check_fields(found: Mapping[str, Any], known: Mapping[str, Field], needed: Sequence[str], owner: str) -> None:
    """Check the values of known fields, and that no required field is missing.

    Args:
        found: the fields; unknown ones are ignored.
        known: the checks by field.
        needed: names of the required fields.
        owner: what requires them, in words.

    Raises:
        InputError: a field is missing or has an invalid value.
    """
    missing = [name for name in needed if name not in found]
    if missing:
        raise InputError(f"{', '.join(missing)} must be given: {owner} needs {', '.join(needed)}")
    for name, (allowed, words) in known.items():
        if name in found and not allowed(found[name]):
            raise InputError(f"{name} must be {words}, not {shown(found[name])}")


def whole(name: str, value: int, low: int) -> int:
    """Check that ``value`` is a whole number of at least ``low``, and return it.

    Raises:
        OptionError: it is not.
    """
    if not is_whole(value) or value < low:
        raise OptionError(f"{name} must be a whole number of {low} or more, not {value!r}")
    return value


TEXT: Field = (is_text, "a string of whole characters")
FLAG: Field = (lambda value: isinstance(value, bool), "true or false")
TIME: Field = (lambda value: value is None or is_seconds(value), "a finite number of seconds, 0 or more, or null")
NAME: Field = (
    lambda value: is_whole(value) or (is_text(value) and value != ""),
    "a non-empty string or a whole number",
)
