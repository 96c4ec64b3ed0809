"""The viewers' side of a session, on any replica."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence

from redraft.serve.delivery import Delivery, Outbox
from redraft.serve.protocol import Begin
from redraft.serve.transcript import Transcript


class Watched(ABC):
    """A session of this replica (`LiveSession`) or of another one (`redraft.serve.fanout.mirror.Mirror`).

    Attributes:
        name: its public name.
        begin: the request that started it.
        transcript: its captions.
        delivery: its connections here.
        readers: number of readers of the growing transcript.
        ended: whether it takes no more updates, or cannot be ended here.
        over: called when it has ended.
    """

    name: str
    begin: Begin
    transcript: Transcript
    delivery: Delivery
    readers: int
    ended: bool
    over: Callable[[], None] | None

    @property
    def targets(self) -> tuple[str, ...]:
        """The target languages."""
        return self.transcript.targets

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether it has ended and everything is translated."""

    @property
    @abstractmethod
    def in_use(self) -> bool:
        """Whether more captions may come, so that it keeps its room from others on this replica."""

    @abstractmethod
    def end(self) -> None:
        """End the session: no more updates will come."""

    @abstractmethod
    def detach(self, outbox: Outbox) -> None:
        """Remove a connection that has ended."""

    @property
    def audience(self) -> int:
        """Number of viewers here, readers of the growing transcript included."""
        return len(self.delivery.viewers) + self.readers

    def watch(self, viewer: Outbox) -> None:
        """Add a viewer, and send the captions so far."""
        self.delivery.watch(viewer)
        if self.done:
            self.delivery.say_done(viewer)

    async def read(self, form: str, targets: Sequence[str]) -> AsyncIterator[str]:
        """Yield the transcript as it grows, see `Transcript.live`."""
        self.readers += 1
        try:
            async for piece in self.transcript.live(form, targets):
                yield piece
        finally:
            self.readers -= 1
