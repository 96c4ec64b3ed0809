"""Sentences about invalid messages: pydantic's, which quote none of the client's input, after the name of the field."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from redraft.errors import OptionError

#: Maximum length in characters of a sentence and of each name in it.
_LONGEST, _LONGEST_NAME = 300, 60
#: Number of problems beyond which none is described: pydantic describes all or none, thousands of them in 60 ms.
MOST_DESCRIBED = 100


def tag_of(kind: Any) -> str:
    """Return the ``type`` of a kind of messages, a model or a dataclass."""
    return str(kind.__pydantic_fields__["type"].default)


def describe(error: ValidationError, *kinds: type) -> OptionError:
    """Return pydantic's first problem as an error that names the field, with dots before the names in it.

    Args:
        kinds: the kinds of messages that are allowed; if there are several, their ``type`` decides.
    """
    if (count := error.error_count()) > MOST_DESCRIBED:
        return OptionError(f"{count} values in it are invalid")
    first = error.errors(include_url=False, include_input=False)[0]
    path, sentence = list(first["loc"]), first["msg"].removeprefix("Value error, ")
    if first["type"].startswith("union_tag"):  # the sentence would quote it
        return OptionError(f"must be one of {', '.join(map(tag_of, kinds))}", "type")
    if len(kinds) > 1:
        path = path[1:]  # after the type
    field = ".".join(str(part)[:_LONGEST_NAME] for part in path)
    return OptionError(f": {sentence}"[: _LONGEST - len(field)], field) if field else OptionError(sentence)
