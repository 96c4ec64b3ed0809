"""Push captions to Zoom meetings and YouTube live streams through their caption URLs.

Both take a POST per caption, numbered by ``seq``, which increases by one per caption and is repeated in a retry:

    Zoom       POST URL&seq=7&lang=de-DE   the text; GET URL/seq returns the last number
    YouTube    POST URL&seq=7              "2026-11-22T20:15:00.000", a line break, the text

A thread sends them in order, one at a time.  A rejected caption is retried with growing delays until it is too old;
then it is dropped with a failure.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http.client import HTTPException
from itertools import chain
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from urllib.request import Request, urlopen

import langcodes

from redraft.backoff import Backoff
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.write import Writer, spoken
from redraft.captions.languages import parse_language
from redraft.errors import OptionError

#: Seconds after which an undelivered caption is dropped, because its words are no longer relevant.
_USEFUL = 10.0
#: Minimum seconds between two captions, to stay below rate limits.
_PACE = 0.25
_TIMEOUT = 5.0
#: What a URL consists of; `urlopen` raises various exceptions for others.
_URL = re.compile(r"[!-~]+")


class CaptionService:
    """The caption URL of a Zoom meeting or a YouTube live stream.

    Args:
        target: ``zoom:URL`` or ``youtube:URL``, with the URL that the service gives.
        language: language of the captions.

    Raises:
        OptionError: the target has another form, or the language is unknown.
    """

    def __init__(self, target: str, language: str) -> None:
        name, _, url = target.partition(":")
        try:
            self._url = urlsplit(url)
            fits = self._url.scheme in ("http", "https") and bool(self._url.hostname and _URL.fullmatch(url))
        except ValueError:
            fits = False
        if name not in ("zoom", "youtube") or not fits:
            raise OptionError(
                f"must be zoom:URL or youtube:URL, with the caption URL that the service gives, not {target!r}", "push"
            )
        #: Zoom's tag of the language; YouTube needs none.
        self._language = zoom_language(language) if name == "zoom" else None

    def first(self) -> int:
        """Return the number of the next caption: with Zoom, a restarted program continues the numbering."""
        if self._language is None:
            return 1
        url = urlunsplit(self._url._replace(path=self._url.path.rstrip("/") + "/seq"))
        try:
            with urlopen(url, timeout=_TIMEOUT) as answer:
                return int(answer.read().decode().strip() or 0) + 1
        except (OSError, HTTPException, ValueError):  # the answer is optional
            return 1

    def request(self, text: str, when: float, seq: int) -> Request:
        """Return the HTTP request that sends a caption; ``when`` is its time in seconds since 1970."""
        more, body = {"seq": str(seq)}, f"{text}\n"
        if self._language is not None:
            more["lang"] = self._language
        else:
            body = datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "\n" + body
        kept = [(name, value) for name, value in parse_qsl(self._url.query, keep_blank_values=True) if name not in more]
        url = urlunsplit(self._url._replace(query=urlencode([*kept, *more.items()])))
        return Request(url, body.encode(), {"Content-Type": "text/plain; charset=utf-8"}, method="POST")


def zoom_language(language: str) -> str:
    """Return Zoom's tag of a language, with its own or its likeliest territory: ``de-DE``, ``zh-TW``, ``jp-JP``.

    Raises:
        OptionError: the language is unknown.
    """
    full = langcodes.Language.get(parse_language(language).canonical).maximize()
    return "jp-JP" if full.language == "ja" else f"{full.language}-{full.territory}"


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
        self._queue: queue.SimpleQueue[tuple[str, float] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._dropping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="redraft-push", daemon=True)
        self._thread.start()

    def write(self, event: Event) -> None:
        """Pass the event on; queue it if it is a final caption of the language."""
        with self._lock:
            self.writer.write(event)
        if not (isinstance(event, Caption) and event.final and event.language == self._language):
            return
        if text := spoken(event):
            self._queue.put((text, self._clock()))

    def drop(self) -> None:
        """Send nothing more: `close` then reports the captions in the queue."""
        self._dropping.set()

    def close(self) -> None:
        """Send the queue, then close the other writer."""
        self._queue.put(None)
        self._thread.join()
        self.writer.close()

    def _run(self) -> None:
        seq = self._service.first()
        while (caption := self._queue.get()) is not None:
            if self._dropping.is_set():
                self._give_up(f"a caption was not sent: {caption[0]}")
                continue
            try:
                self._send(self._service.request(*caption, seq))
            except (OSError, HTTPException) as error:
                self._give_up(f"a caption could not be sent and was dropped: {_reason(error)}")
            # A dropped caption may have arrived after all, so its number is never used again.
            seq += 1
            self._dropping.wait(self._pace)

    def _give_up(self, message: str) -> None:
        self.given_up += 1
        with self._lock:
            self.writer.write(Failure(message))

    def _send(self, request: Request) -> None:
        """Send a caption; raises what has gone wrong once it is too old to be retried, or sending has ended."""
        for wait in chain(self._patience.waits(), [None]):
            try:
                urlopen(request, timeout=_TIMEOUT).close()
                return
            except (OSError, HTTPException) as error:
                if isinstance(error, HTTPError):
                    error.close()
                if wait is None or self._dropping.wait(wait):
                    raise


def _reason(error: OSError | HTTPException) -> str:
    if isinstance(error, HTTPError):
        return f"the service answered {error.code}"
    if isinstance(error, HTTPException) and not isinstance(error, OSError):
        return "the service's answer is not HTTP"
    return str(getattr(error, "reason", error))
