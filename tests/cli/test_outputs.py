"""Outputs that take nothing for a while, or never."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
COMMAND = [sys.executable, "-m", "redraft", "translate", "--to", "de", "--model", "demo-tiny"]


def test_pipe_without_waiting() -> None:
    """Writing to a full pipe waits, also if another program that has the pipe wants no waiting."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with os.fdopen(read, "rb") as output, os.fdopen(write, "wb") as pipe:
        done = subprocess.run(COMMAND, input=b"I have a dog.\n\n", stdout=pipe, stderr=subprocess.PIPE, check=False)
        assert (done.returncode, done.stderr, os.get_blocking(write)) == (0, b"", True)
        pipe.close()
        assert output.read().splitlines()[-1] == b"final\tde\tIch habe einen Hund."


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_messages_that_cannot_be_written() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            COMMAND, input=b"\xff\nI have a dog.\n\n", stdout=subprocess.PIPE, stderr=full, check=False
        )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, b"final\tde\tIch habe einen Hund.")
