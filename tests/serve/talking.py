"""Messages of tests to a server, expected responses, and waiting."""

from __future__ import annotations

from typing import Any

from redraft.captions.events import Update
from redraft.serve.sessions.cells import Key
from redraft.serve.sessions.live import LiveSession
from tests.serve.fakes import alone
from tests.serve.servers import Running, Socket


def say(socket: Socket, *texts: str, utterance: str = "1", final: bool = True, first: int = 0) -> None:
    """An utterance that grows."""
    for seq, text in enumerate(texts, first):
        last = final and seq == first + len(texts) - 1
        socket.say("update", utterance=utterance, seq=seq, text=text, final=last, time=float(seq))


def finals(messages: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(each["utterance"], each["language"], each["text"]) for each in messages if each["type"] == "final"]


def expected(text: str, target: str = "de") -> str:
    return alone(1, [Update("1", 0, text, True)], target)[0].text


def hidden_in(session: LiveSession) -> set[Key]:
    """The translations that are hidden."""
    cells = (each for utterance in session.transcript.utterances.values() for each in utterance.keyed())
    return {key for key, cell in cells if cell.hidden and key[1] in session.targets}


def all_given_back(server: Running) -> bool:
    scheduler = server.engine.scheduler
    return scheduler.lanes == 0 and scheduler.pool.lent == 0
