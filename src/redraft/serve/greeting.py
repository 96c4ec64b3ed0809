"""The message on the terminal when the server is ready: which addresses to open, and who can reach them."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redraft.serve.settings import ServeSettings

#: Path -> description.
_PLACES = {
    "Page": ("/", "speak, type or play the demo talk"),
    "Viewers": ("/watch", "captions for an audience"),
    "Overlay": ("/overlay", "captions for OBS"),
    "API": ("/docs", "websocket and HTTP"),
}

#: What a server for viewers only has of these.
_FOR_VIEWERS = ("Viewers", "Overlay")


def url(host: str, port: int) -> str:
    """Return the URL of the server for a browser."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def greet(settings: ServeSettings, port: int, console: Console) -> None:
    """Print the addresses of the server.

    Args:
        settings: the server's settings.
        port: the port on which it listens.
        console: writes to standard error.
    """
    host = _name(settings)
    what = (settings.model, "bold"), f" with {', '.join(settings.methods)}"
    if settings.viewers_only:
        what = ("viewers", "bold"), " of sessions on other servers"
    console.print(Text.assemble("\nRedraft serves ", *what, "\n"), highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    places = [(name, place) for name, place in _PLACES.items() if name in _FOR_VIEWERS or not settings.viewers_only]
    for name, (path, about) in [*places, *_rooms(settings)]:
        address = url(host, port) + path
        table.add_row(f"  {name}", Text(address, style=f"bold cyan link {address}"), Text(about, style="dim"))
    console.print(table)
    console.print()
    for line in _remarks(settings):
        console.print(f"  {line}", style="dim", highlight=False, markup=False)
    console.print()


def _rooms(settings: ServeSettings) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the path and description of each room in the settings."""
    for number, room in enumerate(settings.rooms):
        yield "" if number else "Rooms", (f"/watch/{room}", "captions of whatever session is in the room")


def _name(settings: ServeSettings) -> str:
    """Return a host name for the URL: an address in the local network if the server listens on all interfaces."""
    try:
        everywhere = ipaddress.ip_address(settings.host).is_unspecified
    except ValueError:
        everywhere = False
    if not everywhere:
        return settings.host
    return settings.hosts[0] if settings.hosts else _own_address() or "127.0.0.1"


def _own_address() -> str:
    """Return this machine's address in its network; empty if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # selects a route; no packet is sent
        except OSError:
            return ""
        return str(asking.getsockname()[0])


def _remarks(settings: ServeSettings) -> Iterator[str]:
    if not settings.viewers_only:
        yield "The page shows the full links for viewers and overlays of its session."
    if settings.local:
        yield "Only this machine can connect. For others: --host 0.0.0.0 --keys FILE"
    if settings.key_file:
        yield "An API key is needed to begin a session, not to watch one."
    yield "Ctrl-C stops the server after the captions under way; twice, at once."
