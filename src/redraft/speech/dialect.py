"""The interface to a recognition server's protocol: how to send audio and read hypotheses.

An entry point in the group ``redraft.recogniser_servers`` names a module with ``SUMMARY``, a line about the server;
``PATH``, the path appended to addresses without one; and ``dialect()``, which returns a `Dialect` for a connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from types import ModuleType
from typing import Protocol
from urllib.parse import urlunsplit

from redraft.errors import OptionError
from redraft.proxies import address_parts
from redraft.speech.audio import Samples
from redraft.speech.recogniser import Hypothesis

ENTRY_POINT_GROUP = "redraft.recogniser_servers"


class Dialect(Protocol):
    """A server's protocol, with the state of one connection.

    Attributes:
        greeting: the message to send when the connection opens; empty for none.
        goodbye: the message that ends the audio.
        over: whether everything has been recognised.
    """

    greeting: str = ""
    goodbye: str | bytes
    over: bool = False

    def audio(self, samples: Samples) -> bytes:
        """Return the message for a block of mono audio at 16 kHz."""

    def read(self, message: str | bytes, now: float) -> Sequence[Hypothesis]:
        """Return the hypotheses in a message, in order; times count from the start of the connection's audio.

        Args:
            now: the time, which is taken where the message has none.

        Any exception may be raised for what is no message of this protocol; it is reported.
        """


def pcm(samples: Samples) -> bytes:
    """Convert samples to signed 16-bit little-endian integers."""
    return bytes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())


def find_dialect(spec: str) -> tuple[ModuleType, str]:
    """Parse ``NAME:ws://HOST:PORT``; return the protocol's module and the full URL.

    Raises:
        OptionError: the protocol is unknown, or the address is invalid.
    """
    name, _, url = spec.partition(":")
    known = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if name not in known:
        raise OptionError(f"server {name!r} is not known; known are {', '.join(known)}, as in vosk:ws://127.0.0.1:2700")
    module = known[name].load()
    if (parts := address_parts(url, "ws", "wss")) is None:
        raise OptionError(f"the address of {name} must be like ws://127.0.0.1:2700, not {url!r}")
    path = parts.path if parts.path.strip("/") else module.PATH
    return module, urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
