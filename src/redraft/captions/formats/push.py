"""Push captions to Zoom meetings and YouTube live streams through their caption URLs.

Both take a POST per caption, numbered by ``seq``, which increases by one per caption and is repeated in a retry:

    Zoom       POST URL&seq=7&lang=de-DE   the text; GET URL/seq returns the last number
    YouTube    POST URL&seq=7              "2026-11-22T20:15:00.000", a line break, the text

A thread sends them in order, one at a time.  A caption that cannot be delivered is retried with growing delays until it
is too old, then dropped with a failure; one that the service refuses is dropped at once.  A redirect counts as a
refusal, since the address is a secret.
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
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import langcodes

from redraft import deadlines
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.read import printable
from redraft.captions.formats.write import Audience, Writer, spoken
from redraft.captions.languages import parse_language
from redraft.deadlines import Backoff
from redraft.errors import OptionError
from redraft.proxies import address_parts, is_local

#: Seconds after which an undelivered caption is dropped, because its words are no longer relevant.
_USEFUL = 10.0
#: Minimum seconds between two captions, to stay below rate limits.
_PACE = 0.25
#: Seconds between two checks whether captions are still held back.
_LOOK = 0.1
#: Client errors after which the same request may succeed later; all others are final.
_PASSING = {408, 425, 429}
#: Maximum bytes and characters of a refusal's reason.
_READ, _SHOWN = 2000, 200
#: What a URL consists of; openers raise various exceptions for others.
_URL = re.compile(r"[!-~]+")


class CaptionService:
    """The caption URL of a Zoom meeting or a YouTube live stream.

    Args:
        target: ``zoom:URL`` or ``youtube:URL``, with the URL that the service gives.

    Raises:
        OptionError: the target has another form, or the language is unknown.
    """

    def __init__(self, target: str, language: str) -> None:
        name, _, url = target.partition(":")
        parts = address_parts(url, "http", "https") if _URL.fullmatch(url) else None
        if name not in ("zoom", "youtube") or parts is None:
            raise OptionError(
                f"must be zoom:URL or youtube:URL, with the caption URL that the service gives, not {target!r}", "push"
            )
        self._url = parts
        #: Zoom's tag of the language; YouTube needs none.
        self._language = zoom_language(language) if name == "zoom" else None
        self._opener = build_opener(_NoRedirects, *([ProxyHandler({})] if is_local(url) else []))

    def first(self) -> int:
        """Return the number of the next caption: with Zoom, a restarted program continues the numbering."""
        if self._language is None:
            return 1
        url = urlunsplit(self._url._replace(path=self._url.path.rstrip("/") + "/seq"))
        try:
            with self._opener.open(url, timeout=deadlines.PUSH) as answer:
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

    def send(self, request: Request, timeout: float) -> None:
        """Send a caption.

        Raises:
            OSError, HTTPException: it was not delivered.
            CaptionRefused: it never will be.
        """
        try:
            self._opener.open(request, timeout=timeout).close()
        except HTTPError as error:
            with error:
                if error.code < 400:
                    host = urlsplit(urljoin(error.url, error.headers.get("Location", ""))).hostname
                    reason = f"the service has moved to {host}, so use the URL that it gives now"
                    raise CaptionRefused(reason) from error
                if error.code < 500 and error.code not in _PASSING:
                    raise CaptionRefused(_answer(error)) from error
                raise OSError(f"the service answered {error.code}") from error


class CaptionRefused(Exception):
    """A service has refused a caption for good; the message says why."""


class _NoRedirects(HTTPRedirectHandler):
    """Leaves redirects to `CaptionService.send`; the library's handler would send neither method nor text."""

    def redirect_request(self, *_: object) -> None:
        return None


def zoom_language(language: str) -> str:
    """Return Zoom's tag of a language, with its own or its likeliest territory: ``de-DE``, ``zh-TW``, ``jp-JP``.

    Raises:
        OptionError: the language is unknown.
    """
    full = langcodes.Language.get(parse_language(language).canonical).maximize()
    return "jp-JP" if full.language == "ja" else f"{full.language}-{full.territory}"


class PushWriter(Writer):
    """Sends the final captions of one language to a service, and passes all events on to another writer.

    Behind a `redraft.captions.formats.rows.RowsWriter` it sends complete lines, long before an utterance ends.

    Args:
        writer: receives all events, and failures for captions that could not be delivered.
        service: receives the captions.
        language: language of the captions to send.
        patience: delays before a caption is sent again, and the age at which it is dropped.
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
        self.writer: Writer = writer
        self._service, self._language = service, language
        self._patience, self._pace, self._clock = patience, pace, clock
        #: Number of captions that could not be delivered.
        self.given_up = 0
        self._audience: Audience | None = None
        self._lines = False
        #: Captions with their time, and when they were queued by the monotonic clock.
        self._queue: queue.SimpleQueue[tuple[str, str, float, float] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._dropping, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="redraft-push", daemon=True)
        self._thread.start()

    def write(self, event: Event) -> None:
        """Pass the event on; queue it if it is a final caption of the language."""
        with self._lock:
            self.writer.write(event)
        if not (isinstance(event, Caption) and event.final and event.language == self._language):
            return
        if text := spoken(event):
            utterance = event.utterance.rpartition(".")[0] if self._lines else event.utterance
            self._queue.put((text, utterance, self._clock(), time.monotonic()))

    def drop(self) -> None:
        """Send nothing more: `close` then reports the captions in the queue."""
        self._dropping.set()
        self.writer.drop()

    def show_to(self, audience: Audience, *, lines: bool = False) -> None:
        """Send only what an audience may see; by default, everything."""
        self._audience, self._lines = audience, lines
        self.writer.show_to(audience, lines=lines)

    @property
    def whole(self) -> bool:
        """Whether all captions were delivered."""
        return not self.given_up and self.writer.whole

    def close(self) -> None:
        """Send the queue, except for captions that are still held back, then close the other writer."""
        self._queue.put(None)
        self._closing.set()
        self._thread.join(deadlines.PUSHED)
        self._dropping.set()
        self._thread.join(2 * deadlines.PUSH)
        self.writer.close()

    def _run(self) -> None:
        seq = self._service.first()
        while (caption := self._queue.get()) is not None:
            text, utterance, when, queued = caption
            if self._dropping.is_set():
                self._give_up(f"a caption was not sent: {text}")
                continue
            released = self._released()
            if released is None or (self._audience and self._audience.is_hidden(utterance, self._language)):
                continue
            try:
                self._send(self._service.request(text, when, seq), max(queued, released) + self._patience.patience)
            except CaptionRefused as error:
                self._give_up(f"a caption was refused: {error}")
            except (OSError, HTTPException) as error:
                self._give_up(f"a caption could not be sent and was dropped: {_reason(error)}")
            # A dropped caption may have arrived after all, so its number is never used again.
            seq += 1
            self._dropping.wait(self._pace)

    def _released(self) -> float | None:
        """Wait while captions are held back; return when they were released, 0 if they were not.

        Returns:
            Seconds of the monotonic clock; None if they are still held back at the end.
        """
        since = 0.0
        while self._audience and self._audience.paused:
            if self._closing.wait(_LOOK) and self._audience.paused:
                return None
            since = time.monotonic()
        return since

    def _give_up(self, message: str) -> None:
        self.given_up += 1
        with self._lock:
            self.writer.write(Failure(message))

    def _send(self, request: Request, latest: float) -> None:
        """Send a caption until ``latest`` by the monotonic clock, once at least; raises what has gone wrong then."""
        for wait in chain(self._patience.waits(), [None]):
            try:
                self._service.send(request, min(deadlines.PUSH, max(deadlines.PUSH_LEAST, latest - time.monotonic())))
                return
            except (OSError, HTTPException):
                if wait is None or time.monotonic() + wait > latest or self._dropping.wait(wait):
                    raise


def _answer(error: HTTPError) -> str:
    """Return the status and reason that a service has answered with, in one line without markup."""
    try:
        body = error.read(_READ).decode(errors="replace")
    except (OSError, HTTPException):
        body = ""
    words = " ".join(re.sub(r"<[^>]*>", " ", printable(body)).split())
    found = words or str(error.reason)
    return f"the service answered {error.code}" + (f": {found[:_SHOWN]}" if found else "")


def _reason(error: OSError | HTTPException) -> str:
    if isinstance(error, HTTPException) and not isinstance(error, OSError):
        return "the service's answer is not HTTP"
    return str(getattr(error, "reason", error))
