"""What viewers see of a session, whichever replica translates it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from redraft.serve.delivery import Delivery
from redraft.serve.outbox import Outbox
from redraft.serve.protocol import Begin
from redraft.serve.transcript import Transcript


class Watched(Protocol):
    """A session of this replica (`LiveSession`) or of another one (`redraft.serve.fanout.mirror.Mirror`).

    Attributes:
        name: what viewers call it.
        begin: what was asked for at its beginning.
        transcript, delivery: its captions, and who is connected to it here.
        readers: how many read the transcript while it grows.
        over: called when nothing more comes of it.
    """

    name: str
    begin: Begin
    transcript: Transcript
    delivery: Delivery
    readers: int
    over: Callable[[], None] | None

    @property
    def targets(self) -> tuple[str, ...]:
        """The target languages."""

    @property
    def done(self) -> bool:
        """Whether it has ended and everything is translated."""

    @property
    def in_use(self) -> bool:
        """Whether captions may still come of it, so that it keeps its room from others on this replica."""

    @property
    def ended(self) -> bool:
        """Whether there is nothing to end here."""

    def end(self) -> None:
        """No more updates will come."""

    def watch(self, viewer: Outbox) -> None:
        """Send to a viewer from now on, first what there is already."""

    def detach(self, viewer: Outbox) -> None:
        """A connection has ended."""

    def read(self, form: str, targets: Sequence[str]) -> AsyncIterator[str]:
        """The transcript while it grows, see `Transcript.live`."""
