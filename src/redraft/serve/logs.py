"""Structured logs: one JSON object a line on standard error, without transcript text."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import IO

#: What every record has; the rest was given as ``extra``.
_USUAL = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """A record as one JSON object.

    Args:
        details: whether messages of exceptions and their tracebacks, in which there may be text, are written; without
            them it is only said what was raised where.
    """

    def __init__(self, *, details: bool) -> None:
        super().__init__()
        self._details = details

    def format(self, record: logging.LogRecord) -> str:
        """The line for a record."""
        fields = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _USUAL}
        if record.exc_info and record.exc_info[1] is not None:
            error, place = record.exc_info[1], record.exc_info[2]
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            fields["error"] = type(error).__name__
            fields["at"] = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else ""
            if self._details:
                fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


def set_up(*, details: bool, stream: IO[str] | None = None) -> None:
    """Log to standard error, or another stream.

    Args:
        details: see `JsonLines`.
        stream: where to.
    """
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines(details=details))
    # What others log may hold text as well: what the event loop could not hand to anybody, for example.
    for name, level in (("redraft", logging.INFO), ("uvicorn", logging.WARNING), ("", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
