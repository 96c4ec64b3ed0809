"""Somebody else's session, in the view for people and in the overlay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from redraft.serve.names import new_token, public_name
from tests.serve.browsers import CHROMIUM, until, wait_for_finals
from tests.serve.servers import Running, Socket

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (extra `browser`)")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
expect = sync_api.expect

ABSENT = "404"


def speak(socket: Socket, token: str, *texts: str) -> None:
    """Begin or go on with a session, and say something."""
    socket.start("de", "ar", token=token)
    for number, text in enumerate(texts):
        socket.say("update", utterance=f"{text} {number}", seq=0, text=text, final=True)


def test_a_session_is_waited_for(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    page = visit(f"/watch?session={public_name(token)}", tolerated=ABSENT)
    expect(page.locator("#state")).to_have_text("Waiting")
    expect(page.locator("#notice")).to_contain_text("captions appear as soon as it begins")
    expect(page.locator("#problem")).not_to_be_visible()
    with server.socket() as socket:
        speak(socket, token, "we saw", "her duck")
        wait_for_finals(page, "ar", 2)
        expect(page.locator("#state")).to_have_text("Live")
        expect(page.locator("#notice")).not_to_be_visible()
        socket.say("end")
        expect(page.locator("#state")).to_have_text("Ended")


def test_a_session_is_found_again_after_a_restart(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    with server.socket() as socket:
        speak(socket, token, "we saw")
        page = visit(f"/watch?session={public_name(token)}", tolerated=ABSENT)
        wait_for_finals(page, "de", 1)
        server.call(lambda: server.hub._forget(server.hub.owned(token)))
        expect(page.locator("#state")).to_have_text("Waiting")
    with server.socket() as socket:
        speak(socket, token, "her duck")
        wait_for_finals(page, "de", 2)
        expect(page.locator("#state")).to_have_text("Live")


def test_an_overlay_waits_and_shows_nothing(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    page = visit(f"/overlay?session={public_name(token)}&target=de", tolerated=ABSENT)
    until(page, "document.title.includes('waiting for the session')")
    assert page.inner_text("body").strip() == ""
    with server.socket() as socket:
        speak(socket, token, "we saw")
        wait_for_finals(page, "de", 1)
        assert page.title() == "Redraft: overlay, live"


def test_viewers_choose_their_languages(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    with server.socket() as socket:
        speak(socket, token, "we saw")
        page = visit(f"/watch?session={public_name(token)}")
        wait_for_finals(page, "ar", 1)
        expect(page.locator(".column:visible")).to_have_count(2)
        page.click("#languages [lang=de]")
        expect(page.locator(".column:visible")).to_have_count(1)
        page.click("#languages [lang=ar]")  # the last one stays
        assert page.get_attribute("#languages [lang=ar]", "aria-pressed") == "true"
        assert page.url.endswith("&target=ar")
        page.reload()
        wait_for_finals(page, "ar", 1)
        expect(page.locator(".column:visible .finals")).to_have_attribute("lang", "ar")
        page.click("#languages [lang=de]")
        expect(page.locator(".column:visible")).to_have_count(2)
        assert "target" not in page.url
