"""Clients that leave at random moments: all their updates are in the transcript as final captions."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence

import pytest

from redraft import deadlines
from redraft.captions.events import Update
from redraft.decoding.types import Score
from redraft.engine import stream
from tests.serve.fakes import CachedModel
from tests.serve.servers import Running, running
from tests.serve.talking import expected, say
from tests.waiting import eventually

MOMENTS = 20 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 2
WORDS = "we saw her duck under the table".split()


def slow(_: Sequence[Score]) -> bool:
    """A pass that takes a while."""
    time.sleep(0.02)
    return False


def transcript(server: Running, name: str) -> list[str]:
    return server.ask(f"/v1/sessions/{name}/transcript?language=de").text.splitlines()


@pytest.mark.parametrize("leave", ["close", "drop", "end"])
@pytest.mark.parametrize("moment", range(MOMENTS))
@pytest.mark.parametrize("broken", [lambda _: False, slow], ids=["fast", "slow"])
def test_every_word_is_in_transcript(broken: Callable[[Sequence[Score]], bool], moment: int, leave: str) -> None:
    """Whatever the client has sent, of several utterances at a time."""
    chance = random.Random(f"{moment} {leave}")
    texts: dict[str, str] = {}
    with (
        running(CachedModel(1, broken=broken), keep_seconds=0.2, updates_per_second=1000) as server,
        server.socket(close_timeout=1) as socket,
    ):
        started = socket.start("de", method="ar")
        name, session = started["session"], server.hub.owned(started["token"])
        for seq in range(chance.randint(1, 40)):
            utterance = str(seq // 8 + chance.randrange(2))
            texts[utterance] = f"{texts.get(utterance, '')} {chance.choice(WORDS)}".strip()
            say(socket, texts[utterance], utterance=utterance, first=seq, final=False)
        if leave == "end":
            socket.say("end")
            socket.until("done")
        else:
            eventually(lambda: {each: update.text for each, update in session.stream.open.items()} == texts)
            if leave == "close":
                socket.connection.close()
            else:
                socket.connection.socket.close()
        eventually(lambda: name not in server.hub.sessions)
        assert sorted(transcript(server, name)) == sorted(map(expected, texts.values()))


def test_back_in_time(server: Running) -> None:
    """An utterance goes on if its client comes back within `keep_seconds`."""
    with server.socket() as socket:
        started = socket.start("de", method="ar")
        say(socket, "we saw", final=False)
        socket.until("partial")
    with server.socket() as socket:
        assert socket.start("de", method="ar", token=started["token"])["resumed"]
        say(socket, "we saw her duck", first=1)
        assert socket.until("final")[-1]["text"] == expected("we saw her duck")


def test_back_while_it_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that comes back too late gets a session that takes its updates."""
    monkeypatch.setattr(deadlines, "STUCK", 60.0)
    with running(keep_seconds=0) as server:
        with server.socket() as socket:
            token = socket.start("de", method="ar")["token"]
            session = server.hub.owned(token)
            say(socket, "we saw", final=False)
            socket.until("partial")
            session.stream.add(Update("another", 0, "", final=True), ["de"])  # never answered
        eventually(lambda: session.left is not None and not session.done)
        with server.socket() as socket:
            assert socket.start("de", method="ar", token=token)["resumed"] is False
            say(socket, "we saw her duck", first=1)
            assert socket.until("final")[-1]["text"] == expected("we saw her duck")


def test_open_utterances_are_bounded(server: Running) -> None:
    with server.socket() as socket:
        session = server.hub.owned(socket.start("de", method="ar")["token"])
        for number in range(stream.MOST_OPEN + 5):
            say(socket, "we saw", utterance=str(number), final=False)
        eventually(lambda: str(number) in session.stream.open)
        assert len(session.stream.open) == stream.MOST_OPEN
