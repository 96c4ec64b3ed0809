"""A session of another replica as its viewers see it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from pydantic import ValidationError

from redraft.serve import protocol
from redraft.serve.delivery import Delivery
from redraft.serve.fanout.store import GONE, Position, Store, parse_news
from redraft.serve.transcript import Key, Transcript

log = logging.getLogger(__name__)


class Mirror:
    """State of a session that another replica translates.

    Attributes:
        name: name of the session.
        begin: its languages and room.
        transcript: see `LiveSession`.
        delivery: see `LiveSession`; it has no owner here.
        loaded: set once its log has been read.
        over: called when the session has ended.
        touched: time of the last request for it, or of its last viewer, in seconds of the monotonic clock.
        gone: whether the session has been forgotten.
        gaps: number of times that missed events were read from the log.
    """

    #: It cannot be ended here, and does not keep a room from others here.
    ended, in_use = True, False

    def __init__(self, name: str, store: Store) -> None:
        self.name, self._store = name, store
        self.begin = protocol.Begin(targets=("en",))
        self.transcript = Transcript(())
        self.delivery = Delivery(self.transcript)
        self.loaded = asyncio.Event()
        self.over: Callable[[], None] | None = None
        self.touched = time.monotonic()
        self.gone = False
        self.gaps = 0
        self._position = Position(0, 0)

    @property
    def done(self) -> bool:
        """Whether the session has ended and everything is translated."""
        return self.transcript.closed

    @property
    def targets(self) -> tuple[str, ...]:
        """The target languages."""
        return self.transcript.targets

    def end(self) -> None:
        """Do nothing: its own replica ends it."""

    def forget(self) -> None:
        """Close everything: the session has been forgotten."""
        self.gone = True
        self.transcript.close()
        self.delivery.close(1000, "the session is over")

    # From the log, and from news

    async def take(self, text: str | None) -> None:
        """Process a published message; missed ones before it, or those before None, are read from the log."""
        if text is None:
            await self._catch_up()
            return
        news = parse_news(text)
        if self.gone or news.position < self._position:  # already known, or from a replica that has lost the session
            return
        if news.message == GONE:
            self.forget()
            return
        message = _parse(news.message) if news.message else None
        passing = message is None or isinstance(message, protocol.Partial | protocol.Stats)
        if news.position > (self._position if passing else self._position.next):
            self.gaps += 1
            await self._catch_up()
        if message is not None and news.position == (self._position if passing else self._position.next):
            self._position = news.position
            self._apply(message)

    async def _catch_up(self) -> None:
        """Read new entries of the log."""
        while entries := await self._store.read(self.name, self._position):
            for entry in entries:
                self._position = entry.position
                if entry.first:
                    self.begin = protocol.Begin.model_validate_json(entry.message)
                    self.transcript.targets = self.begin.targets
                elif message := _parse(entry.message):
                    self._apply(message)
        self.loaded.set()

    def _apply(self, message: protocol.FromServer) -> None:
        """Apply an event of the session's own replica."""
        if isinstance(message, protocol.Partial):
            self._partial(message)
        elif isinstance(message, protocol.Final):
            self._final(message)
        elif isinstance(message, protocol.Hidden):
            self.delivery.hide((message.utterance, message.language), message.hidden)
        elif isinstance(message, protocol.Paused):
            self.delivery.pause(message.paused)
        elif isinstance(message, protocol.Stats):
            self.delivery.tell(message.wire(), "stats")
        elif isinstance(message, protocol.Error):
            self._error(message)
        elif isinstance(message, protocol.Done) and not self.done:
            self.transcript.close()
            self.delivery.done()
            if self.over:
                self.over()

    def _partial(self, message: protocol.Partial) -> None:
        key = message.utterance, message.language
        self._show(key)
        if key not in self.transcript:
            self.delivery.partial(protocol.caption_of(message), message.lag_ms)

    def _error(self, message: protocol.Error) -> None:
        if not message.final:
            self.delivery.tell(message.wire(), language=message.language)
            return
        key = message.utterance or "", message.language or ""
        self.delivery.failed(key, message)
        self.delivery.acknowledged(key)

    def _final(self, message: protocol.Final) -> None:
        """Show a final caption once; another text than before is a correction."""
        caption = protocol.caption_of(message)
        key = caption.utterance, caption.language
        self._show(key)
        if key not in self.transcript:
            self.transcript.begin(message.utterance, message.begun)
            self.delivery.final(caption, message.lag_ms)
        elif self.transcript.get(key) != caption:
            self.delivery.correct(caption)
        self.delivery.acknowledged(key)

    def _show(self, key: Key) -> None:
        """Unhide a caption, since published captions are visible."""
        if key in self.transcript.hidden:
            self.delivery.hide(key, False)


def _parse(text: str) -> protocol.FromServer | None:
    """Return the message in an event; None if it is invalid, for example of a later version."""
    try:
        return protocol.FROM_SERVER.validate_json(text)
    except ValidationError:
        log.warning("an event of another replica was not understood")
        return None
