"""Push captions to Zoom meetings and YouTube live streams through their caption URLs.

Both take a POST per caption, numbered by ``seq``, which increases by one per caption and is repeated in a retry:

    Zoom       POST URL&seq=7&lang=de-DE   the text; GET URL/seq returns the last number
    YouTube    POST URL&seq=7              "2026-11-22T20:15:00.000", a line break, the text

A thread sends them in order, one at a time.  A rejected caption is retried with growing delays until it is too old;
then it is dropped with a failure.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Protocol
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from redraft.backoff import Backoff
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.read import printable
from redraft.captions.formats.write import Writer
from redraft.captions.languages import parse_language
from redraft.errors import OptionError

#: Seconds after which an undelivered caption is dropped, because its words are no longer relevant.
_USEFUL = 10.0
#: Minimum seconds between two captions, to stay below rate limits.
_PACE = 0.25
_TIMEOUT = 5.0
#: Zoom's language tags where they are not those of BCP 47.
_ZOOM = {"ja": "jp-JP", "en": "en-US", "zh": "zh-CN", "pt": "pt-BR"}


@dataclass(frozen=True, slots=True)
class Cue:
    """A caption to send: its text, and its time in seconds since 1970."""

    text: str
    when: float


class CaptionService(Protocol):
    """The protocol of a caption service."""

    def first(self) -> int:
        """Return the number of the next caption."""

    def request(self, caption: Cue, seq: int) -> Request:
        """Return the HTTP request that sends a caption."""


class Zoom:
    """A Zoom meeting's caption API.

    Args:
        url: the URL from Zoom.
        language: language of the captions.
    """

    def __init__(self, url: str, language: str) -> None:
        self._url, self._language = url, zoom_language(language)

    def first(self) -> int:
        """Return the last number plus one, so that a restarted program continues the numbering."""
        parts = urlsplit(self._url)
        url = urlunsplit(parts._replace(path=parts.path.rstrip("/") + "/seq"))
        try:
            with urlopen(url, timeout=_TIMEOUT) as answer:
                return int(answer.read().decode().strip() or 0) + 1
        except (OSError, ValueError):  # the answer is optional
            return 1

    def request(self, caption: Cue, seq: int) -> Request:
        """Return a request with the text."""
        return _posting(_with(self._url, seq=str(seq), lang=self._language), caption.text + "\n")


class YouTube:
    """A YouTube live stream's caption ingestion URL.

    Args:
        url: the URL from YouTube.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def first(self) -> int:
        """Return the first number; each run starts again."""
        return 1

    def request(self, caption: Cue, seq: int) -> Request:
        """Return a request with the time in UTC and the text."""
        time = datetime.fromtimestamp(caption.when, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        return _posting(_with(self._url, seq=str(seq)), f"{time}\n{caption.text}\n")


def zoom_language(language: str) -> str:
    """Return Zoom's tag of a language, such as ``de-DE``.

    Raises:
        OptionError: the language is unknown.
    """
    canonical = parse_language(language).canonical
    code, _, region = canonical.partition("-")
    return _ZOOM.get(canonical) or (canonical if region else _ZOOM.get(code, f"{code}-{code.upper()}"))


def service(target: str, language: str) -> CaptionService:
    """Return the service for ``zoom:https://...`` or ``youtube:https://...``.

    Raises:
        OptionError: the target has another form.
    """
    name, _, url = target.partition(":")
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        fits = False
    if name not in ("zoom", "youtube") or not fits:
        raise OptionError(
            f"push must be zoom:URL or youtube:URL, with the caption URL that the service gives, not {target!r}"
        )
    return Zoom(url, language) if name == "zoom" else YouTube(url)


class PushWriter:
    """Sends the final captions of one language to a service, and passes all events on to another writer.

    Behind a `redraft.captions.formats.write.RowsWriter` it sends complete lines, long before an utterance ends.

    Args:
        writer: receives all events, and failures for captions that could not be delivered.
        service: receives the captions.
        language: language of the captions to send.
        patience: seconds for which a caption is retried.
        pace: minimum seconds between two captions.
        clock: returns the time in seconds since 1970.
    """

    def __init__(
        self,
        writer: Writer,
        service: CaptionService,
        language: str,
        *,
        patience: Backoff = Backoff(0.5, 4.0, _USEFUL),
        pace: float = _PACE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.writer, self._service, self._language = writer, service, language
        self._patience, self._pace, self._clock = patience, pace, clock
        #: Number of captions that could not be delivered.
        self.given_up = 0
        self._queue: queue.SimpleQueue[Cue | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="redraft-push", daemon=True)
        self._thread.start()

    def write(self, event: Event) -> None:
        """Pass the event on; queue it if it is a final caption of the language."""
        with self._lock:
            self.writer.write(event)
        if not (isinstance(event, Caption) and event.final and event.language == self._language):
            return
        if text := printable(event.text).strip():
            self._queue.put(Cue(text, self._clock()))

    def close(self) -> None:
        """Send the queue, then close the other writer."""
        self._queue.put(None)
        self._thread.join()
        self.writer.close()

    def _run(self) -> None:
        seq = self._service.first()
        while (caption := self._queue.get()) is not None:
            try:
                self._send(self._service.request(caption, seq))
            except OSError as error:
                self.given_up += 1
                with self._lock:
                    self.writer.write(Failure(f"a caption could not be sent and was dropped: {_reason(error)}"))
            # A dropped caption may have arrived after all, so its number is never used again.
            seq += 1
            time.sleep(self._pace)

    def _send(self, request: Request) -> None:
        """Send a caption; raises `OSError` once it is too old to be retried."""
        for wait in chain(self._patience.waits(), [None]):
            try:
                urlopen(request, timeout=_TIMEOUT).close()
                return
            except OSError as error:
                if isinstance(error, HTTPError):
                    error.close()
                if wait is None:
                    raise
                time.sleep(wait)


def _reason(error: OSError) -> str:
    if isinstance(error, HTTPError):
        return f"the service answered {error.code}"
    return str(getattr(error, "reason", error))


def _with(url: str, **more: str) -> str:
    """Return a URL with query parameters added or replaced."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in more]
    return urlunsplit(parts._replace(query=urlencode([*kept, *more.items()])))


def _posting(url: str, body: str) -> Request:
    return Request(url, body.encode(), {"Content-Type": "text/plain; charset=utf-8"}, method="POST")
