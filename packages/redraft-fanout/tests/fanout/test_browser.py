"""The pages of viewers on a server that serves viewers only, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fanout.conftest import RedisServer
from redraft.protocol import new_token, public_name
from tests.serve.browsers import expect, finals, wait_for_finals
from tests.serve.servers import Running
from tests.serve.talking import expected, say


@pytest.fixture
def server(viewers: Running) -> Running:
    """What is visited."""
    return viewers


def test_viewers_only(redis: RedisServer, speakers: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    page = visit(f"/watch?session={public_name(token)}", tolerated="404")
    overlay = visit("/overlay?room=hall-1&language=de&clear=0")
    expect(page.locator("#state")).to_have_text("Waiting")
    with speakers.socket() as socket:
        socket.start("de", token=token, room="hall-1", method="ar")
        say(socket, "we saw", utterance="1")
        wait_for_finals(page, "de", 1)
        expect(page.locator("#model")).to_contain_text("Translated by")
        redis.kill()
        say(socket, "her duck", utterance="2")
        socket.until("final")
        redis.start()
        wait_for_finals(page, "de", 2)
        assert finals(page, "de") == [expected("we saw"), expected("her duck")]
        expect(overlay.locator("body")).to_contain_text(expected("her duck"))
        socket.say("end")
        expect(page.locator("#state")).to_have_text("Ended")
