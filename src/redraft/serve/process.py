"""What a server process needs of the system: logs without transcript text, and open files for its connections."""

from __future__ import annotations

import json
import logging
import time
from contextlib import suppress
from io import FileIO, TextIOWrapper
from logging.handlers import QueueHandler, QueueListener
from queue import Full, Queue
from typing import IO, Any

from redraft import deadlines
from redraft.errors import OptionError

try:
    import resource
except ModuleNotFoundError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

#: Most lines of logs that wait to be written.
_MOST_LINES = 10_000
#: Attributes of every record; the others were given as ``extra``.
_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Lines(logging.Formatter):
    """Format a record as a JSON object or, with ``plain``, as ``15:04:05 connected session=5c0f resumed=False``.

    Args:
        details: whether to include messages and tracebacks of exceptions, which may contain transcript text; otherwise
            only the type of the exception and where it was raised are logged.
    """

    def __init__(self, *, details: bool, plain: bool) -> None:
        super().__init__()
        self._details, self._plain = details, plain

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for a record; in plain text, a traceback is below it."""
        level, message, more = record.levelname.lower(), record.getMessage(), _more(record)
        trace = self.formatException(record.exc_info) if self._details and record.exc_info else ""
        if self._plain:
            level = "" if record.levelno <= logging.INFO else f"{level}: "
            clock = time.strftime("%H:%M:%S", time.localtime(record.created))
            line = " ".join([f"{clock} {level}{message}", *(f"{name}={value}" for name, value in more.items())])
            return f"{line}\n{trace}" if trace else line
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        fields = {"time": when, "level": level, "logger": record.name, "message": message, **more}
        return json.dumps(fields | ({"traceback": trace} if trace else {}), ensure_ascii=False, default=str)


def _more(record: logging.LogRecord) -> dict[str, Any]:
    """Return the record's extra fields, and the type and place of its exception."""
    fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    if error := record.exc_info and record.exc_info[1]:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        fields["error"] = type(error).__name__
        fields["at"] = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else ""
    return fields


class Beside(QueueHandler):
    """Writes lines on a thread of its own: a pipe that nobody reads must not stop the event loop.

    Lines that do not fit into the queue are dropped.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines = Queue[logging.LogRecord](_MOST_LINES)
        super().__init__(self._lines)
        text = TextIOWrapper(stream, "utf-8", "backslashreplace", write_through=True)  # type: ignore[arg-type]
        QueueListener(self._lines, logging.StreamHandler(text)).start()

    def enqueue(self, record: logging.LogRecord) -> None:
        """Queue a record's line."""
        with suppress(Full):
            self._lines.put_nowait(record)

    def flush(self) -> None:
        """Wait until everything is written, for a short time; `logging.shutdown` calls this when Python ends."""
        until = time.monotonic() + deadlines.LOGS
        while self._lines.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.001)


def set_up_logs(*, details: bool, plain: bool = False, stream: IO[bytes] | None = None) -> None:
    """Send logs to a stream that is not buffered, by default the standard error."""
    # Not `sys.stderr`, which Python flushes when it ends: that would wait for a line that nobody reads.
    handler = Beside(stream or FileIO(2, "w", closefd=False))
    handler.setFormatter(Lines(details=details, plain=plain))
    # Logs of libraries may contain transcript text too, for example unhandled errors of the event loop.  Uvicorn's
    # warnings are about malformed requests, which anyone can send; they are counted instead (`redraft_refusals`).
    for name, level in (("redraft", logging.INFO), ("uvicorn", logging.ERROR), ("", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def allow_open_files(number: int | None = None) -> None:
    """Raise the soft limit on open files as far as possible.

    Args:
        number: number of files needed; None only raises the limit.

    Raises:
        OptionError: the system allows fewer.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = resource.RLIM_INFINITY
    if soft != endless and (hard == endless or soft < hard):
        soft = max(soft, number or 0) if hard == endless else hard
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if number is not None and soft != endless and soft < number:
        raise OptionError(
            f"{number} files must be open at a time, one for each connection, and the system allows {soft}: raise the "
            "limit with `ulimit -n`, or LimitNOFILE under systemd"
        )
