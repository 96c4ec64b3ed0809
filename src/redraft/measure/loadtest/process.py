"""A server as a process of its own, on a free port of this machine."""

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

#: Limits that are there against strangers, out of the way: all talks come from one address.  A session that has ended
#: is forgotten soon, so that it can be seen whether any is left over.
SETTINGS: Mapping[str, str] = {
    "port": "0",
    "sessions": "10000",
    "sessions_per_address": "10000",
    "starts_per_second": "10000",
    "languages": "10000",
    "keep_seconds": "5",
}
#: ``busy`` for a server that admits everybody.
ADMIT_ALL = "1000"
#: What can be set; the rest is said by other options, or would keep the talks out.
SETTABLE = tuple(
    name
    for name in ServeSettings.model_fields
    if name not in ("host", "port", "keys", "model", "methods", "threads", "busy")
)
#: Seconds that the process may take to end, and between two looks at whether it listens.
_END, _LOOK = 60.0, 0.1
_PREFIX = "REDRAFT_SERVE_"


def parse_settings(given: Sequence[str]) -> dict[str, str]:
    """Settings as ``NAME=VALUE``, by name.

    Raises:
        OptionError: one is not like that, or there is no such setting.
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
    """A server while the block lasts; gives its address.

    Args:
        chosen: settings by name, as the environment would have them; they count before `SETTINGS`.  Those that are in
            the environment of this process do not reach the server.
        log: the file for what it logs.

    Raises:
        ServerError: it does not start, or has not ended as it ought to.
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
            raise ServerError("engine", f"the server has ended by itself: {_last_line(log, died)}")
    if process.returncode:
        raise ServerError("engine", f"the server has not ended well: {_last_line(log, process.returncode)}")


async def _address(process: asyncio.subprocess.Process, log: Path) -> str:
    """Wait until the log says where the server listens, or for ever if it neither says so nor ends."""
    while process.returncode is None:
        if found := re.search(r'"listening on ([^"]+)"', log.read_text(encoding="utf-8")):
            return found[1]
        await asyncio.sleep(_LOOK)
    raise ServerError("engine", "the server has not started")


async def _end(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _END)
    except TimeoutError:
        process.kill()
        await process.wait()


def _last_line(log: Path, status: int) -> str:
    """What it said last, without the program's name; its exit status if it said nothing."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return last.removeprefix("redraft: ") or f"status {status}"
