"""What one has to know of a server's protocol to send it audio and to understand what it hears.

An entry point in the group ``redraft.recogniser_servers`` names a module with ``SUMMARY``, a line about the server;
``PATH``, what follows an address without a path of its own; and ``dialect()``, which returns a `Dialect`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from redraft.captions.formats.parse import Field, check_fields, json_object
from redraft.errors import InputError, OptionError
from redraft.speech.audio import Samples

ENTRY_POINT_GROUP = "redraft.recogniser_servers"


@dataclass(frozen=True, slots=True)
class Said:
    """What a message says of the utterance that is under way.

    Attributes:
        text: all of it so far.
        final: whether it has ended.
        start, end: when it began, and up to when it was heard, in seconds from the start of the connection's audio;
            None where the message does not say.
    """

    text: str
    final: bool = False
    start: float | None = None
    end: float | None = None


class Dialect(Protocol):
    """A server's protocol, with what it must remember of one connection.

    Attributes:
        listens: whether audio may be sent; some servers speak first.
        over: whether everything has been heard.
    """

    listens: bool
    over: bool

    @property
    def greeting(self) -> str:
        """What is sent when the connection is open; empty for nothing."""

    @property
    def goodbye(self) -> str | bytes:
        """What says that no more audio will come."""

    def audio(self, samples: Samples) -> bytes:
        """The message with a block of mono audio at 16 kHz."""

    def read(self, message: str | bytes) -> Sequence[Said]:
        """What a message says, in order.

        Raises:
            InputError: the message is none of this protocol.
        """


def parsed(message: str | bytes, fields: dict[str, Field], needed: Sequence[str]) -> dict[str, Any]:
    """The JSON object of a message, its known fields checked.

    Raises:
        InputError: it is not JSON, not an object, or a field is missing or has a value that is not allowed.
    """
    if isinstance(message, bytes):
        raise InputError("the message must be text, not bytes")
    found = json_object(message, tuple(fields))
    check_fields(found, fields, needed, "a message")
    return found


def pcm(samples: Samples) -> bytes:
    """Samples as signed 16-bit little-endian integers."""
    return bytes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())


def find_dialect(spec: str) -> tuple[ModuleType, str]:
    """The module of the protocol in ``NAME:ws://HOST:PORT``, and the full address.

    Raises:
        OptionError: there is no such protocol, or the address is invalid.
    """
    name, _, url = spec.partition(":")
    known = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if name not in known:
        raise OptionError(f"server {name!r} is not known; known are {', '.join(known)}, as in vosk:ws://127.0.0.1:2700")
    module = known[name].load()
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("ws", "wss") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise OptionError(f"the address of {name} must be like ws://127.0.0.1:2700, not {url!r}")
    path = parts.path if parts.path.strip("/") else module.PATH
    return module, urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def message(**fields: Any) -> str:
    """A JSON object."""
    return json.dumps(fields)
