"""Outputs that take nothing for a while, or never."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from redraft.captions.events import Caption
from redraft.captions.formats.push import CaptionService
from redraft.cli.shared.stream import writer

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
COMMAND = [sys.executable, "-m", "redraft", "translate", "--to", "de", "--model", "demo-tiny"]


def test_pipe_without_waiting() -> None:
    """Writing to a full pipe waits, also if another program that has the pipe wants no waiting."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with os.fdopen(read, "rb") as output, os.fdopen(write, "wb") as pipe:
        done = subprocess.run(
            COMMAND, input=b"I have a dog.\n\n", stdout=pipe, stderr=subprocess.PIPE, check=False, timeout=200
        )
        assert (done.returncode, done.stderr, os.get_blocking(write)) == (0, b"", True)
        pipe.close()
        assert output.read().splitlines()[-1] == b"final\tde\tIch habe einen Hund."


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_messages_that_cannot_be_written() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            COMMAND, input=b"\xff\nI have a dog.\n\n", stdout=subprocess.PIPE, stderr=full, check=False, timeout=200
        )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, b"final\tde\tIch habe einen Hund.")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_long_messages_that_cannot_be_written() -> None:
    """Python's buffer of text writes those of 8 KiB at once."""
    program = """
import sys
from redraft.cli.main import main
try:
    main(["translate", "--help"])
finally:
    sys.stderr.write("x" * 9000)
"""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.DEVNULL, stderr=full, check=False, timeout=200
        )
    assert done.returncode == 0


def test_base_install() -> None:
    """Only a stream on a server needs the packages of the client."""
    missing = "; ".join(f"sys.modules[{name!r}] = None" for name in ("pydantic", "starlette", "uvicorn", "websockets"))
    program = f"import sys; {missing}; from redraft.cli.main import main; main({COMMAND[3:]!r})"
    done = subprocess.run(
        [sys.executable, "-c", program], input=b"I have a dog.\n\n", stdout=subprocess.PIPE, check=False, timeout=200
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, b"final\tde\tIch habe einen Hund.")


@pytest.mark.parametrize("pushes", [False, True])
def test_subtitles_whose_languages_finish_one_after_another(
    pushes: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, result in (("first", 1), ("send", None)):
        monkeypatch.setattr(CaptionService, name, lambda *_, result=result: result)
    push = [("de", CaptionService("youtube:http://127.0.0.1/captions", "de"))] if pushes else []
    with writer("srt", ["de", "ja"], push=push) as out:
        for language in ("de", "ja"):
            for utterance in ("1", "2"):
                out.write(Caption(utterance, 0, language, f"{language} {utterance}", final=True, time=float(utterance)))
    cues = [cue.splitlines()[2:] for cue in capsys.readouterr().out.strip().split("\n\n")]
    assert cues == [["de 1", "ja 1"], ["de 2", "ja 2"]]


def test_pushes_after_an_interruption(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Captions that wait for a service are named instead of sent."""
    sent: list[object] = []

    def first(_: CaptionService) -> int:
        time.sleep(0.3)
        return 1

    monkeypatch.setattr(CaptionService, "first", first)
    monkeypatch.setattr(CaptionService, "send", lambda *_: sent.append(1))
    opened = writer("lines", ["de"], push=[("de", CaptionService("youtube:http://127.0.0.1/captions", "de"))])
    opened.__enter__().write(Caption("1", 0, "de", "eins", final=True))
    assert not opened.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert not sent and capsys.readouterr().err == "redraft: a caption was not sent: eins\n"
