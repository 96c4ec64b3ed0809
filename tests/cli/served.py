"""A server that is started by its command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

COMMAND = [sys.executable, "-c", "from redraft.cli import main; main()", "serve"]
ENGINE = ["--engine", "threads=1", "--engine", "context_length=256"]


@contextmanager
def served(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server in a process of its own, and its port."""
    process = subprocess.Popen(
        [*COMMAND, "--model", "demo-tiny", *ENGINE, "--slots", "4", *arguments],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        # On a busy machine, a line before warns that the cost of a pass could not be measured well.
        messages = (json.loads(line)["message"] for line in process.stderr)
        address = next(message for message in messages if "http://" in message)
        yield process, int(address.rpartition(":")[2])
    finally:
        process.kill()
        process.wait(20)
        process.stderr.close()
