"""A mirror shows what the log has, whatever it missed of it, and whatever happened to Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.conftest import RedisServer, replica
from fanout.sessions import begin, fanout_of, watch
from redraft import protocol
from redraft_fanout.feed import Mirror
from redraft_fanout.store import TROUBLE, Entry, Position
from tests.serve.servers import Running
from tests.serve.sessions.watching import ROOM, WATCH, talk
from tests.serve.talking import expected, finals, say
from tests.waiting import eventually

ABOUT = protocol.Begin(targets=("de",)).wire()


class Log:
    """What Redis has of one session."""

    def __init__(self) -> None:
        self.entries = list[Entry]()

    async def last(self, name: str) -> Position | None:
        return self.entries[-1].position if self.entries else None

    async def read(self, name: str, after: Position) -> list[Entry]:
        return [each for each in self.entries if each.position > after]


def ended(utterance: str, *, well: bool) -> protocol.Final | protocol.Error:
    if well:
        return protocol.Final(utterance=utterance, seq=1, language="de", text=f"Satz {utterance}")
    return protocol.Error(code="translation", message="no", utterance=utterance, language="de", final=True)


#: A log that is written again: the clock of Redis, and of each entry the utterance, whether it was translated, and
#: whether the mirror hears of it at once.
WRITTEN = st.tuples(
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from("1234"), st.booleans(), st.booleans()), unique_by=lambda each: each[0]),
)


@given(st.lists(WRITTEN, min_size=1, max_size=5))
def test_mirror(written: Sequence[Any]) -> None:
    async def work() -> None:
        log, shown = Log(), set[str]()
        mirror = Mirror("1", log)  # type: ignore[arg-type]
        for clock, entries in written:
            position = Position(clock, 0)
            if log.entries and position <= log.entries[-1].position:
                log.entries.clear()  # Redis has come back empty: otherwise it would take no earlier position
            log.entries.append(Entry(position, ABOUT, first=True))
            for utterance, well, heard in entries:
                position = position.next
                message = ended(utterance, well=well).wire()
                log.entries.append(Entry(position, message))
                shown |= {utterance} if well else set()
                if heard:
                    await mirror.take(f"{position} {message}")
            await mirror.take(f"{position} ")
            assert {each.utterance for each in mirror.transcript.finals} == shown

    asyncio.run(work())


def test_room_after_failed_look_up(
    redis: RedisServer, speakers: Running, viewers: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that moves while Redis does not answer is shown once it does."""
    shared = fanout_of(viewers).shared
    session, failed, answering = shared.session, list[str](), False

    async def asked(room: str) -> str | None:
        if answering:
            return await session(room)
        failed.append(room)
        raise TROUBLE[0]

    with replica(redis) as others, viewers.socket(WATCH) as viewer:
        with speakers.socket() as socket:
            talk(socket, "we saw")
            assert finals(viewer.until("final")) == [("1", "de", expected("we saw"))]
        monkeypatch.setattr(shared, "session", asked)
        with others.socket() as socket:
            name = talk(socket, "her duck")
            eventually(lambda: failed)
            answering = True
            assert finals(viewer.until("final")) == [("1", "de", expected("her duck"))]
            assert viewers.ask(f"/v1/rooms/{ROOM}").json["session"] == name


def test_clock_goes_back(
    redis: RedisServer, speakers: Running, viewers: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis comes back empty, on a machine whose clock is behind the one before."""

    async def earlier() -> tuple[int, int]:
        return 1_000, 0

    with speakers.socket() as socket:
        name = begin(socket)
        say(socket, "we saw", utterance="1")
        socket.until("final")
        with watch(viewers, name) as before:
            before.until("final")
            monkeypatch.setattr(fanout_of(speakers)._store.redis, "time", earlier)
            redis.ask("FLUSHALL")
            for utterance in "23":
                say(socket, "her duck", utterance=utterance)
            assert finals(before.until("final") + before.until("final")) == [
                (utterance, "de", expected("her duck")) for utterance in "23"
            ]
        with watch(viewers, name) as late:
            assert len(finals([message for _ in "123" for message in late.until("final")])) == 3


def test_offer_after_redis_was_emptied(
    redis: RedisServer, speakers: Running, viewers: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redraft_fanout.fanout._LOOK", 0.1)
    eventually(lambda: viewers.ask("/v1/offer").status == 200)
    redis.ask("FLUSHALL")
    eventually(lambda: viewers.ask("/v1/offer").status == 200)
