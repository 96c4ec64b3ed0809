"""Sessions in the viewers' page and in the overlay, by name and by room, and lines that never change."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import pytest

from redraft.protocol import new_token, public_name
from tests.serve.browsers import expect, final, finals, play, session_of, until, wait_for_end, wait_for_finals
from tests.serve.servers import SECONDS, Running, Socket, running
from tests.serve.talking import expected
from tests.waiting import eventually

ABSENT = "404"
#: Keeps what was shown, if only for a moment, also within an element.
KEEP = """
window.shown = [];
const roots = [document];
const cells = () => roots.flatMap((root) => [...root.querySelectorAll('.cell')]);
const keeper = new MutationObserver(() => window.shown.push(cells().map((cell) => cell.textContent)));
const keep = (root) => keeper.observe(root, { childList: true, subtree: true, characterData: true });
keep(document);
const attach = Element.prototype.attachShadow;
Element.prototype.attachShadow = function (options) {
  roots.push(attach.call(this, options));
  keep(roots.at(-1));
  return roots.at(-1);
};
"""
VIEW = "document.querySelector('.view')"


def speak(socket: Socket, token: str, *texts: str) -> None:
    """Begin or go on with a session, and say something."""
    socket.start("de", "ar", token=token)
    for number, text in enumerate(texts):
        socket.say("update", utterance=f"{text[:20]} {number}", seq=0, text=text, final=True)


def test_a_session_is_waited_for(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    page = visit(f"/watch?session={public_name(token)}", tolerated=ABSENT)
    expect(page.locator("#state")).to_have_text("Waiting")
    expect(page.locator("#notice")).to_contain_text("Waiting for the session to start…")
    expect(page.locator("#problem")).not_to_be_visible()
    with server.socket() as socket:
        speak(socket, token, "we saw", "her duck")
        wait_for_finals(page, "ar", 2)
        expect(page.locator("#state")).to_have_text("Live")
        expect(page.locator("#notice")).not_to_be_visible()
        server.call(lambda: server.hub.forget(server.hub.owned(token), keep=False))  # as a restart does
        expect(page.locator("#state")).to_have_text("Waiting")
    with server.socket() as socket:
        speak(socket, token, "it was")
        wait_for_finals(page, "ar", 3)
        expect(page.locator("#state")).to_have_text("Live")
        socket.say("end")
        expect(page.locator("#state")).to_have_text("Ended")


def titles(page: Any) -> list[str]:
    """The languages that a viewer sees."""
    found: list[str] = page.locator(".cell:visible").evaluate_all("(cells) => cells.map((cell) => cell.lang)")
    return found


def test_choose_language(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    with server.socket() as socket:
        speak(socket, token, "we saw")
        page = visit(f"/watch?session={public_name(token)}", locale="ar-EG")
        wait_for_finals(page, "ar", 1)
        assert titles(page) == ["ar"]  # the browser's own
        page.click("#languages [lang=de]")
        assert titles(page) == ["de"]
        page.click("#languages [lang=de]")  # one stays
        assert page.get_attribute("#languages [lang=de]", "aria-pressed") == "true"
        assert page.url.endswith("&language=de")
        page.click("#languages [lang=en]")
        expect(page.locator(final("en"))).to_have_text("we saw")
        page.reload()
        wait_for_finals(page, "en", 1)
        assert titles(page) == ["en"]
        page.click("text=Side by side")
        wait_for_finals(page, "ar", 1)
        assert titles(page) == ["en", "de", "ar"]
        page.click("#languages [lang=de]")
        assert titles(page) == ["en", "ar"]
        page.click("text=QR code")
        expect(page.locator("dialog img")).to_have_attribute("alt", f"QR code of {page.url}")
        assert page.url.endswith("&language=en&language=ar")
        until(page, "document.querySelector('dialog img').naturalWidth > 0")
        expect(page.locator("dialog")).to_contain_text("on this computer only")
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)


def sent(page: Any) -> list[tuple[str, list[str]]]:
    """Keeps the query of each of the page's connections, and the languages of the captions that came over it."""
    found: list[tuple[str, list[str]]] = []

    def listen(socket: Any) -> None:
        languages: list[str] = []
        found.append((socket.url.partition("?")[2], languages))

        def hear(payload: Any) -> None:
            message = json.loads(payload)
            if message["type"] in ("partial", "final"):
                languages.append(message["language"])

        socket.on("framereceived", hear)

    page.on("websocket", listen)
    return found


def test_added_language(server: Running, visit: Callable[..., Any]) -> None:
    texts = ["we saw", "her duck", "it was", "her cat"]
    with server.socket() as socket:
        socket.start("de", "ar", room="hall-1")
        for number, text in enumerate(texts[:3]):
            socket.say("update", utterance=str(number), seq=0, text=text, final=True)
        page = visit("/watch")
        connections = sent(page)
        page.goto(f"{server.url}/watch?room=hall-1&language=de")
        wait_for_finals(page, "de", 3)
        assert finals(page, "ar") == []
        page.click("#languages [lang=ar]")  # in place of the other one
        wait_for_finals(page, "ar", 3)
        assert titles(page) == ["ar"] * 3
        page.click("text=Side by side")
        wait_for_finals(page, "de", 3)
        socket.say("update", utterance="3", seq=0, text=texts[3], final=True)
        for tag in ("de", "ar"):
            wait_for_finals(page, tag, 4)
            assert finals(page, tag) == [expected(text, tag) for text in texts]
        expect(page.locator(".utterance")).to_have_count(4)
        assert page.locator(".cell.source").all_inner_texts() == texts
        page.click("#languages [lang=de]")  # what comes already is not asked for again
        page.click("#languages [lang=de]")
        wait_for_finals(page, "de", 4)
        expect(page.locator("#state")).to_have_text("Live")
        socket.say("end")
        expect(page.locator("#state")).to_have_text("Ended")
    every = "language=en&language=de&language=ar"
    assert [query for query, _ in connections] == ["language=de", "language=ar", every]
    assert [sorted(set(languages)) for _, languages in connections] == [["de"], ["ar"], ["ar", "de", "en"]]


def test_added_after_end(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    with server.socket() as socket:
        speak(socket, token, "we saw", "her duck")
        page = visit(f"/watch?session={public_name(token)}&language=de")
        wait_for_finals(page, "de", 2)
        socket.say("end")
        expect(page.locator("#state")).to_have_text("Ended")
        page.click("#languages [lang=ar]")
        wait_for_finals(page, "ar", 2)
        expect(page.locator("#state")).to_have_text("Ended")


def test_added_in_reading_mode(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    with server.socket() as socket:
        speak(socket, token, "we saw her duck under the old table", "it was there again")
        page = visit(f"/watch?session={public_name(token)}&language=de&reading=16")
        until(page, "document.querySelectorAll('.cell.final[lang=de]').length > 2")
        page.click("#languages [lang=ar]")
        until(page, "document.querySelectorAll('.cell.final[lang=ar]').length > 2")
        rows = page.locator(".utterance").evaluate_all("(rows) => rows.map((row) => row.dataset.utterance)")
        assert rows == sorted(rows, key=lambda name: ("it" in name, name))
        assert finals(page, "de") == []


def test_side_by_side(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    with server.socket() as socket:
        speak(socket, token, "we saw her duck and it was her cat " * 6, "her duck", "it was")
        page = visit(f"/watch?session={public_name(token)}&language=de&language=ar&language=en")
        for tag in ("de", "ar", "en"):
            wait_for_finals(page, tag, 3)
        tops = [
            [cell.bounding_box()["y"] for cell in row.locator(".cell").all()]
            for row in page.locator(".utterance").all()
        ]
        assert len(tops) == 3 and all(len(row) == 3 and len(set(row)) == 1 for row in tops)
        page.set_viewport_size({"width": 390, "height": 844})  # too narrow: one below the other, sentence by sentence
        until(page, "document.querySelector('.stacked')")
        firsts = [row.locator(".cell").first.inner_text() for row in page.locator(".utterance").all()]
        assert firsts[1:] == ["her duck", "it was"]


def test_missing_session(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    page = visit("/watch")
    expect(page.locator("#which")).to_contain_text("Enter the name of the room")
    expect(page.locator("#state")).to_have_text("Not connected")
    with server.socket() as socket:
        speak(socket, token, "we saw")
        page.fill("#name", public_name(token))
        page.keyboard.press("Enter")
        page.wait_for_url("**/watch?session=*")
        wait_for_finals(page, "de", 1)
        expect(page.locator("#which")).not_to_be_visible()


def test_overlay_cleared(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    with server.socket() as socket:
        socket.start("de", token=token)
        address = f"/overlay?session={public_name(token)}&clear="
        kept, cleared = visit(f"{address}0"), visit(f"{address}1", script=KEEP)
        socket.say("update", utterance="1", seq=0, text="we saw", final=True)
        socket.say("update", utterance="2", seq=0, text="her duck")
        expect(kept.locator(".cell")).to_have_count(2)
        until(cleared, "window.shown?.some((texts) => texts.length === 2)")
        expect(cleared.locator(".cell")).to_have_count(0)
        cleared.evaluate("window.shown = []")  # the final caption may have the words of a partial one
        expect(kept.locator(".cell")).to_have_count(2)
        socket.say("update", utterance="2", seq=1, text="her duck and her cat", final=True)
        expect(kept.locator(".cell.final")).to_have_count(2)
        last = json.dumps(finals(kept, "de")[-1].strip())
        until(cleared, f"window.shown.some((texts) => texts.at(-1)?.trim() === {last})")
        # It came alone: nothing of what was cleared is back.
        assert cleared.evaluate(f"window.shown.find((texts) => texts.at(-1)?.trim() === {last}).length") == 1


def test_overlay_loaded_again(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    with server.socket() as socket:
        socket.start("de", token=token)
        address = f"/overlay?session={public_name(token)}&clear="
        pages = {clear: visit(f"{address}{clear}", script=KEEP) for clear in (1, 30, 0)}
        for number in "12":
            socket.say("update", utterance=number, seq=0, text="we saw", final=True)
        for page in pages.values():
            until(page, "window.shown?.some((texts) => texts.length === 2)")
        pages[1].wait_for_timeout(1000)
        for page in pages.values():
            page.reload()
        for clear in (30, 0):
            expect(pages[clear].locator(".cell.final")).to_have_count(2)
        until(pages[1], "document.title.includes('live')")
        socket.say("update", utterance="3", seq=0, text="her duck", final=True)
        until(pages[1], "window.shown.some((texts) => texts.length)")
        assert pages[1].evaluate("Math.max(...window.shown.map((texts) => texts.length))") == 1
        socket.say("correct", utterance="1", language="de", text="anders")
        expect(pages[30].locator(".cell.final").first).to_have_text("anders")
        expect(pages[1].locator("text=anders")).to_have_count(0)


def test_type_size_and_newest(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    size = "parseFloat(getComputedStyle(document.querySelector('.cell')).fontSize)"
    with server.socket() as socket:
        speak(socket, token, *["we saw her duck"] * 20)
        page = visit(f"/watch?session={public_name(token)}&language=de")
        wait_for_finals(page, "de", 20)
        view, newest = page.locator(".view"), page.get_by_role("button", name="Jump to newest")
        until(page, f"{VIEW}.scrollTop > 100")
        expect(newest).not_to_be_visible()
        view.hover()
        page.mouse.wheel(0, -400)
        expect(newest).to_be_visible()
        newest.click()
        until(page, f"{VIEW}.scrollHeight - {VIEW}.scrollTop - {VIEW}.clientHeight < 2")
        expect(newest).not_to_be_visible()
        assert page.evaluate("document.activeElement.className") == "view"
        before = page.evaluate(size)
        page.click("[aria-label='A+: Larger captions']", click_count=2)
        larger = page.evaluate(size)
        assert larger == pytest.approx(1.5 * before, abs=0.1)
        page.reload()
        wait_for_finals(page, "de", 20)
        assert page.evaluate(size) == pytest.approx(larger, abs=0.1)
        page.click("text=Full screen")
        until(page, "document.fullscreenElement !== null")


def test_overlay_form(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    with server.socket() as socket:
        speak(socket, token, "we saw")
        form = visit(f"/overlay-form?session={public_name(token)}")
        sample = form.locator("#sample p").first
        expect(form.locator("[name=language] option")).to_have_text(["German", "Arabic", "English"])
        expect(sample).to_have_attribute("lang", "de")
        form.select_option("[name=language]", "ar")
        expect(sample).to_have_attribute("dir", "rtl")
        address = form.locator("#address")
        expect(address).to_have_text(f"{server.url}/overlay?session={public_name(token)}&language=ar")
        form.fill("[name=size]", "60")
        form.select_option("[name=box]", "yes")
        form.fill("[name=background]", "#102030")
        form.fill("[name=clear]", "0")
        expect(address).to_have_text(re.compile("&size=60&background=102030cc&clear=0$"))
        page = visit(address.inner_text())
        wait_for_finals(page, "ar", 1)
        size = "(cell) => getComputedStyle(cell).fontSize"
        assert page.locator(".cell").evaluate(size) == "60px"
        form.fill("[name=size]", "9")
        form.fill("[name=lines]", "99")
        expect(form.locator("#problem")).to_contain_text("lines must be a number from 1 to 20")
        expect(address).to_be_empty()
        for control in form.locator("form [name]").all():
            assert form.locator(f"label[for={control.get_attribute('id')}]").count() == 1


def test_overlay_reading_mode(server: Running, visit: Callable[..., Any]) -> None:
    token = new_token()
    words = "we saw her duck under the old table and it was there again".split()
    with server.socket() as socket:
        socket.start("de", token=token)
        page = visit(f"/overlay?session={public_name(token)}&reading=16&lines=20&clear=0", script=KEEP)
        for seq in range(1, len(words) + 1):
            socket.say("update", utterance="1", seq=seq, text=" ".join(words[:seq]), final=seq == len(words))
            heard = socket.until("final" if seq == len(words) else "partial")
        last = str(heard[-1]["text"])
        shown = "window.shown.at(-1)?.at(-1)?.trim()"
        until(page, f"{shown} && {json.dumps(last)}.endsWith({shown})")
        seen = page.evaluate("window.shown.map((texts) => texts.map((text) => text.trim()))")
    for before, after in pairwise(seen):
        assert after[: len(before)] == before
    assert max(map(len, seen)) >= 2 and all(len(line) <= 16 for line in seen[-1])


# Rooms, and what their operators do


def utter(socket: Socket, *texts: str, first: int = 0) -> None:
    for number, text in enumerate(texts, first):
        socket.say("update", utterance=str(number), seq=0, text=text, final=True)


@pytest.mark.parametrize(
    ("locale", "language", "state", "picked"),
    [
        ("fr-CA", "fr", "Pas encore commencé", "ar"),
        ("zh-TW", "zh-Hant", "尚未開始", "ar"),
        ("mt", "en", "Not started", "ar"),
        ("de-AT", "de", "Noch nicht begonnen", "de"),
    ],
)
def test_language_of_the_browser(
    server: Running, visit: Callable[..., Any], locale: str, language: str, state: str, picked: str
) -> None:
    page = visit(f"/watch/{language.lower()}", locale=locale)
    expect(page.locator("#state")).to_have_text(state)
    expect(page.locator("html")).to_have_attribute("lang", language)
    with server.socket() as socket:
        socket.start("ar", "de", room=language.lower())
        utter(socket, "we saw")
        wait_for_finals(page, picked, 1)
        assert set(titles(page)) == {picked}


def test_missing_room(visit: Callable[..., Any]) -> None:
    with running(rooms={"atrium": ()}) as other:
        page = visit(f"{other.url}/watch/stage", locale="de")
        expect(page.locator("#problem")).to_contain_text("Diesen Raum gibt es nicht.")
        expect(page.locator("#state")).to_have_text("Nicht verbunden")
        assert "atrium" not in page.content()
        page.close()  # before the server, whose end it would report


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
            utter(socket, *texts)
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
        utter(socket, "we saw")
        wait_for_finals(page, "de", 1)
        room = server.hub.rooms.find("hall-1")
        (viewer,) = room.viewers
        server.call(lambda: viewer.close(1012, "started anew"))
        eventually(lambda: room.viewers and viewer not in room.viewers)
        utter(socket, "her duck", first=1)
        wait_for_finals(page, "de", 2)
        expect(page.locator("#notice")).not_to_be_visible()


def test_language_of_next_talk(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/watch?room=hall-1&language=ja")
    overlay = visit("/overlay?room=hall-1&language=ja&clear=0")
    expect(page.locator("#state")).to_have_text("Not started")
    for targets, shown, text in ((("de", "ar"), "de", "we saw"), (("ja", "de"), "ja", "it was")):
        with server.socket() as socket:
            socket.start(*targets, room="hall-1")
            utter(socket, text)
            wait_for_finals(page, shown, 1)
            expect(page.locator(".cell:visible")).to_have_count(1)
            socket.say("end")
            expect(page.locator("#state")).to_have_text("Ended")
        if shown == "de":
            expect(page.locator("#problem")).to_contain_text("no captions in ja. It has en, de, ar")
            expect(overlay.locator("#problem")).to_contain_text("no captions in ja: language must be one of en, de, ar")
            expect(overlay.locator(".cell")).to_have_count(0)
    wait_for_finals(overlay, "ja", 1)
    expect(page.locator("#problem")).not_to_be_visible()


def test_overlay_of_room(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/overlay?room=hall-1&clear=0")
    until(page, "document.title.includes('waiting for the session')")
    for target, text in (("de", "we saw"), ("ja", "her duck")):
        with server.socket() as socket:
            socket.start(target, room="hall-1")
            utter(socket, text)
            wait_for_finals(page, target, 1)
            expect(page.locator(".cell")).to_have_count(1)
            socket.say("end")
            until(page, "document.title.includes('waiting for the next session')")


def test_operator(server: Running, visit: Callable[..., Any]) -> None:
    with server.socket() as socket:
        name = socket.start("de")["session"]
        watch, overlay = (visit(f"/{path}?session={name}&language=de&clear=0") for path in ("watch", "overlay"))
        socket.say("update", utterance="0", seq=0, text="we saw")
        expect(watch.locator(".utterance")).to_have_count(1)
        socket.say("hide", utterance="0")
        expect(watch.locator(".utterance:visible")).to_have_count(0)
        socket.say("update", utterance="0", seq=1, text="we saw")
        socket.say("hide", utterance="0", hidden=False)
        expect(watch.locator(".utterance:visible")).to_have_count(1)
        socket.say("update", utterance="0", seq=2, text="we saw", final=True)
        utter(socket, "her duck", first=1)
        for page in (watch, overlay):
            wait_for_finals(page, "de", 2)
        before = finals(watch, "de")
        socket.say("correct", utterance="0", language="de", text="Wir sahen es")
        socket.say("hide", utterance="1")
        socket.say("pause")
        utter(socket, "it was", first=2)
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
            ("/watch/Hall%201", "This room does not exist."),
            (f"/watch?session={name}&reading=1e2", width),
            ("/?reading=5", width),
        ):
            page.goto(server.url + path)
            expect(page.locator("#problem")).to_contain_text(problem)


# Reading mode on the speaker's own page


#: Keeps every state of the cells of each language.
KEEP_CELLS = """() => {
  window.seen = { "": [], de: [] };
  const of = { "": ".cell.source", de: ".cell[lang=de]" };
  const look = () => {
    for (const [tag, cells] of Object.entries(of)) {
      window.seen[tag].push([...document.querySelectorAll(cells)].map((cell) => cell.textContent));
    }
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def lines(page: Any, cells: str) -> list[str]:
    found: list[str] = page.locator(cells).all_inner_texts()
    return [line for line in found if line.strip()]


def test_lines_of_speaker(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/?reading=20")
    page.evaluate(KEEP_CELLS)
    play(page)
    wait_for_end(page)
    spoken = server.hub.sessions[session_of(page)["name"]].transcript
    seen = page.evaluate("window.seen")
    for states in seen.values():
        for before, after in pairwise(states):
            changed = [(old, new) for old, new in zip(before, after, strict=False) if old not in ("", new)]
            assert changed == []
    for cells in (".cell.source", ".cell[lang=de]"):
        shown = lines(page, cells)
        # How many there are depends on the updates that a busy machine skips.
        assert len(shown) > 2 and all(len(line) <= 20 or " " not in line.strip() for line in shown)
    finals = [caption for caption in spoken.finals if caption.language == "de"]
    assert lines(page, ".cell.source")[-1] in finals[-1].source
    expect(page.locator("#edit")).not_to_be_visible()
    count = len(lines(page, ".cell[lang=de]"))
    page.reload()
    expect(page.locator("#state")).to_have_text("Live")
    assert len(lines(page, ".cell[lang=de]")) == pytest.approx(count, abs=count / 2)
    assert page.evaluate("getComputedStyle(document.querySelector('.cell'), '::after').content") == "none"


EMBEDDED = """<!doctype html><title>A talk</title><style>p, div { display: none; font-size: 99px; color: red; }</style>
<script type="module" src="SERVER/redraft-captions.js"></script>
<redraft-captions src="SERVER" room="hall-1" language="de" size="30" clear="0"></redraft-captions>"""


@contextmanager
def website() -> Iterator[tuple[str, list[str]]]:
    """The address of another web server, and the text of its page."""
    pages: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(pages[0].encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{found.server_port}", pages
        finally:
            found.shutdown()
            thread.join(SECONDS)


def test_element_in_a_page_of_another_origin(visit: Callable[..., Any]) -> None:
    with website() as (origin, pages), running(busy=1.0, origins=(origin,)) as server, server.socket() as socket:
        pages.append(EMBEDDED.replace("SERVER", server.url))
        socket.start("de", "ar", room="hall-1")
        utter(socket, "we saw")
        page = visit(origin, script=KEEP)
        cell = page.locator("redraft-captions .cell.final")
        expect(cell).to_have_text(expected("we saw", "de"))
        assert cell.evaluate("(cell) => getComputedStyle(cell).fontSize") == "30px"  # the page's rules do not reach it
        room = server.hub.rooms.find("hall-1")
        element = page.locator("redraft-captions")
        element.evaluate("(element) => { element.setAttribute('language', 'ar'); element.setAttribute('lines', 3); }")
        expect(page.locator(final("ar"))).to_have_text(expected("we saw", "ar"))
        assert finals(page, "de") == []
        eventually(lambda: len(room.viewers) == 1)
        element.evaluate("(element) => element.setAttribute('size', '9999')")
        expect(page.get_by_role("alert")).to_have_text("size must be a number from 8 to 400")
        eventually(lambda: not room.viewers)
        element.evaluate("(element) => { element.removeAttribute('size'); window.element = element; }")
        eventually(lambda: len(room.viewers) == 1)
        page.evaluate("window.element.remove()")
        eventually(lambda: not room.viewers)
        page.evaluate("document.body.append(window.element)")
        utter(socket, "her duck", first=1)
        expect(page.locator(final("ar"))).to_have_text([expected(text, "ar") for text in ("we saw", "her duck")])
        page.close()
