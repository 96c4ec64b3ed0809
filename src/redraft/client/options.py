"""Server addresses, and the exception of the client."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from websockets.exceptions import InvalidHandshake, InvalidURI

from redraft.errors import OptionError, RedraftError


class ServerError(RedraftError):
    """The server cannot be reached or refuses.

    ``code`` is one of `redraft.serve.refusals.CODES`, or ``connection``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def address(server: str) -> str:
    """Return the websocket URL of a server.

    Raises:
        OptionError: the address is invalid.
    """
    try:
        parts = urlsplit(server if "://" in server else f"http://{server}")
        scheme = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}.get(parts.scheme)
        usable = scheme is not None and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise OptionError(f"server must be an address such as http://127.0.0.1:8765, not {server!r}")
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") + "/v1/live", "", ""))


def viewers_page(address: str, session: str, room: str | None = None) -> str:
    """Return the URL at which others can read the captions of a session in a browser.

    Args:
        address: websocket URL of the server.
        room: name of its room; the URL of a room stays the same from session to session.
    """
    scheme, rest = address.split("://", 1)
    place = f"/{room}" if room else f"?session={session}"
    return f"http{scheme.removeprefix('ws')}://{rest.removesuffix('/v1/live')}/watch{place}"


def reason(address: str, error: Exception) -> str:
    """Describe in one sentence why a connection failed."""
    if isinstance(error, InvalidHandshake | InvalidURI):
        return f"{address} is not a Redraft server, or refuses this client: {error}"
    return f"the server at {address} cannot be reached: {error}"
