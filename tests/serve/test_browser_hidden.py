"""What the operator has hidden in the viewers' page and in the overlay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from redraft.protocol import new_token, public_name
from tests.serve.browsers import expect, final
from tests.serve.servers import Running, Socket
from tests.serve.talking import expected, say
from tests.waiting import eventually

TEXTS = ("we saw", "her duck", "it was")


def speak(socket: Socket, token: str, *targets: str) -> None:
    socket.start(*targets, token=token)
    for number, text in enumerate(TEXTS):
        say(socket, text, utterance=str(number))
        for _ in targets:
            socket.until("final")


@pytest.mark.parametrize("path", ["/watch?", "/overlay?clear=0&lines=5&"])
def test_hidden_while_away(server: Running, visit: Callable[..., Any], path: str) -> None:
    token = new_token()
    with server.socket() as socket:
        speak(socket, token, "de")
        page = visit(f"{path}session={public_name(token)}")
        expect(page.locator(final("de"))).to_have_text([expected(text) for text in TEXTS])
        live = server.hub.owned(token)

        def hide_while_away() -> None:
            for viewer in live.broadcast.viewers:
                viewer.close(1012, "cut")
            live.broadcast.viewers.clear()
            live.broadcast.hide(("1", "de"), True)

        server.call(hide_while_away)
        eventually(lambda: live.broadcast.audience == 1)
        expect(page.locator(final("de"))).to_have_text([expected(text) for text in (TEXTS[0], TEXTS[2])])


def test_original_of_hidden(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    with server.socket() as socket:
        speak(socket, token, "de", "ja")
        page = visit(f"/watch?session={public_name(token)}&language=en&language=de&language=ja")
        sources = page.locator(".cell.source.final")
        expect(sources).to_have_text(list(TEXTS))
        socket.say("hide", utterance="1", language="de")
        expect(page.locator(final("de"))).to_have_count(2)
        expect(sources).to_have_count(3)
        socket.say("hide", utterance="1")
        expect(sources).to_have_text([TEXTS[0], TEXTS[2]])
        socket.say("hide", utterance="1", language="ja", hidden=False)
        expect(sources).to_have_text(list(TEXTS))  # where it was


@pytest.mark.parametrize("path", ["/watch?", "/overlay?clear=0&lines=5&"])
def test_no_row_is_left(server: Running, visit: Callable[..., Any], path: str) -> None:
    """A row goes with all of its captions that are shown, and its speaker's name with it."""
    token = new_token()
    with server.socket() as socket:
        socket.start("de", "ja", token=token)
        for number, text in enumerate(TEXTS):
            socket.say("update", utterance=str(number), seq=0, text=text, final=True, speaker="Anna")
        page = visit(f"{path}session={public_name(token)}&language=de")
        rows = page.locator(".utterance:visible")
        expect(page.locator(final("de"))).to_have_count(3)
        expect(rows).to_have_count(3)
        socket.say("hide", utterance="1", language="de")
        expect(rows).to_have_count(2)
        socket.say("hide", utterance="1", hidden=False)
        expect(rows).to_have_count(3)


def test_lines_shown_again(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    with server.socket() as socket:
        speak(socket, token, "de")
        page = visit(f"/watch?session={public_name(token)}&reading=80")
        lines = [expected(text) for text in TEXTS]
        expect(page.locator(final("de"))).to_have_text(lines)
        socket.say("hide", utterance="1")
        expect(page.locator(final("de"))).to_have_text([lines[0], lines[2]])
        socket.say("hide", utterance="1", hidden=False)
        expect(page.locator(final("de"))).to_have_text(lines)
