"""Outboxes: a slow reader gets the newest captions, and the reason when it is disconnected."""

from __future__ import annotations

import asyncio

import pytest

from redraft.protocol import Frame
from redraft.serve.sessions.broadcast import Outbox, close_reason


def test_replaced_message_keeps_place() -> None:
    async def read() -> list[str]:
        outbox, heard = Outbox(8), []
        for number in range(12):  # two messages come for every one that is read
            for key in ("de", "ja"):
                outbox.put(Frame("partial", f"{key} {number}"), key)
            frame = await outbox.get()
            assert frame is not None
            heard.append(frame.text)
        return heard

    heard = asyncio.run(read())
    assert {message[:2] for message in heard} == {"de", "ja"}
    assert heard[0] == "de 0" and heard[1] == "ja 1"  # always the newest


@pytest.mark.parametrize("sentence", ["", "short", "a" * 200, "日" * 100, "a" + "日" * 100])
def test_close_reason(sentence: str) -> None:
    reason = close_reason(sentence)
    assert sentence.startswith(reason) and len(reason.encode()) <= 123
    assert reason == sentence or len(reason.encode()) > 120
    outbox = Outbox(8)
    outbox.close(1000, sentence)
    assert outbox.closing == (1000, reason)
