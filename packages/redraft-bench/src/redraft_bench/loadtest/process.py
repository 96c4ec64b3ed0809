"""Run a server as a separate process on a free local port."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from redraft.client import ServerError
from redraft.errors import OptionError
from redraft.serve.settings import ServeSettings

#: Settings that lift limits meant for strangers, since all talks come from one address, and that expire ended sessions
#: soon, so that leaks show.
SETTINGS: Mapping[str, str] = {
    "port": "0",
    "sessions": "10000",
    "sessions_per_address": "10000",
    "starts_per_second": "10000",
    "languages": "10000",
    "keep_seconds": "5",
}
#: Value of ``busy`` for a server that admits everyone.
ADMIT_ALL = "1000"
#: Settings that may be given; the others are set by options, or would keep the talks out.
SETTABLE = tuple(
    name
    for name in ServeSettings.model_fields
    if name not in ("host", "port", "keys", "model", "methods", "engine", "busy")
)
#: Seconds to wait for the process to end, and between two checks whether it listens.
_END, _LOOK = 60.0, 0.1
_PREFIX = "REDRAFT_SERVE_"


def parse_settings(given: Sequence[str]) -> dict[str, str]:
    """Parse settings given as ``NAME=VALUE``.

    Raises:
        OptionError: one has another form, or the setting is unknown.
    """
    found = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or name not in SETTABLE:
            raise OptionError(f"--set must be NAME=VALUE with NAME one of {', '.join(SETTABLE)}, not {text!r}")
        found[name] = value
    return found


@asynccontextmanager
async def serving(chosen: Mapping[str, str], log: Path) -> AsyncIterator[str]:
    """Run a server while the block runs; yield its URL.

    Args:
        chosen: settings by name, as in environment variables; they override `SETTINGS`.  Settings in this process's
            environment are not passed on.
        log: file for the server's log.

    Raises:
        ServerError: the server does not start, or does not stop properly.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_PREFIX)}
    environment |= {_PREFIX + name.upper(): value for name, value in {**SETTINGS, **chosen}.items()}
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from redraft.cli import main; main()", "serve"), stderr=file, env=environment
        )
    try:
        yield await _address(process, log)
    finally:
        died = process.returncode
        if died is None:
            await _end(process)
        else:
            raise ServerError("engine", f"the server exited unexpectedly: {_last_line(log, died)}")
    if process.returncode:
        raise ServerError("engine", f"the server did not exit cleanly: {_last_line(log, process.returncode)}")


async def _address(process: asyncio.subprocess.Process, log: Path) -> str:
    """Wait, without a timeout, until the log has the server's address or the process ends.

    Raises:
        ServerError: the process ended first.
    """
    while process.returncode is None:
        if found := re.search(r'"listening on ([^"]+)"', log.read_text(encoding="utf-8")):
            return found[1]
        await asyncio.sleep(_LOOK)
    raise ServerError("engine", "the server has not started")


async def _end(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    try:
        async with asyncio.timeout(_END):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _last_line(log: Path, status: int) -> str:
    """Return the last message in the log, without the program's name, or the exit status if there is none."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return last.removeprefix("redraft: ") or f"status {status}"
