"""The server process: a listening socket, TLS, uvicorn, the message when it is ready, and a graceful shutdown."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import anyio
import h11
import uvicorn
from rich.console import Console
from rich.table import Table
from rich.text import Text
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from redraft import deadlines
from redraft.engine.engine import Stopped
from redraft.errors import OptionError
from redraft.folders import cache_folder
from redraft.interrupt import end_process_after
from redraft.serve.app import check, make_app, open_hub
from redraft.serve.http.security import MOST_QUERY
from redraft.serve.http.turns import Braked, Turns
from redraft.serve.process import allow_open_files
from redraft.serve.sessions.hub import Hub
from redraft.serve.settings import ServeSettings, ip_of

#: Days for which a certificate is valid, and for which it is used again: browsers forget an exception with it.
_VALID, _USED = 365, 300
_SECONDS = 60.0


def uses_tls(settings: ServeSettings) -> bool:
    """Whether the server speaks https."""
    return settings.tls is not None or settings.tls_cert is not None


def context_of(settings: ServeSettings, names: Collection[str]) -> ssl.SSLContext | None:
    """Return what TLS needs; None if the server speaks plain HTTP.

    Args:
        names: the server's host names and addresses, for which a certificate of its own is valid.

    Raises:
        OptionError: a file cannot be used, or no certificate could be made.
    """
    cert, key = settings.tls_cert, settings.tls_key
    if not uses_tls(settings):
        if key is not None:
            raise OptionError("needs tls_cert, the file with the certificate", "tls_key")
        return None
    if cert is None:
        cert = key = _own(sorted({"localhost", "127.0.0.1", "::1", *names}))
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        made.load_cert_chain(cert, key, password="")  # of an encrypted key it would be asked for in the terminal
    except (OSError, ValueError) as error:
        raise OptionError(f"{str(cert)!r} and its key cannot be used: {error}", "tls_cert") from None
    return made


def _own(names: Collection[str]) -> Path:
    """Return a file with a self-signed certificate and its key, kept from start to start."""
    if (cache := cache_folder()) is None:
        raise OptionError("self-signed needs a home directory, where its certificate is kept", "tls")
    folder = cache / "tls"
    path = folder / f"{hashlib.sha256(' '.join(names).encode()).hexdigest()[:16]}.pem"
    with suppress(OSError):
        if time.time() - path.stat().st_mtime < 86_400 * _USED:
            return path
    kinds = ",".join(f"{'IP' if ip_of(name) else 'DNS'}:{name}" for name in names)
    ask = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    ask += ["-days", str(_VALID), "-subj", "/CN=Redraft", "-addext", f"subjectAltName={kinds}"]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as fresh:  # only its owner can read it
            files = [Path(fresh) / name for name in ("key", "cert")]
            ask += ["-keyout", str(files[0]), "-out", str(files[1])]
            subprocess.run(ask, check=True, capture_output=True, timeout=_SECONDS)
            both = Path(fresh) / "both"
            both.touch(mode=0o600)
            both.write_bytes(b"".join(file.read_bytes() for file in files))
            both.replace(path)
    except (OSError, subprocess.SubprocessError) as error:
        raise OptionError(f"self-signed needs the program openssl, which failed: {error}", "tls") from None
    return path


log = logging.getLogger(__name__)

#: Factor on `message_bytes` for uvicorn's own limit, at which it closes the connection immediately and drops what came
#: in the same packet; a message between both limits is answered with an error.
_HARD_LIMIT = 4
#: Maximum number of connections that wait to be accepted, and seconds to wait after one that could not be.
_QUEUE, _NOT_ACCEPTED = 1024, 1.0
#: Maximum bytes of a request's head: every header takes 3 microseconds, and can be four bytes long.
_MOST_HEAD = 2 * MOST_QUERY
#: Milliseconds after which the system gives up a peer that accepts no data, to close connections of dropped readers, or
#: answers no probe, to close those of devices that have gone in the middle of a request or of a transcript.
_USER_TIMEOUT = 30_000
#: Seconds within which a client must have agreed on TLS.
_HANDSHAKE = 10.0
#: Path -> description.
_PLACES = {
    "Page": ("/", "speak, type or play the demo talk"),
    "Rooms": ("/rooms", "links, QR code and overlay of a room"),
    "API": ("/docs", "websocket and HTTP"),
}


def url(settings: ServeSettings, host: str, port: int) -> str:
    """Return the URL of the server for a browser."""
    scheme = "https" if uses_tls(settings) else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def greet(settings: ServeSettings, port: int, console: Console) -> None:
    """Print the addresses of the server."""
    host = _name(settings)
    what = (settings.model, "bold"), f" with {', '.join(settings.methods)}"
    if settings.viewers_only:
        what = ("viewers", "bold"), " of sessions on other servers"
    console.print(Text.assemble("\nRedraft serves ", *what, "\n"), highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    places = [(name, place) for name, place in _PLACES.items() if name == "Rooms" or not settings.viewers_only]
    places += [("", (f"/rooms/{room}", "")) for room in settings.rooms]
    for name, (path, about) in places:
        address = url(settings, host, port) + path
        table.add_row(f"  {name}", Text(address, style=f"bold cyan link {address}"), Text(about, style="dim"))
    console.print(table)
    console.print()
    for line in _remarks(settings):
        console.print(f"  {line}", style="dim", highlight=False, markup=False)
    console.print()


def _name(settings: ServeSettings) -> str:
    """Return a host name for the URL: an address in the local network if the server listens on all interfaces."""
    if (found := ip_of(settings.host)) is None or not found.is_unspecified:
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
    if settings.local:
        yield "Only this machine can connect. For others: --host 0.0.0.0 --keys FILE"
    if settings.key_file:
        yield "An API key is needed to begin a session, not to watch one."
    yield "Ctrl-C finishes the current captions and stops; a second one stops at once."


class Requests(H11Protocol):
    """Closes a connection on which the head of a request has not arrived in time."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._late = self.loop.call_later(deadlines.REQUEST, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Wait for the end of a head that has begun; between two requests, uvicorn's own limit applies."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._wait_no_longer()
        elif self._late is None and self.conn.trailing_data[0]:
            self._late = self.loop.call_later(deadlines.REQUEST, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        self._wait_no_longer()

    def _wait_no_longer(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def _http(**given: Any) -> Braked:
    """Return the protocol of a connection until it becomes a websocket."""
    return Braked(Requests(**given))


def _websocket(**given: Any) -> Braked:
    """Return the protocol of a websocket."""
    return Braked(WebSocketsSansIOProtocol(**given))


class CaptionServer(uvicorn.Server):
    """Uvicorn with a graceful shutdown: the first signal drains and delivers final captions, a second one ends.

    Connections to the listening socket are accepted in turn (`redraft.serve.http.turns`).
    """

    def __init__(self, hub: Hub, listening: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        self._hub, self._listening = hub, listening
        self._tls: dict[str, Any] = {"ssl": tls, "ssl_handshake_timeout": _HANDSHAKE} if tls else {}
        #: Connections that are being set up.
        self._beginning: set[asyncio.Task[None]] = set()
        self._draining: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dead_since: float | None = None
        #: When the first signal came.
        self._asked: float | None = None
        app = make_app(hub)
        self._turns: Turns = app.state.turns
        self._accepting: asyncio.Task[None] | None = None
        super().__init__(
            uvicorn.Config(
                app,
                http=_http,  # type: ignore[arg-type]
                h11_max_incomplete_event_size=_MOST_HEAD,
                ws=_websocket,  # type: ignore[arg-type]
                ws_max_size=_HARD_LIMIT * hub.settings.message_bytes,
                ws_ping_interval=deadlines.PING,
                ws_ping_timeout=2 * deadlines.PING,
                ws_per_message_deflate=False,
                timeout_graceful_shutdown=5,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and accept connections."""
        self._loop = asyncio.get_running_loop()
        await super().startup([])
        self._listening.setblocking(False)
        self._accepting = self._loop.create_task(self._accept(self._loop))

    async def _accept(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            # Nothing is accepted before it can be served: a cancelled `sock_accept` may lose what it has accepted.
            await anyio.wait_readable(self._listening)
            try:
                begun = loop.create_task(self._serve_one(loop, self._listening.accept()[0]))
                self._beginning.add(begun)  # or it could be collected
                begun.add_done_callback(self._beginning.discard)
                await asyncio.wait([begun], timeout=0 if self._tls else None)  # others need not wait for a handshake
            except (BlockingIOError, ConnectionError):  # the client has gone
                pass
            except OSError:  # such as too many open files
                log.exception("a connection could not be accepted")
                await asyncio.sleep(_NOT_ACCEPTED)
            await self._turns.turn("")

    async def _serve_one(self, loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
        given = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        try:
            await loop.connect_accepted_socket(partial(_http, **given), connection, **self._tls)
        except OSError:  # a client that has gone, or has no certificate of ours, or speaks no TLS
            connection.close()
        except Exception:  # otherwise nobody could connect any more
            log.exception("a connection could not be set up")
            connection.close()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and end."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait([self._accepting])
        await super().shutdown([self._listening])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, stop at the second; end the process if it does neither in time, whatever hangs."""
        now = time.monotonic()
        if self._asked is None and self._loop is not None:
            self._asked = now
            self._loop.call_soon_threadsafe(self.stop)
            end_process_after(self._hub.settings.drain_seconds + deadlines.AFTER_DRAIN)
        elif self._asked is None or now - self._asked > deadlines.TOGETHER:
            self.should_exit = self.force_exit = True
            end_process_after(deadlines.AT_ONCE)

    def stop(self) -> None:
        """Drain, then end."""
        if self._draining is None:
            self._draining = asyncio.get_running_loop().create_task(self._drain())

    async def on_tick(self, counter: int) -> bool:
        """Whether to end; also a few seconds after the engine has stopped, which only a new process can restart."""
        if not self._hub.engines.alive and self._dead_since is None:
            self._dead_since = time.monotonic()
        return await super().on_tick(counter) or self.failed

    @property
    def failed(self) -> bool:
        """Whether it ended because its engine has stopped."""
        return self._dead_since is not None and time.monotonic() - self._dead_since >= deadlines.WITHOUT_ENGINE

    async def _drain(self) -> None:
        log.info("stopping after the captions in progress")
        try:
            await self._hub.drain()
        finally:
            self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.  Raises `OptionError` if the address cannot be used."""
    made = None
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, number)
        # On Windows, SO_REUSEADDR would let two servers share a port.
        option = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        made.setsockopt(socket.SOL_SOCKET, option, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _USER_TIMEOUT // 1000)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        made.bind(address)
        made.listen(_QUEUE)
    except OSError as error:
        if made is not None:
            made.close()
        remedy = "; choose another one with --port" if error.errno == errno.EADDRINUSE else ""
        raise OptionError(f"cannot listen on host {host!r}, port {port}: {error.strerror or error}{remedy}") from None
    return made


def serve(settings: ServeSettings, console: Console | None = None) -> None:
    """Load the models and serve until a signal.

    Args:
        console: where to print the addresses to open; None logs them.

    Raises:
        RedraftError: a setting is invalid, a model cannot be loaded, or the engine has stopped.
    """
    check(settings)
    tls = context_of(settings, {_name(settings), *settings.hosts})
    allow_open_files()
    with listen(settings.host, settings.port) as listening:
        hub = open_hub(settings)
        host, port = listening.getsockname()[:2]
        if console is None:
            log.info("listening on %s", url(settings, host, port))
        else:
            greet(settings, port, console)
        server = CaptionServer(hub, listening, tls)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # ignored under nohup
            signal.signal(signal.SIGHUP, server.handle_exit)
        asyncio.run(server.serve())
        if hub.engines.running:  # its model hangs, and may keep Python from ending
            log.critical("the engine does not end: start the server again")
            logging.shutdown()
            os._exit(1)
        if server.failed:
            raise Stopped("the engine has stopped, see the log: start the server again")
