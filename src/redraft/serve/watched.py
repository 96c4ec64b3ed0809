"""The viewers' side of a session, on any replica."""

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
        name: its public name.
        begin: the request that started it.
        transcript: its captions.
        delivery: its connections here.
        readers: number of readers of the growing transcript.
        over: called when it has ended.
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
        """Whether more captions may come, so that it keeps its room from others on this replica."""

    @property
    def ended(self) -> bool:
        """Whether there is nothing to end here."""

    def end(self) -> None:
        """End the session: no more updates will come."""

    def watch(self, viewer: Outbox) -> None:
        """Add a viewer, and send the captions so far."""

    def detach(self, viewer: Outbox) -> None:
        """Remove a connection that has ended."""

    def read(self, form: str, targets: Sequence[str]) -> AsyncIterator[str]:
        """Yield the transcript as it grows, see `Transcript.live`."""
