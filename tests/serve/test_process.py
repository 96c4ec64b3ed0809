"""Logs and open files of a server's process."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import resource
import subprocess
import sys

import pytest

from redraft.errors import OptionError
from redraft.serve import run
from redraft.serve.run import allow_open_files


def fail(text: str) -> None:
    raise ValueError(f"cannot translate {text}")


def written(stream: io.BytesIO) -> str:
    for handler in logging.getLogger().handlers:
        handler.flush()
    return stream.getvalue().decode()


@pytest.mark.parametrize("details", [False, True])
def test_json_lines(details: bool) -> None:
    stream = io.BytesIO()
    run.set_up_logs(details=details, stream=stream)
    log = logging.getLogger("redraft.serve.test")
    log.info("connected", extra={"session": "abc"})
    log.debug("not of interest")
    logging.getLogger("uvicorn.error").info("GET /v1/ingest/secret")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    try:
        fail("a secret")
    except ValueError:
        log.exception("a pass failed; its %d requests are tried alone", 3)
    first, second = map(json.loads, written(stream).splitlines())
    assert (first["message"], first["session"], first["level"]) == ("connected", "abc", "info")
    assert (second["error"], second["message"]) == ("ValueError", "a pass failed; its 3 requests are tried alone")
    assert "test_process.py" in second["at"]
    assert ("a secret" in written(stream)) == details


@pytest.mark.parametrize("details", [False, True])
def test_plain_lines(details: bool) -> None:
    stream = io.BytesIO()
    run.set_up_logs(details=details, plain=True, stream=stream)
    logging.getLogger("redraft.serve.test").info("connected", extra={"session": "abc"})
    try:
        fail("a secret")
    except ValueError:
        logging.getLogger("redraft.serve.test").exception("a pass failed")
    first, second, *trace = written(stream).splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d connected session=abc", first)
    assert re.fullmatch(r"\d\d:\d\d:\d\d error: a pass failed error=ValueError at=.*test_process\.py:\d+", second)
    assert ("a secret" in written(stream)) == details == bool(trace)


def test_foreign_logs() -> None:
    stream = io.BytesIO()
    run.set_up_logs(details=False, stream=stream)
    try:
        fail("a secret")
    except ValueError:
        logging.getLogger("asyncio").error("Task exception was never retrieved", exc_info=True)
    (line,) = map(json.loads, written(stream).splitlines())
    assert (line["logger"], line["error"]) == ("asyncio", "ValueError")
    assert "a secret" not in written(stream)


def test_logs_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logging does not wait for the reader, nor does the end of the process for long; later lines follow."""
    monkeypatch.setattr(run, "_MOST_LINES", 100)
    reading, writing = os.pipe()
    with io.FileIO(reading) as reader, io.FileIO(writing, "w") as stream:
        run.set_up_logs(details=False, plain=True, stream=stream)
        log = logging.getLogger("redraft.serve.test")
        for number in range(1000):
            log.info("%d %s", number, "x" * 1000)
        logging.getLogger().handlers[0].flush()
        text = b""
        while b"again" not in text:
            log.info("again")
            text += reader.read(1 << 16)
        numbers = [int(line.split()[1]) for line in text.splitlines() if b" x" in line]
        assert 100 <= len(numbers) < 1000 and numbers == sorted(numbers)


def test_end_of_a_process_whose_logs_nobody_reads() -> None:
    """Python waits for locks of handlers when it ends, and the thread that writes holds none."""
    code = """
import logging, os
from redraft.serve import run
run.set_up_logs(details=False)
for number in range(1000):
    logging.getLogger("redraft").info("x" * 1000)
"""
    ended = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    assert ended.wait(60) == 0
    assert ended.stderr is not None
    ended.stderr.close()


def test_file_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: chosen.append(limits))
    allow_open_files()
    allow_open_files(2000)
    assert chosen == [(4096, 4096)] * 2
    with pytest.raises(OptionError, match="5000 files must be open at a time, .* the system allows 4096: raise"):
        allow_open_files(5000)


def test_no_file_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: chosen.append(limits))
    allow_open_files(5000)
    allow_open_files()
    assert chosen == [(5000, resource.RLIM_INFINITY), (1024, resource.RLIM_INFINITY)]
