"""The server process: logs, open files, a listening socket, TLS, uvicorn, and a graceful shutdown."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from queue import Full, Queue
from tempfile import TemporaryDirectory
from threading import Thread
from types import FrameType
from typing import IO, Any

import h11
import uvicorn
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from redraft import deadlines
from redraft.engine.engine import Stopped
from redraft.errors import OptionError
from redraft.folders import cache_folder
from redraft.interrupt import end_process_after
from redraft.serve.app import check, make_app, open_hub
from redraft.serve.http.security import MOST_QUERY, Braked
from redraft.serve.sessions.hub import Hub
from redraft.serve.settings import ServeSettings, ip_of

try:
    import resource
except ModuleNotFoundError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

#: Most lines of logs that wait to be written.
_MOST_LINES = 10_000
#: Attributes of every record; the others were given as ``extra``.
_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Lines(logging.Formatter):
    """Format a record as a JSON object or, with ``plain``, as ``15:04:05 connected session=5c0f resumed=False``.

    Args:
        details: whether to include messages and tracebacks of exceptions, which may contain transcript text; otherwise
            only the type of the exception and where it was raised are logged.
    """

    def __init__(self, *, details: bool, plain: bool) -> None:
        super().__init__()
        self._details, self._plain = details, plain

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for a record; in plain text, a traceback is below it."""
        level, message, more = record.levelname.lower(), record.getMessage(), _more(record)
        trace = self.formatException(record.exc_info) if self._details and record.exc_info else ""
        if self._plain:
            level = "" if record.levelno <= logging.INFO else f"{level}: "
            clock = time.strftime("%H:%M:%S", time.localtime(record.created))
            line = " ".join([f"{clock} {level}{message}", *(f"{name}={value}" for name, value in more.items())])
            return f"{line}\n{trace}" if trace else line
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        fields = {"time": when, "level": level, "logger": record.name, "message": message, **more}
        return json.dumps(fields | ({"traceback": trace} if trace else {}), ensure_ascii=False, default=str)


def _more(record: logging.LogRecord) -> dict[str, Any]:
    """Return the record's extra fields, and the type and place of its exception."""
    fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    if error := record.exc_info and record.exc_info[1]:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        fields["error"] = type(error).__name__
        fields["at"] = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else ""
    return fields


class Beside(logging.Handler):
    """Writes lines on a thread of its own: a pipe that nobody reads must not stop the event loop.

    Lines that do not fit into the queue are dropped.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream, self._lines = stream, Queue[str](_MOST_LINES)
        Thread(target=self._write, name="logs", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record's line."""
        with suppress(Full):
            self._lines.put_nowait(self.format(record))

    def flush(self) -> None:
        """Wait until everything is written, for a short time; `logging.shutdown` calls this when Python ends."""
        until = time.monotonic() + deadlines.LOGS
        while self._lines.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.001)

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            with suppress(OSError, ValueError):  # it is closed
                self._stream.write(f"{line}\n".encode(errors="backslashreplace"))
            self._lines.task_done()


def set_up_logs(*, details: bool, plain: bool = False, stream: IO[bytes] | None = None) -> None:
    """Send logs to a stream that is not buffered, by default the standard error."""
    # Not `sys.stderr`, which Python flushes when it ends: that would wait for a line that nobody reads.
    handler = Beside(stream or FileIO(2, "w", closefd=False))
    handler.setFormatter(Lines(details=details, plain=plain))
    # Logs of libraries may contain transcript text too, for example unhandled errors of the event loop.  Uvicorn's
    # warnings are about malformed requests, which anyone can send; they are counted instead (`redraft_refusals`).
    for name, level in (("redraft", logging.INFO), ("uvicorn", logging.ERROR), ("", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def allow_open_files(number: int | None = None) -> None:
    """Raise the soft limit on open files as far as possible.

    Args:
        number: number of files needed; None only raises the limit.

    Raises:
        OptionError: the system allows fewer.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = resource.RLIM_INFINITY
    if soft != endless and (hard == endless or soft < hard):
        soft = max(soft, number or 0) if hard == endless else hard
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if number is not None and soft != endless and soft < number:
        raise OptionError(
            f"{number} files must be open at a time, one for each connection, and the system allows {soft}: raise the "
            "limit with `ulimit -n`, or LimitNOFILE under systemd"
        )


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
            both = Path(fresh) / "both"
            both.touch(mode=0o600)
            ask += ["-keyout", str(both), "-out", str(both)]  # the certificate goes behind the key
            subprocess.run(ask, check=True, capture_output=True, timeout=_SECONDS)
            both.replace(path)
    except (OSError, subprocess.SubprocessError) as error:
        raise OptionError(f"self-signed needs the program openssl, which failed: {error}", "tls") from None
    return path


log = logging.getLogger(__name__)

#: Factor on `message_bytes` for uvicorn's own limit, at which it closes the connection immediately and drops what came
#: in the same packet; a message between both limits is answered with an error.
_HARD_LIMIT = 4
#: Maximum number of connections that wait to be accepted.
_QUEUE = 1024
#: Maximum bytes of a request's head: every header takes 3 microseconds, and can be four bytes long.
_MOST_HEAD = 2 * MOST_QUERY
#: Milliseconds after which the system gives up a peer that accepts no data, to close connections of dropped readers, or
#: answers no probe, to close those of devices that have gone in the middle of a request or of a transcript.
_USER_TIMEOUT = 30_000


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
    places = [("Rooms", "/rooms", "links, QR code and overlay of a room")]
    if not settings.viewers_only:
        places = [("Page", "/", "speak, type or play the demo talk"), *places, ("API", "/docs", "websocket and HTTP")]
    places += [("", f"/rooms/{room}", "") for room in settings.rooms]
    table = Table.grid(Column(no_wrap=True), Column(no_wrap=True), Column(), padding=(0, 2))
    for name, path, about in places:
        address = url(settings, host, port) + path
        table.add_row(f"  {name}", Text(address, style=f"bold cyan link {address}"), Text(about, style="dim"))
    console.print(table)
    remarks = {
        "Only this machine can connect. For others: --host 0.0.0.0 --keys FILE": settings.local,
        "An API key is needed to begin a session, not to watch one.": settings.key_file,
        "Ctrl-C finishes the current captions and stops; a second one stops at once.": True,
    }
    lines = "\n".join(f"  {line}" for line, holds in remarks.items() if holds)
    console.print(f"\n{lines}\n", style="dim", highlight=False, markup=False)


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
        theirs = self.conn.their_state
        answered = theirs is h11.SEND_BODY and self.conn.our_state is h11.DONE  # the rest of its body is not wanted
        if answered or (theirs is h11.IDLE and self.conn.trailing_data[0]):
            self._late = self._late or self.loop.call_later(deadlines.REQUEST, self.transport.abort)
        elif theirs is not h11.IDLE:
            self._wait_no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        self._wait_no_longer()

    def _wait_no_longer(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class CaptionServer(uvicorn.Server):
    """Uvicorn with a graceful shutdown: the first signal drains and delivers final captions, a second one ends."""

    def __init__(self, hub: Hub, tls: ssl.SSLContext | None = None) -> None:
        self._hub, self._tls = hub, tls
        self._draining: asyncio.Task[None] | None = None
        #: When the first signal came, and when the engine was last seen alive.
        self._asked: float | None = None
        self._alive = time.monotonic()
        #: Whether it ended because its engine has stopped.
        self.failed = False
        super().__init__(
            uvicorn.Config(
                make_app(hub),
                backlog=1,  # connections accepted in a round of the loop; see `Listening`
                ssl_context_factory=(lambda *_: tls) if tls else None,
                http=lambda **given: Braked(Requests(**given)),  # type: ignore[arg-type]
                h11_max_incomplete_event_size=_MOST_HEAD,
                ws=lambda **given: Braked(WebSocketsSansIOProtocol(**given)),  # type: ignore[arg-type]
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
        """Accept connections; uvicorn has no setting for how long a client may take to agree on TLS."""
        loop: Any = asyncio.get_running_loop()
        if self._tls:
            loop.create_server = partial(loop.create_server, ssl_handshake_timeout=deadlines.OPENED)
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, stop at the second; end the process if it does neither in time, whatever hangs."""
        now = time.monotonic()
        if self._asked is None:
            self._asked = now
            end_process_after(self._hub.settings.drain_seconds + deadlines.AFTER_DRAIN)
        elif now - self._asked > deadlines.TOGETHER:
            self.should_exit = self.force_exit = True
            end_process_after(deadlines.AT_ONCE)

    def stop(self) -> None:
        """Drain, then end."""
        self._draining = self._draining or asyncio.get_running_loop().create_task(self._drain())

    async def on_tick(self, counter: int) -> bool:
        """Whether to end; also a few seconds after the engine has stopped, which only a new process can restart."""
        if self._asked is not None:
            self.stop()
        now = time.monotonic()
        if self._hub.engines.alive:
            self._alive = now
        self.failed = now - self._alive >= deadlines.WITHOUT_ENGINE
        return await super().on_tick(counter) or self.failed

    async def _drain(self) -> None:
        log.info("stopping after the captions in progress")
        try:
            await self._hub.drain()
        finally:
            self.should_exit = True


class Listening(socket.socket):
    """A socket whose queue is long, also if asyncio, which accepts as many at once, wants a short one."""

    def listen(self, backlog: int = _QUEUE) -> None:
        """Listen."""
        super().listen(_QUEUE)


def listen(host: str, port: int) -> Listening:
    """Return a listening socket.  Raises `OptionError` if the address cannot be used."""
    made = None
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = Listening(family, kind, number)
        # On Windows, SO_REUSEADDR would let two servers share a port.
        option = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        made.setsockopt(socket.SOL_SOCKET, option, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _USER_TIMEOUT // 1000)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        made.bind(address)
        made.listen()
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
        server = CaptionServer(hub, tls)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # ignored under nohup
            signal.signal(signal.SIGHUP, server.handle_exit)
        asyncio.run(server.serve([listening]))
        if any(each.running for each in hub.engines.all):  # its model hangs, and may keep Python from ending
            log.critical("the engine does not end: start the server again")
            logging.shutdown()
            os._exit(1)
        if server.failed:
            raise Stopped("the engine has stopped, see the log: start the server again")
