"""Captions pushed to where viewers are: the caption URLs of Zoom meetings and of YouTube live streams.

Both take a POST for each caption and count them by ``seq``, which grows by one with every caption and stays the same
when one is tried again:

    Zoom       POST URL&seq=7&lang=de-DE   the text; GET URL/seq says which number came last
    YouTube    POST URL&seq=7              "2026-11-22T20:15:00.000", a line break, the text

A thread of its own sends them one after the other, in order, each once.  One that is not taken is tried again with
growing waits until it is too old to be of use; then it is given up, said so, and the next one goes.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from redraft.backoff import Backoff
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.read import printable
from redraft.captions.formats.write import Writer
from redraft.captions.languages import parse_language
from redraft.errors import OptionError

#: Seconds after which a caption that could not be delivered is given up: by then its words are long past.
_USEFUL = 10.0
#: The least time between two captions, in seconds, so that a burst is not taken for an attack.
_PACE = 0.25
_TIMEOUT = 5.0
#: Zoom's names of languages where they are not those of everybody else.
_ZOOM = {"ja": "jp-JP", "en": "en-US", "zh": "zh-CN", "pt": "pt-BR"}


@dataclass(frozen=True, slots=True)
class Cue:
    """A caption to be sent: its text, and when it was made, in seconds since 1970."""

    text: str
    when: float


class CaptionService(Protocol):
    """How a service wants its captions."""

    def first(self) -> int:
        """The number of the next caption."""

    def request(self, caption: Cue, seq: int) -> Request:
        """What sends a caption."""


class Zoom:
    """A meeting's API token for captions.

    Args:
        url: as Zoom gives it.
        language: of the captions.
    """

    def __init__(self, url: str, language: str) -> None:
        self._url, self._language = url, zoom_language(language)

    def first(self) -> int:
        """One more than the number that came last, so that a program that was started again goes on."""
        parts = urlsplit(self._url)
        url = urlunsplit(parts._replace(path=parts.path.rstrip("/") + "/seq"))
        try:
            with urlopen(url, timeout=_TIMEOUT) as answer:
                return int(answer.read().decode().strip() or 0) + 1
        except (URLError, OSError, ValueError):  # it does not have to say
            return 1

    def request(self, caption: Cue, seq: int) -> Request:
        """The text as it is."""
        return _posting(_with(self._url, seq=str(seq), lang=self._language), caption.text + "\n")


class YouTube:
    """A live stream's caption ingestion URL.

    Args:
        url: as YouTube gives it.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def first(self) -> int:
        """Numbers start over with every program."""
        return 1

    def request(self, caption: Cue, seq: int) -> Request:
        """The time in UTC, then the text."""
        time = datetime.fromtimestamp(caption.when, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        return _posting(_with(self._url, seq=str(seq)), f"{time}\n{caption.text}\n")


def zoom_language(language: str) -> str:
    """Zoom's name of a language, such as ``de-DE``.

    Raises:
        OptionError: the language is not known.
    """
    canonical = parse_language(language).canonical
    code, _, region = canonical.partition("-")
    return _ZOOM.get(canonical) or (canonical if region else _ZOOM.get(code, f"{code}-{code.upper()}"))


def service(target: str, language: str) -> CaptionService:
    """The service of a target such as ``zoom:https://...`` or ``youtube:https://...``.

    Raises:
        OptionError: it is none of these.
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
    """Sends the final captions of one language to a service, and gives every event on to another writer.

    In front of it a `redraft.captions.formats.rows.RowsWriter` pushes complete lines, long before an utterance ends.

    Args:
        writer: where events go as well; what could not be delivered is written there as a failure.
        service: what they are sent to.
        language: whose captions are sent.
        patience: how long a caption is tried.
        pace: the least seconds between two captions.
        clock: the time in seconds since 1970.
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
        #: How many captions could not be delivered.
        self.given_up = 0
        self._queue: queue.SimpleQueue[Cue | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="redraft-push", daemon=True)
        self._thread.start()

    def write(self, event: Event) -> None:
        """Write the event, and send it if it is a final caption of the language."""
        with self._lock:
            self.writer.write(event)
        if not (isinstance(event, Caption) and event.final and event.language == self._language):
            return
        if text := printable(event.text).strip():
            self._queue.put(Cue(text, self._clock()))

    def close(self) -> None:
        """Send what is still waiting, then close the other writer."""
        self._queue.put(None)
        self._thread.join()
        self.writer.close()

    def _run(self) -> None:
        seq = self._service.first()
        while (caption := self._queue.get()) is not None:
            if problem := self._delivered(self._service.request(caption, seq)):
                self.given_up += 1
                with self._lock:
                    self.writer.write(Failure(f"a caption could not be pushed and was given up: {problem}"))
            # A number that was given up may have arrived all the same, so it is never used for another caption.
            seq += 1
            time.sleep(self._pace)

    def _delivered(self, request: Request) -> str:
        """Send a caption; why it could not be delivered, or nothing."""
        waits = self._patience.waits()
        while True:
            try:
                with urlopen(request, timeout=_TIMEOUT):
                    return ""
            except HTTPError as error:
                problem = f"the service answered {error.code}"
                error.close()
            except (URLError, OSError) as error:
                problem = str(getattr(error, "reason", error))
            wait = next(waits, None)
            if wait is None:
                return problem
            time.sleep(wait)


def _with(url: str, **more: str) -> str:
    """A URL with further parameters, in place of any that it has of the same names."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in more]
    return urlunsplit(parts._replace(query=urlencode([*kept, *more.items()])))


def _posting(url: str, body: str) -> Request:
    return Request(url, body.encode(), {"Content-Type": "text/plain; charset=utf-8"}, method="POST")
