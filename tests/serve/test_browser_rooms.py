"""Viewers and overlays of a room, and what they see when captions are paused, hidden or corrected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.serve.browsers import expect, final, finals, until, wait_for_finals
from tests.serve.servers import Running, Socket
from tests.serve.test_faults import eventually


def speak(socket: Socket, *texts: str, first: int = 0) -> None:
    for number, text in enumerate(texts, first):
        socket.say("update", utterance=str(number), seq=0, text=text, final=True)


def test_next_talk(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/watch/hall-1")
    assert page.url.endswith("/watch?room=hall-1")
    expect(page.locator("#state")).to_have_text("Not started")
    expect(page.locator("#notice")).to_contain_text("Waiting for the talk to start…")
    expect(page.locator("#problem")).not_to_be_visible()
    page.evaluate("window.here = true")
    for targets, texts in ((("de", "ar"), ("we saw", "her duck")), (("ja", "de"), ("it was",))):
        with server.socket() as socket:
            socket.start(*targets, room="hall-1")
            speak(socket, *texts)
            wait_for_finals(page, targets[0], len(texts))
            expect(page.locator(".utterance")).to_have_count(len(texts))
            expect(page.locator("#state")).to_have_text("Live")
            expect(page.locator("#notice")).not_to_be_visible()
            socket.say("end")
            expect(page.locator("#state")).to_have_text("Ended")
            expect(page.locator("#notice")).to_contain_text("Waiting for the next one in this room…")
            expect(page.locator(".utterance")).to_have_count(len(texts))  # what was shown stays
    assert page.evaluate("window.here")  # without a reload


def test_room_after_restart(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/watch?room=hall-1")
    with server.socket() as socket:
        socket.start("de", room="hall-1")
        speak(socket, "we saw")
        wait_for_finals(page, "de", 1)
        room = server.hub.rooms.find("hall-1")
        (viewer,) = room.viewers
        server.call(lambda: viewer.close(1012, "started anew"))
        eventually(lambda: room.viewers and viewer not in room.viewers)
        speak(socket, "her duck", first=1)
        wait_for_finals(page, "de", 2)
        expect(page.locator("#notice")).not_to_be_visible()


def test_language_of_next_talk(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/watch?room=hall-1&language=ja")
    overlay = visit("/overlay?room=hall-1&language=ja&clear=0")
    expect(page.locator("#state")).to_have_text("Not started")
    for targets, shown, text in ((("de", "ar"), "de", "we saw"), (("ja", "de"), "ja", "it was")):
        with server.socket() as socket:
            socket.start(*targets, room="hall-1")
            speak(socket, text)
            wait_for_finals(page, shown, 1)
            expect(page.locator(".cell:visible")).to_have_count(1)
            socket.say("end")
            expect(page.locator("#state")).to_have_text("Ended")
        if shown == "de":
            expect(page.locator("#problem")).to_contain_text("no captions in ja. It has de, ar")
            expect(overlay.locator("#problem")).to_contain_text("no captions in ja: language must be one of de, ar")
            expect(overlay.locator(".cell")).to_have_count(0)
    wait_for_finals(overlay, "ja", 1)
    expect(page.locator("#problem")).not_to_be_visible()


def test_overlay_of_room(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/overlay?room=hall-1&clear=0")
    until(page, "document.title.includes('waiting for the session')")
    for target, text in (("de", "we saw"), ("ja", "her duck")):
        with server.socket() as socket:
            socket.start(target, room="hall-1")
            speak(socket, text)
            wait_for_finals(page, target, 1)
            expect(page.locator(".cell")).to_have_count(1)
            socket.say("end")
            until(page, "document.title.includes('waiting for the next session')")


def test_operator(server: Running, visit: Callable[..., Any]) -> None:
    with server.socket() as socket:
        name = socket.start("de")["session"]
        watch, overlay = (visit(f"/{path}?session={name}&language=de") for path in ("watch", "overlay"))
        socket.say("update", utterance="0", seq=0, text="we saw")
        expect(watch.locator(".utterance")).to_have_count(1)
        socket.say("hide", utterance="0")
        expect(watch.locator(".utterance:visible")).to_have_count(0)
        socket.say("update", utterance="0", seq=1, text="we saw")
        socket.say("hide", utterance="0", hidden=False)
        expect(watch.locator(".utterance:visible")).to_have_count(1)
        socket.say("update", utterance="0", seq=2, text="we saw", final=True)
        speak(socket, "her duck", first=1)
        for page in (watch, overlay):
            wait_for_finals(page, "de", 2)
        before = finals(watch, "de")
        socket.say("correct", utterance="0", language="de", text="Wir sahen es")
        socket.say("hide", utterance="1")
        socket.say("pause")
        speak(socket, "it was", first=2)
        expect(watch.locator("#notice")).to_have_text("Captions are paused.")
        expect(watch.locator("#state")).to_have_text("Paused")
        until(overlay, "document.title.includes('paused')")
        for page in (watch, overlay):
            expect(page.locator(final("de")).first).to_have_text("Wir sahen es")
            wait_for_finals(page, "de", 1)
            expect(page.locator(".utterance:visible")).to_have_count(1)
            assert before[1] not in page.inner_text("body")
        socket.say("hide", utterance="1", hidden=False)
        for page in (watch, overlay):
            wait_for_finals(page, "de", 2)
            assert finals(page, "de") == ["Wir sahen es", before[1]]  # in its old place
        socket.say("pause", paused=False)
        for page in (watch, overlay):
            wait_for_finals(page, "de", 3)
        expect(watch.locator("#notice")).not_to_be_visible()


def test_invalid_address(server: Running, visit: Callable[..., Any]) -> None:
    width = "whole number from 16 to 80, the character cells of a line"
    with server.socket() as socket:
        name = socket.start("de")["session"]
        page = visit()
        for path, problem in (
            ("/watch?room=hall-1&language=nonsense", "language 'nonsense' is not known: use a BCP 47 tag"),
            ("/watch/Hall%201", "room must be 1 to 63 lower-case letters"),
            (f"/watch?session={name}&reading=1e2", width),
            ("/?reading=5", width),
        ):
            page.goto(server.url + path)
            expect(page.locator("#problem")).to_contain_text(problem)
