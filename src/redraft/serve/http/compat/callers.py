"""Callers of the imitated APIs; requests of one utterance share a lane, so the previous output is the next draft."""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from redraft.captions.align import in_common
from redraft.captions.events import Caption, Failure, Update
from redraft.captions.formats.read import lines_of
from redraft.captions.sentence import as_sentence, ends_sentence
from redraft.decoding.types import common_prefix
from redraft.protocol import Wanted
from redraft.protocol.codes import Refused
from redraft.serve.engine.admission import Exchange
from redraft.serve.sessions.hub import Hub

#: Minimum share of the shorter text that must also be in the other one for a revision.
_SHARE = 0.6
#: A text that keeps less than this share of the earlier text's units is not a revision.
_SHRUNK = 0.5
#: Maximum number of units compared after the common prefix.
_COMPARED = 200
#: Number of units by which a revision may shift the text after it.
_MOVED = 4


def likeness(older: str, newer: str) -> float:
    """Return how likely ``newer`` continues ``older``.

    The result is the share of the shorter text's units that both texts have, or 0 if it is below the threshold for a
    revision.  Units are words, and characters in scripts without letter case.  Case, punctuation and spaces are
    ignored.
    """
    before, after = list(units(older)), list(units(newer))
    shorter = min(len(before), len(after))
    if not shorter or len(after) < _SHRUNK * len(before):
        return float(older.strip() == newer.strip())
    same = common_prefix(before, after)
    end = min(shorter + _MOVED, same + _COMPARED)
    share = min(1.0, (same + in_common(before[same:end], after[same:end])) / min(shorter, end))
    return share if share >= _SHARE else 0.0


def units(text: str) -> Iterator[str]:
    """Yield the words of a text, and the characters of scripts without letter case."""
    word = ""
    for character in text.casefold():
        category = unicodedata.category(character)
        if category[0] in "LNM" and category != "Lo":
            word += character
            continue
        if word and character in "'’":
            continue
        if word:
            yield word
            word = ""
        if category == "Lo":
            yield character
    if word:
        yield word


@dataclass(slots=True)
class _Utterance:
    """An utterance that may still grow: its newest text and the time at which that arrived."""

    name: str
    text: str
    seq: int
    touched: float
    grown: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The utterance to which a text belongs.

    Attributes:
        lane: index of the lane that translates it.
        seq: index of the text in its utterance.
        whole: whether to translate it as a complete text rather than as an incomplete sentence.
    """

    lane: int
    utterance: str
    seq: int
    whole: bool


class Continuation:
    """Recent utterances of one caller in one language pair.

    Args:
        most: maximum number of open utterances; each has a lane.
        quiet: after this many seconds without a text, a new utterance takes over an utterance's lane even if another
            lane could be opened.
    """

    def __init__(self, most: int = 4, quiet: float = 5.0) -> None:
        self._most, self._quiet = most, quiet
        self._open: dict[int, _Utterance] = {}
        self._names = map(str, count(1))
        #: Whether the caller has let a sentence grow and then ended it with sentence-final punctuation.
        self._ends_marked = False
        self._latest: _Utterance | None = None

    def place(self, text: str, now: float, besides: Collection[int] = ()) -> Place:
        """Assign a text to an utterance, and remember it as that utterance's newest text.

        A text counts as complete if it ends with sentence-final punctuation, if the caller repeats it unchanged, or if
        the caller has not been seen to punctuate the ends of its sentences.

        Args:
            besides: lanes of other texts of the same request, which this text cannot continue.
        """
        lane = self._continued(text, besides)
        if lane is None:
            lane = self._lane(now, besides)
            self._begin(lane, text, now)
            repeated = False
        else:
            repeated = self._grow(self._open[lane], text, now)
        utterance = self._latest = self._open[lane]
        whole = repeated or not self._ends_marked or ends_sentence(text)
        return Place(lane, utterance.name, utterance.seq, whole)

    def without(self, lane: int) -> None:
        """Drop a lane that the server did not admit, and open no more lanes."""
        self._open.pop(lane, None)
        self._most = max(1, len(self._open))

    def _continued(self, text: str, besides: Collection[int]) -> int | None:
        """Return the lane of the most similar open utterance, the newest of equals; None if none is similar."""
        found = [
            (share, utterance.touched, lane)
            for lane, utterance in self._open.items()
            if lane not in besides and (share := likeness(utterance.text, text))
        ]
        return max(found)[-1] if found else None

    def _lane(self, now: float, besides: Collection[int]) -> int:
        """Return a lane for a new utterance: one silent for ``quiet`` seconds, else a new one, else the oldest one."""
        by_age = sorted(self._open, key=lambda lane: (lane in besides, self._open[lane].touched))
        if by_age and (len(by_age) == self._most or self._open[by_age[0]].touched < now - self._quiet):
            return by_age[0]
        return len(self._open)

    def _begin(self, lane: int, text: str, now: float) -> None:
        last = self._latest
        if last is not None and last.grown and not ends_sentence(last.text):
            self._ends_marked = False
        self._open[lane] = _Utterance(next(self._names), text, 0, now)

    def _grow(self, utterance: _Utterance, text: str, now: float) -> bool:
        """Record the newest text of an utterance; return whether it is unchanged."""
        repeated = utterance.text == text
        if not repeated:
            self._ends_marked = self._ends_marked or (ends_sentence(text) and not ends_sentence(utterance.text))
        # A repeated text is complete, so missing punctuation proves nothing about the caller.
        utterance.text, utterance.grown = text, not repeated
        utterance.seq += 1
        utterance.touched = now
        return repeated


@dataclass(frozen=True, slots=True)
class Caller:
    """A client with its language pair; requests of different callers never share an utterance.

    Attributes:
        marks: what identifies the client: API key, address, user agent, and what an API adds.
        address: network address, for the limit on sessions per address.
    """

    marks: tuple[str, ...]
    address: str
    target: str
    source_language: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A translation.

    Attributes:
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
    """A lane of a caller; its exchange is opened on first use."""

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
    """All callers of the imitated APIs, on the server's event loop; exchanges count as sessions."""

    def __init__(self, hub: Hub, clock: Callable[[], float] = time.monotonic) -> None:
        self.hub, self._clock = hub, clock
        self._known: dict[Caller, _Known] = {}
        hub.swept.append(self.sweep)

    async def replies(self, caller: Caller, texts: Sequence[str], gone: Callable[[], Awaitable[bool]]) -> list[Reply]:
        """Translate the texts of a request in order.  Raises `Refused` if it is impossible or the client has gone."""
        besides: set[int] = set()
        known = self._known.setdefault(caller, _Known())
        known.touched = self._clock()
        known.busy += 1
        try:
            return [await self._lines(caller, known, text, besides, gone) for text in texts]
        finally:
            known.busy -= 1
            if not known.busy and not known.exchanges:  # nothing was admitted
                self._known.pop(caller, None)

    async def _lines(
        self, caller: Caller, known: _Known, text: str, besides: set[int], gone: Callable[[], Awaitable[bool]]
    ) -> Reply:
        """Translate a text line by line: captioning tools send several sentences, and want as many lines back."""
        lines = [(await self._one(caller, known, line, besides, gone), behind) for line, behind in lines_of(text)]
        return Reply(
            "".join(reply.text + behind for reply, behind in lines),
            any(reply.cut for reply, _ in lines),
            sum(reply.read for reply, _ in lines),
            sum(reply.written for reply, _ in lines),
        )

    async def _one(
        self, caller: Caller, known: _Known, text: str, besides: set[int], gone: Callable[[], Awaitable[bool]]
    ) -> Reply:
        if not text:
            return Reply("")
        await self.hub.posts.turn("\n".join(caller.marks))
        self.hub.admission.check_working()
        known.touched = self._clock()
        for again in (False, True):
            place = known.continuation.place(text, known.touched, besides)
            lane = known.lanes.setdefault(place.lane, _Lane())
            async with lane.lock:
                if await gone():
                    raise Refused("stale", "the caller has gone")
                try:
                    exchange = lane.exchange = lane.exchange or await self.hub.exchanges.keep(
                        _wanted(caller), caller.address
                    )
                except Refused as refused:
                    if again or refused.code not in ("capacity", "limit") or not known.exchanges:
                        raise
                    known.continuation.without(place.lane)  # make do with the lanes that are open
                else:
                    besides.add(place.lane)
                    return await self._ask(exchange, place, text)
        raise AssertionError("the second time it is translated or refused")

    async def _ask(self, exchange: Exchange, place: Place, text: str) -> Reply:
        # Never final: the caller may still revise a complete sentence, and its translation is then the draft.
        source = as_sentence(text, self.hub.service.vocabulary.final_mark) if place.whole else text
        (found,) = (await exchange.ask(Update(place.utterance, place.seq, source))).values()
        captions = [event for event in found if isinstance(event, Caption)]
        failures = [event for event in found if isinstance(event, Failure)]
        if not captions:
            raise Refused("translation", failures[0].message if failures else "the text has no translation")
        (state,) = (each.state for each in exchange.lanes.values())
        return Reply(captions[-1].text, captions[-1].cut, len(state.prompt), len(state.output))

    def sweep(self) -> None:
        """Forget callers that have sent nothing for ``keep_seconds``."""
        late = self._clock() - self.hub.settings.keep_seconds
        for caller, known in list(self._known.items()):
            if known.touched < late and not known.busy:
                del self._known[caller]
                for exchange in known.exchanges:
                    self.hub.exchanges.close(exchange)


def _wanted(caller: Caller) -> Wanted:
    # Hide nothing: the caller takes the reply for the complete translation.
    return Wanted(targets=(caller.target,), source_language=caller.source_language, agree=1)
