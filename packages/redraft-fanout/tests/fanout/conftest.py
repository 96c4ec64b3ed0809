"""A Redis server of the tests' own, and replicas that share it."""

from __future__ import annotations

import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.programs import program
from tests.serve.conftest import browser, visit  # noqa: F401 - fixtures
from tests.serve.servers import SECONDS, Running, running


class RedisServer:
    """A Redis on a free port, which keeps nothing on disk: once killed, it comes back empty."""

    def __init__(self, program: str, folder: Path, *options: str) -> None:
        self._program, self._folder, self._options = program, folder, options
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        options = f"--port {self.port} --bind 127.0.0.1 --appendonly no --dir {self._folder}".split()
        command = [self._program, *options, *self._options, "--save", ""]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until = time.monotonic() + SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except ConnectionRefusedError:
                if time.monotonic() > until:
                    self.kill()
                    raise
                time.sleep(0.01)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(SECONDS)

    def ask(self, *words: str) -> bytes:
        """What Redis answers to a command, as it is sent."""
        with socket.create_connection(("127.0.0.1", self.port), SECONDS) as connection:
            each = (f"${len(word)}\r\n{word}\r\n" for word in words)
            connection.sendall(f"*{len(words)}\r\n{''.join(each)}".encode())
            return connection.recv(1 << 20)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(program("redis-server"), tmp_path)
    yield found
    found.kill()


class _Older(socketserver.StreamRequestHandler):
    """A line to Redis on which SET does not take NX together with GET, as before Redis 7."""

    redis: RedisServer

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.redis.port), SECONDS) as there:
            back = threading.Thread(target=self._pump, args=(there,))
            back.start()
            while command := self._command():
                words = {word.upper() for word in command}
                refused = command[0].upper() == b"SET" and {b"NX", b"GET"} <= words
                there.sendall(_resp(command[:2] if refused else command))
            there.shutdown(socket.SHUT_WR)
            back.join(SECONDS)

    def _command(self) -> list[bytes]:
        head = self.rfile.readline()
        return [self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2] for _ in range(int(head[1:] or 0))]

    def _pump(self, there: socket.socket) -> None:
        with suppress(OSError):
            while data := there.recv(1 << 16):
                self.wfile.write(data)


def _resp(words: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


@pytest.fixture
def old_redis_url(redis: RedisServer) -> Iterator[str]:
    """The address of a Redis that knows no more than 6.2 does."""
    handler = type("Handler", (_Older,), {"redis": redis})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as line:
        line.daemon_threads = True
        thread = threading.Thread(target=line.serve_forever)
        thread.start()
        yield f"redis://127.0.0.1:{line.server_address[1]}/0"
        line.shutdown()
        thread.join(SECONDS)


@contextmanager
def replica(redis: RedisServer, **settings: Any) -> Iterator[Running]:
    """A server that shares Redis with others."""
    with running(**{"fanout": redis.url, "busy": 1.0, **settings}) as found:
        yield found


@pytest.fixture
def speakers(redis: RedisServer) -> Iterator[Running]:
    """A replica that translates."""
    with replica(redis) as found:
        yield found


@pytest.fixture
def viewers(redis: RedisServer) -> Iterator[Running]:
    """One that serves viewers only."""
    with replica(redis, viewers_only=True) as found:
        yield found
