"""Callers of the imitated APIs; requests of one utterance share a line, so the previous output is the next draft."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from redraft.captions.events import Caption, Failure, Update
from redraft.captions.formats.read import printable
from redraft.captions.source import RAW
from redraft.captions.stabilise import OFF
from redraft.serve.compat.continuation import Continuation, Place
from redraft.serve.exchange import Exchange
from redraft.serve.hub import Hub
from redraft.serve.protocol import Wanted
from redraft.serve.refusals import Refused


@dataclass(frozen=True, slots=True)
class Caller:
    """A client with its language pair; requests of different callers never share an utterance.

    Attributes:
        marks: what identifies the client: API key, address, user agent, and what an API adds.
        address: network address, for the limit on sessions per address.
        target: canonical tag of the target language.
        source: canonical tag of the source language.
    """

    marks: tuple[str, ...]
    address: str
    target: str
    source: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A translation.

    Attributes:
        text: the translation.
        cut: whether it was cut off before the model ended it.
        read: tokens of the prompt.
        written: tokens of the translation.
    """

    text: str
    cut: bool = False
    read: int = 0
    written: int = 0


class Newest:
    """A last-in, first-out lock: the newest text of an utterance goes first, since older ones are out of date."""

    def __init__(self) -> None:
        self._held = False
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def free(self) -> bool:
        """Whether the lock is free."""
        return not self._held

    async def __aenter__(self) -> None:
        if not self._held:
            self._held = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._hand_over()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._hand_over()

    def _hand_over(self) -> None:
        while self._waiting:
            if not (turn := self._waiting.pop()).done():
                turn.set_result(None)
                return
        self._held = False


@dataclass(slots=True)
class _Lane:
    """A line of a caller; its exchange is opened on first use."""

    lock: Newest = field(default_factory=Newest)
    exchange: Exchange | None = None


@dataclass(slots=True)
class _Known:
    """State of one caller."""

    continuation: Continuation = field(default_factory=Continuation)
    lanes: dict[int, _Lane] = field(default_factory=dict)
    touched: float = 0.0
    #: Requests in progress.
    busy: int = 0

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges that are open."""
        return [lane.exchange for lane in self.lanes.values() if lane.exchange is not None]


class Callers:
    """All callers of the imitated APIs.  Use it on the server's event loop only.

    Args:
        hub: admits and translates; exchanges count towards its limit on sessions.
        clock: returns the time in seconds.
    """

    def __init__(self, hub: Hub, clock: Callable[[], float] = time.monotonic) -> None:
        self._hub, self._clock = hub, clock
        self._known: dict[Caller, _Known] = {}
        hub.swept.append(self.sweep)

    async def translate(self, caller: Caller, texts: Sequence[str], gone: Callable[[], Awaitable[bool]]) -> list[Reply]:
        """Translate the texts of one request in order.

        Args:
            caller: the client and its languages.
            texts: the texts.
            gone: returns whether the client has disconnected.

        Raises:
            Refused: the server is full or a limit is reached, a text cannot be translated, or the client has
                disconnected.
        """
        besides: set[int] = set()
        known = self._of(caller)
        known.busy += 1
        try:
            return [await self._one(caller, known, printable(text).strip(), besides, gone) for text in texts]
        finally:
            known.busy -= 1
            if not known.busy and not known.exchanges:  # nothing was admitted
                self._known.pop(caller, None)

    async def _one(
        self, caller: Caller, known: _Known, text: str, besides: set[int], gone: Callable[[], Awaitable[bool]]
    ) -> Reply:
        if not text:
            return Reply("")
        while wait := self._hub.posts.take("\n".join(caller.marks)):
            await asyncio.sleep(wait)
        self._hub.admission.check_working()
        known.touched = self._clock()
        for again in (False, True):
            place = known.continuation.place(text, known.touched, besides)
            lane = known.lanes.setdefault(place.line, _Lane())
            async with lane.lock:
                if await gone():
                    raise Refused("stale", "the caller has gone")
                try:
                    exchange = lane.exchange = lane.exchange or await self._hub.exchanges.keep(
                        _wanted(caller), caller.address
                    )
                except Refused as refused:
                    if again or refused.code not in ("capacity", "limit") or not known.exchanges:
                        raise
                    known.continuation.without(place.line)  # make do with the lines that are open
                else:
                    besides.add(place.line)
                    return await self._ask(exchange, place, text)
        raise AssertionError("the second time it is translated or refused")

    async def _ask(self, exchange: Exchange, place: Place, text: str) -> Reply:
        # Never final: the caller may still revise a complete sentence, and its translation is then the draft.
        source = self._hub.as_sentence(text) if place.whole else text
        (found,) = (await self._hub.exchanges.ask(exchange, Update(place.utterance, place.seq, source))).values()
        captions = [event for event in found if isinstance(event, Caption)]
        failures = [event for event in found if isinstance(event, Failure)]
        if not captions:
            raise Refused("translation", failures[0].message if failures else "the text has no translation")
        (count,) = (each.translation for each in exchange.lanes.values())
        return Reply(captions[-1].text, captions[-1].cut, len(count.prompt), len(count.output))

    def _of(self, caller: Caller) -> _Known:
        known = self._known.setdefault(caller, _Known())
        known.touched = self._clock()
        return known

    def sweep(self) -> None:
        """Forget callers that have sent nothing for ``keep_seconds``."""
        late = self._clock() - self._hub.settings.keep_seconds
        for caller, known in list(self._known.items()):
            if known.touched < late and not known.busy:
                del self._known[caller]
                for exchange in known.exchanges:
                    self._hub.exchanges.close(exchange)


def _wanted(caller: Caller) -> Wanted:
    # Hide nothing: the caller takes the reply for the complete translation.
    return Wanted(targets=(caller.target,), source=caller.source, mask_margin=OFF, source_policy=RAW)
