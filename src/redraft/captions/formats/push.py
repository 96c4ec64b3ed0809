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
from contextlib import suppress
from datetime import UTC, datetime
from http.client import HTTPException
from itertools import chain
from math import inf
from typing import Protocol
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import langcodes

from redraft import deadlines
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.read import printable
from redraft.captions.formats.write import Writer, spoken
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


class Audience(Protocol):
    """What the audience may see, for example `redraft.client.control.Control`."""

    @property
    def paused(self) -> bool:
        """Whether captions are held back."""

    def is_hidden(self, utterance: str, language: str) -> bool:
        """Whether a caption must not be shown."""


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
        kept = [each for each in self._url.query.split("&") if each and each.partition("=")[0] not in more]
        url = urlunsplit(self._url._replace(query="&".join([*kept, urlencode(more)])))
        return Request(url, body.encode(), {"Content-Type": "text/plain; charset=utf-8"}, method="POST")

    def send(self, request: Request, timeout: float) -> None:
        """Send a caption.

        Raises:
            OSError: it was not delivered.
            CaptionRefused: it never will be.
        """
        try:
            self._opener.open(request, timeout=timeout).close()
        except HTTPError as error:
            with error:
                if error.code >= 500 or error.code in _PASSING:
                    raise OSError(f"the service answered {error.code}") from error
                raise CaptionRefused(_refusal(error)) from error
        except OSError:
            raise
        except HTTPException as error:
            raise OSError("the service's answer is not HTTP") from error


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
        audience: who may see only some; None if everything is sent.
        lines: whether captions are lines of reading mode, which are hidden together with their utterance.
        patience: delays before a caption is sent again, and the age at which it is dropped.
        pace: minimum seconds between two captions.
        clock: returns the time in seconds since 1970.
    """

    def __init__(
        self,
        writer: Writer,
        service: CaptionService,
        language: str,
        audience: Audience | None = None,
        *,
        lines: bool = False,
        patience: Backoff = Backoff(0.5, 4.0, _USEFUL),
        pace: float = _PACE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.writer: Writer = writer
        self._service, self._language = service, language
        self._patience, self._pace, self._clock = patience, pace, clock
        self._audience, self._lines = audience, lines
        self._seq, self._all_sent = 0, True
        #: Captions with their utterance, their time, and when they were queued by the monotonic clock.
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
        """Send nothing more, since the program is being interrupted; `close` then reports what waits."""
        self._dropping.set()

    @property
    def whole(self) -> bool:
        """Whether all captions were delivered."""
        return self._all_sent and self.writer.whole

    def close(self) -> None:
        """Send the queue, except for captions that are still held back, then close the other writer."""
        self._queue.put(None)
        self._closing.set()
        self._thread.join(deadlines.PUSHED)
        self._dropping.set()
        self._thread.join(2 * deadlines.PUSH)
        self.writer.close()

    def _run(self) -> None:
        self._seq = self._service.first()
        while (caption := self._queue.get()) is not None:
            if failure := self._failure(*caption):
                self._all_sent = False
                with self._lock:
                    self.writer.write(Failure(failure))
            self._dropping.wait(self._pace)

    def _failure(self, text: str, utterance: str, when: float, since: float) -> str | None:
        """Send a caption unless the audience must not see it; return what is wrong if it could not be delivered.

        It may be sent for a while since it was queued, or since it was released if it was held back.
        """
        while self._audience and self._audience.paused:
            if self._closing.wait(_LOOK) and self._audience.paused:
                return None
            since = time.monotonic()
        if self._audience and self._audience.is_hidden(utterance, self._language):
            return None
        # A dropped caption may have arrived after all, so its number is never used again.
        request, self._seq = self._service.request(text, when, self._seq), self._seq + 1
        latest = since + self._patience.patience
        for wait in chain(self._patience.waits(), [inf]):
            if self._dropping.is_set():
                break
            try:
                self._service.send(request, min(deadlines.PUSH, max(deadlines.PUSH_LEAST, latest - time.monotonic())))
                return None
            except CaptionRefused as error:
                return f"a caption was refused: {error}"
            except OSError as error:
                if time.monotonic() + wait > latest:
                    return f"a caption could not be sent and was dropped: {getattr(error, 'reason', error)}"
            self._dropping.wait(wait)
        return f"a caption was not sent: {text}"


def _refusal(error: HTTPError) -> str:
    """Return the status and reason that a service has answered with, in one line without markup."""
    if error.code < 400:
        host = urlsplit(urljoin(error.url, error.headers.get("Location", ""))).hostname
        return f"the service has moved to {host}, so use the URL that it gives now"
    body = ""
    with suppress(OSError, HTTPException):
        body = error.read(_READ).decode(errors="replace")
    words = " ".join(re.sub(r"<[^>]*>", " ", printable(body)).split())
    return f"the service answered {error.code}: {(words or error.reason)[:_SHOWN]}"
