"""Outputs that take nothing for a while, or never."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
COMMAND = [sys.executable, "-m", "redraft", "translate", "--to", "de", "--model", "demo-tiny"]


def test_pipe_without_waiting(tmp_path: Path) -> None:
    """A pipe of which another program has said that writing never waits, and which is read late."""
    talk, length = tmp_path / "talk.txt", 400
    talk.write_text("I have a dog.\n\n" * length)
    read, write = os.pipe()
    os.set_blocking(write, False)
    with subprocess.Popen([*COMMAND, str(talk), "--output", "jsonl"], stdout=write, stderr=subprocess.PIPE) as process:
        os.close(write)
        full, end = 0, time.monotonic() + 60
        while full < 3 and process.poll() is None and time.monotonic() < end:
            time.sleep(0.3)
            full = full + 1 if _waiting(read) > 60_000 else 0
        with os.fdopen(read, "rb") as output:
            written = output.read()
        assert process.wait(60) == 0
    assert written.count(b'"final"') == length


def _waiting(pipe: int) -> int:
    """Return the number of bytes in a pipe."""
    import array
    import fcntl
    import termios

    found = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, found)
    return found[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_messages_that_cannot_be_written() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            COMMAND, input=b"\xff\nI have a dog.\n\n", stdout=subprocess.PIPE, stderr=full, check=False
        )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, b"final\tde\tIch habe einen Hund.")
