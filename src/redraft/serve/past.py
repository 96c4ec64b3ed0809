"""Transcripts of sessions that are over, kept in memory for a while so that they can still be downloaded."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from redraft.serve.protocol import Begin
from redraft.serve.transcript import Transcript

#: Maximum number of transcripts, and of bytes of all of them, that are kept.
MOST, MOST_BYTES = 1000, 256_000_000
#: Bytes of a caption besides its texts, about.
_CAPTION = 500


@dataclass(frozen=True, slots=True)
class Past:
    """A session that is over.

    Attributes:
        name: its public name.
        begin: the request that started it.
        transcript: its captions.
        bytes: its approximate size in memory.
        until: when it is dropped, in seconds of the monotonic clock.
    """

    name: str
    begin: Begin
    transcript: Transcript
    bytes: int
    until: float


class PastSessions:
    """The transcripts of past sessions, up to `MOST` and `MOST_BYTES`; beyond that, the oldest are dropped.

    Args:
        seconds: how long each is kept; 0 keeps none.
        clock: the time in seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._past: dict[str, Past] = {}
        self._bytes = 0

    def keep(self, name: str, begin: Begin, transcript: Transcript) -> None:
        """Keep the transcript of a session that is forgotten, if it has captions."""
        self.drop(name)
        size = sum(_CAPTION + len((each.text + each.source).encode()) for each in transcript.kept)
        if self._seconds and size:
            self._past[name] = Past(name, begin, transcript, size, self._clock() + self._seconds)
            self._bytes += size
        self.sweep()

    def drop(self, name: str) -> None:
        """Drop the transcript of a session, which may have started again."""
        if past := self._past.pop(name, None):
            self._bytes -= past.bytes

    def find(self, name: str) -> Past | None:
        """Return a past session by its public name."""
        return self._past.get(name)

    def in_room(self, room: str) -> Past | None:
        """Return the latest past session of a room."""
        return next((each for each in reversed(self._past.values()) if each.begin.room == room), None)

    def sweep(self) -> None:
        """Drop what has been kept long enough, or is too much."""
        now = self._clock()
        for past in list(self._past.values()):  # the oldest first
            if past.until > now and len(self._past) <= MOST and self._bytes <= MOST_BYTES:
                return
            self.drop(past.name)
