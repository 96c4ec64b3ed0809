"""A Redis server for load tests, and meters of CPU use."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from redraft.errors import OptionError
from redraft_bench.loadtest.gauges import read


class RedisProcess:
    """A Redis server on a free local port; it has no persistence, so it is empty after a restart."""

    def __init__(self, program: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._command = [program, *f"--port {self._port} --bind 127.0.0.1 --appendonly no --save".split(), ""]
        self._process: asyncio.subprocess.Process | None = None
        self.url = f"redis://127.0.0.1:{self._port}/0"

    @classmethod
    @asynccontextmanager
    async def started(cls) -> AsyncIterator[RedisProcess]:
        """Run a server while the block runs.

        Raises:
            OptionError: Redis is not installed, or does not start.
        """
        program = shutil.which("redis-server")
        if program is None:
            raise OptionError("viewers on replicas need redis-server: on Debian, apt install redis-server")
        made = cls(program)
        try:
            await made.start()
            yield made
        finally:
            await made.kill()

    async def start(self) -> None:
        """Start it, and wait until it responds.

        Raises:
            OptionError: it has ended instead.
        """
        self._process = await asyncio.create_subprocess_exec(*self._command, stdout=asyncio.subprocess.DEVNULL)
        while self._process.returncode is None:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self._port)
                writer.close()
                return
            await asyncio.sleep(0.05)
        command = " ".join(self._command[:-1])
        raise OptionError(f"redis-server ended with status {self._process.returncode}: run {command!r} to see why")

    async def kill(self) -> None:
        """Kill it, and lose its data."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    @property
    def pid(self) -> int:
        """Its process id, once it has been started."""
        return 0 if self._process is None else self._process.pid


class CpuMeter:
    """Measures the cores used by servers from now on."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers, self._begun, self._before = servers, time.monotonic(), self._seconds(servers)

    def cores(self) -> float:
        """Return the average since then."""
        return (self._seconds(self._servers) - self._before) / (time.monotonic() - self._begun)

    @staticmethod
    def _seconds(servers: Sequence[str]) -> float:
        return sum(read(server).values["process_cpu_seconds_total"] for server in servers)


class ProcessMeter:
    """Measures the cores used by a local process from now on; 0 if the system does not report it."""

    def __init__(self, pid: int) -> None:
        self._path = Path(f"/proc/{pid}/stat")
        self._begun, self._before = time.monotonic(), self._seconds()

    def cores(self) -> float:
        """Return the average since then."""
        return (self._seconds() - self._before) / (time.monotonic() - self._begun)

    def _seconds(self) -> float:
        try:
            fields = self._path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
