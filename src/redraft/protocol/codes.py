"""The error codes, the exception for refused requests, and sentences about invalid messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from pydantic import ValidationError

from redraft.errors import OptionError


@dataclass(frozen=True, slots=True)
class Code:
    """An error code.

    Attributes:
        means: its meaning for clients.
        close: websocket close code (RFC 6455); 1008 is "policy violation".
    """

    means: str
    status: int = 400
    close: int = 1008


CODES = {
    "protocol": Code("a message or request is malformed", close=1002),
    "version": Code("the protocol version is not supported", close=1002),
    "key": Code("the API key is missing or unknown", 401),
    "origin": Code("this address, host name or web origin may not connect", 403),
    "option": Code("an option is unknown or not allowed here"),
    "room": Code("the room is in use, or this API key may not use it", 409),
    "caption": Code("the caption to hide or correct does not exist", 409),
    "capacity": Code("the server is full; try again later", 503, 1013),
    "limit": Code("one of the operator's limits has been reached", 429),
    "draining": Code("the server is stopping; reconnect in a moment", 503, 1012),
    "stale": Code("an update is older than one that came before", 409),
    "transcript": Code("captions cannot be written to the operator's folder of transcripts"),
    "translation": Code("an update or a text could not be translated, or not completely", 500),
    "audio": Code("audio was refused or lost, or cannot be recognised"),
    "replaced": Code("another connection has taken over this session"),
    "slow": Code("the connection was closed because messages were not read in time"),
    "engine": Code("the engine has failed", 503, 1011),
    "missing": Code("there is nothing at this address", 404),
    "size": Code("the request is too large", 413),
}


class Refused(Exception):
    """A refused request.

    Args:
        code: one of `CODES`.
        sentence: what is wrong and what is allowed.
        field: name of the field that is wrong, with dots before the names in it; None if it is not a field.
    """

    def __init__(self, code: str, sentence: str, field: str | None = None) -> None:
        super().__init__(sentence)
        self.code, self.sentence, self.field = code, sentence, field

    @classmethod
    def of(cls, code: str, error: OptionError) -> Self:
        """Return the refusal of an invalid field."""
        return cls(code, str(error), error.field)

    @property
    def body(self) -> dict[str, dict[str, str]]:
        """The body of the response over HTTP."""
        field = {"field": self.field} if self.field else {}
        return {"error": {"code": self.code, "message": self.sentence, **field}}

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response over HTTP, which say how to go on."""
        if self.code == "key":
            return {"www-authenticate": "Bearer"}
        return {"retry-after": "5"} if CODES[self.code].status in (429, 503) else {}


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
