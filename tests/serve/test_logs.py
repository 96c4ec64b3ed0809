"""Logs: one object a line, and nothing of what was said."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from redraft.serve import logs


@pytest.fixture
def restored() -> Iterator[None]:
    """The loggers as they were."""
    loggers = [logging.getLogger(name) for name in ("redraft", "uvicorn", "")]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    yield
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def fail(text: str) -> None:
    raise ValueError(f"cannot translate {text}")


@pytest.mark.parametrize("details", [False, True])
def test_lines_of_json_with_and_without_what_an_exception_says(restored: None, details: bool) -> None:
    stream = io.StringIO()
    logs.set_up(details=details, stream=stream)
    log = logging.getLogger("redraft.serve.test")
    log.info("connected", extra={"session": "abc"})
    log.debug("not of interest")
    logging.getLogger("uvicorn.error").info("GET /v1/ingest/secret")
    try:
        fail("a secret")
    except ValueError:
        log.exception("a pass failed; its %d requests are tried alone", 3)
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["message"], first["session"], first["level"]) == ("connected", "abc", "info")
    assert (second["error"], second["message"]) == ("ValueError", "a pass failed; its 3 requests are tried alone")
    assert "test_logs.py" in second["at"]
    assert ("a secret" in stream.getvalue()) == details


@pytest.mark.parametrize("details", [False, True])
def test_a_person_reads_plain_lines_without_what_an_exception_says(restored: None, details: bool) -> None:
    stream = io.StringIO()
    logs.set_up(details=details, plain=True, stream=stream)
    logging.getLogger("redraft.serve.test").info("connected", extra={"session": "abc"})
    try:
        fail("a secret")
    except ValueError:
        logging.getLogger("redraft.serve.test").exception("a pass failed")
    first, second, *trace = stream.getvalue().splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d connected session=abc", first)
    assert re.fullmatch(r"\d\d:\d\d:\d\d error: a pass failed error=ValueError at=.*test_logs\.py:\d+", second)
    assert ("a secret" in stream.getvalue()) == details == bool(trace)


def test_what_others_log_holds_no_text_either(restored: None) -> None:
    stream = io.StringIO()
    logs.set_up(details=False, stream=stream)
    try:
        fail("a secret")
    except ValueError:
        logging.getLogger("asyncio").error("Task exception was never retrieved", exc_info=True)
    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert (line["logger"], line["error"]) == ("asyncio", "ValueError")
    assert "a secret" not in stream.getvalue()
