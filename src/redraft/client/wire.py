"""Server addresses, the client's exception, and conversion between its types and protocol messages."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from pydantic import ValidationError
from websockets.exceptions import InvalidHandshake, InvalidURI, ProxyError

from redraft import protocol
from redraft.captions.events import Failure, Update
from redraft.captions.style import Style
from redraft.errors import InputError, OptionError, RedraftError, expect
from redraft.protocol.codes import describe
from redraft.proxies import address_parts, through

T = TypeVar("T")

#: Maximum length of a message with many items in bytes, if the server accepts as much.
_PIECE = 16_000


class ServerError(RedraftError):
    """The server cannot be reached or refuses.

    Attributes:
        code: one of `redraft.protocol.codes.CODES`, or ``connection``.
        field: name of the field that the server refuses, if it is one.
    """

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.code, self.field = code, field


def address(server: str) -> str:
    """Return the websocket URL of a server.

    Raises:
        OptionError: the address is invalid.
    """
    schemes = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
    parts = address_parts(server if "://" in server else f"http://{server}", *schemes)
    if parts is None:
        raise OptionError(f"must be an address such as http://127.0.0.1:8765, not {server!r}", "server")
    return urlunsplit((schemes[parts.scheme], parts.netloc, parts.path.rstrip("/") + "/v1/live", "", ""))


def viewers_page(address: str, session: str, room: str | None = None) -> str:
    """Return the URL at which others can read the captions of a session in a browser.

    Args:
        address: websocket URL of the server.
        room: name of its room; the URL of a room stays the same from session to session.
    """
    return f"{http_address(address)}/watch" + (f"/{room}" if room else f"?session={session}")


def http_address(address: str) -> str:
    """Return the URL of the server, without the user's name and password, for its websocket URL."""
    parts = urlsplit(address)
    rest = parts.netloc.rpartition("@")[2] + parts.path
    return f"http{parts.scheme.removeprefix('ws')}://{rest.removesuffix('/v1/live')}"


def reason(address: str, error: Exception) -> str:
    """Describe in one sentence why a connection failed."""
    way = through(address)
    if isinstance(error, InvalidHandshake | InvalidURI) and not isinstance(error, ProxyError):
        return f"{address} is not a Redraft server, or refuses this client{way}: {error}"
    plain = os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else error
    return f"the server at {address} cannot be reached{way}: {plain}"


def start_of(to: Sequence[str], style: Style, **fields: Any) -> protocol.Start:
    """Return the message that starts a session.

    Raises:
        OptionError: a value is out of range or not supported by servers.
    """
    expect(style, Style, "style", 'Style("en")')
    for field in ("template", "prompt"):
        if getattr(style, field) is not None:
            raise OptionError("is chosen by the server, so leave it out", field)
    glossary = {tag: tuple(map(tuple, terms)) for tag, terms in style.glossary.items()}
    spoken = {"source_language": style.source_language, "also_spoken": tuple(style.also_spoken)}
    styled = {**spoken, "glossary": glossary}
    try:
        return protocol.Start(targets=tuple(to), **styled, **fields)
    except ValidationError as error:
        raise describe(error, protocol.Start) from None


def parse(text: str | bytes) -> Any:
    """Parse a message from the server.

    Raises:
        ServerError: it is not a message of this protocol.
    """
    try:
        return protocol.FROM_SERVER.validate_json(text, extra="ignore")
    except ValidationError as error:
        raise ServerError(
            "protocol", f"the server speaks another protocol: {describe(error, *protocol.SERVER)}"
        ) from None


def parse_started(text: str | bytes) -> protocol.Started:
    """Parse the server's answer to `start`.

    Raises:
        ServerError: the server refuses, or the answer is not `started`.
    """
    message = parse(text)
    if isinstance(message, protocol.Error):
        raise ServerError(message.code, message.message, message.field)
    if not isinstance(message, protocol.Started):
        raise ServerError("protocol", f"the server speaks another protocol: it began with {message.type!r}")
    return message


def message_of(update: Update) -> protocol.UpdateMessage:
    """Return the message that sends an update.

    Raises:
        InputError: the update is longer than servers accept.
    """
    try:
        return protocol.UpdateMessage(**{each.name: getattr(update, each.name) for each in fields(Update)})
    except ValidationError as error:
        raise InputError(str(describe(error, protocol.UpdateMessage))) from None


def failure_of(message: protocol.Error) -> Failure:
    """Return the failure in a message."""
    return Failure(message.message, None, message.utterance, message.seq, message.language)


def pieces(kind: str, field: str, items: Iterable[tuple[str, T]], most: int) -> Iterator[str | T]:
    """Yield messages with all of these items.

    Args:
        kind: `type` of the messages.
        field: their field with the items.
        items: each in JSON, and what stands for it.
        most: maximum length of a message in bytes.

    Yields:
        A message; or what stands for an item for which a message would be too long.
    """
    head, tail = f'{{"type":"{kind}","{field}":[', "]}"
    room = min(most, _PIECE) - len(head + tail)
    held: list[str] = []
    size = 0
    for wire, item in items:
        length = len(wire.encode()) + 1  # with a comma
        if length > most - len(head + tail):
            yield item
            continue
        if held and size + length > room:
            yield f"{head}{','.join(held)}{tail}"
            held, size = [], 0
        held.append(wire)
        size += length
    if held:
        yield f"{head}{','.join(held)}{tail}"
