"""A room in a browser: its page, its viewers and its overlay before, during and after a talk; and lost connections."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from redraft.protocol import new_token, public_name
from tests.serve.browsers import expect, final, finals, until, wait_for_finals
from tests.serve.servers import Running, Socket
from tests.serve.talking import expected
from tests.waiting import eventually

SHADOW = "document.querySelector('redraft-captions').shadowRoot"


def utter(socket: Socket, *texts: str, first: int = 0) -> None:
    for number, text in enumerate(texts, first):
        socket.say("update", utterance=str(number), seq=0, text=text, final=True)


def forget(server: Running, name: str) -> None:
    """Forget a session, as some minutes after its end."""
    server.call(lambda: server.hub.forget(server.hub.sessions[name]))
    eventually(lambda: server.hub.past.find(name))


def test_page_of_room(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/rooms")
    page.fill("#name", "Hall 1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/rooms?room=hall-1")
    state = page.locator("#state")
    expect(state).to_have_text("Not started")
    expect(page.locator("#address")).to_have_text(f"{server.url}/watch/hall-1")
    until(page, "document.querySelector('#code').naturalWidth > 0")
    expect(page.locator("#speak code")).to_contain_text(f"--server {server.url} --room hall-1")
    links = page.locator("#links a").evaluate_all("(links) => links.map((link) => link.href)")
    assert links == [
        server.url + path for path in ("/watch/hall-1", "/overlay?room=hall-1", "/overlay-form?room=hall-1")
    ]
    expect(page.locator("#transcripts a")).to_have_count(0)
    with server.socket() as socket:
        name = socket.start("de", room="hall-1")["session"]
        expect(state).to_have_text("Live")
        utter(socket, "we saw")
        socket.until("final")
        socket.say("end")
        socket.until("done")
    forget(server, name)
    expect(state).to_have_text("Ended")
    href = page.locator("#transcripts li", has_text="All together").locator("a", has_text="SRT").get_attribute("href")
    assert server.ask(f"/{href}").text.splitlines()[2:4] == ["we saw", expected("we saw")]
    speak = visit("/?room=hall-1")
    expect(speak.locator("[name=room]")).to_have_value("hall-1")
    expect(speak.locator("#links a").first).to_have_attribute("href", f"{server.url}/watch/hall-1")


def test_overlay_without_room(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/overlay")
    page.fill("#name", "hall-1")
    page.keyboard.press("Enter")
    expect(page.locator("#address")).to_have_text(f"{server.url}/overlay?room=hall-1")
    page.select_option("[name=language]", "ja")
    page.select_option("[name=second]", "en")
    page.fill("[name=font]", "DejaVu Serif")
    expect(page.locator("#address")).to_contain_text("room=hall-1&language=ja&language=en&font=DejaVu+Serif")
    assert "DejaVu Serif" in page.locator("#sample").evaluate("(sample) => getComputedStyle(sample).fontFamily")
    page.fill("[name=font]", "x;color:red")
    expect(page.locator("#problem")).to_contain_text("font must be names of fonts")


def test_after_the_talk(server: Running, visit: Callable[..., Any]) -> None:
    with server.socket() as socket:
        name = socket.start("de", room="hall-1")["session"]
        utter(socket, "we saw", "her duck")
        for _ in range(2):
            socket.until("final")
        socket.say("end")
        socket.until("done")
    forget(server, name)
    for path in ("/watch/hall-1", f"/watch?session={name}"):
        page = visit(path, locale="de-AT")
        wait_for_finals(page, "de", 2)
        expect(page.locator("#state")).to_have_text("Beendet")
        expect(page.locator("#notice")).to_contain_text("Der Vortrag ist zu Ende.")
        text = server.ask(f"/{page.locator('#save').get_attribute('href')}").text
        assert text.splitlines() == [expected("we saw"), expected("her duck")]
    page = visit(f"/watch?session={name}&language=en")  # the one that is spoken, and from the start
    expect(page.locator(final("en"))).to_have_text(["we saw", "her duck"])


def test_own_language_is_spoken(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/watch/hall-1", locale="en-GB")
    with server.socket() as socket:
        socket.start("de", room="hall-1")
        utter(socket, "we saw")
        expect(page.locator(final("en"))).to_have_text(["we saw"])
        socket.say("update", utterance="1", seq=0, text="her")
        expect(page.locator(".cell[lang=en]")).to_have_text(["we saw", "her"])
        assert finals(page, "de") == []
        socket.say("hide", utterance="0")
        expect(page.locator(".utterance:visible")).to_have_count(1)
        socket.say("hide", utterance="0", hidden=False)
        expect(page.locator(".utterance:visible")).to_have_count(2)
        page.click("#languages [lang=de]")
        wait_for_finals(page, "de", 1)


def test_two_languages_on_air(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/overlay/hall-1?language=en&language=de&clear=0")
    with server.socket() as socket:
        socket.start("de", "ja", room="hall-1")
        utter(socket, "we saw")
        for tag, text in (("en", "we saw"), ("de", expected("we saw"))):
            expect(page.locator(final(tag))).to_have_text(text)
        tops = [page.locator(final(tag)).bounding_box()["y"] for tag in ("en", "de")]
        assert tops == sorted(tops) and finals(page, "ja") == []
        css = "redraft-captions { --size: 80px } redraft-captions::part(line) { text-transform: uppercase }"
        page.evaluate(
            "(css) => { const s = document.createElement('style'); s.innerHTML = css; document.head.append(s); }", css
        )
        found = "(cell) => [getComputedStyle(cell).fontSize, getComputedStyle(cell).textTransform]"
        assert page.locator(final("de")).evaluate(found) == ["80px", "uppercase"]
        other = visit("/overlay/hall-1?language=fr")
        expect(other.locator("#problem")).to_contain_text("language must be one of en, de, ja")


@pytest.mark.parametrize("page_of", ["/watch/hall-1?language=de", "/overlay/hall-1?language=de&clear=0"])
def test_full_room(visit: Callable[..., Any], page_of: str, server: Running) -> None:
    object.__setattr__(server.hub.settings, "viewers", 1)
    with server.socket() as socket, server.socket("/v1/rooms/hall-1/watch") as first:
        socket.start("de", room="hall-1")
        utter(socket, "we saw")
        first.until("final")
        page = visit(page_of)
        expect(page.locator("#problem")).to_contain_text("places for viewers")
        if "overlay" in page_of:  # what its operator sees
            expect(page).to_have_title(re.compile("places for viewers"))
        first.connection.close()
        wait_for_finals(page, "de", 1)
        expect(page.locator("#problem")).not_to_be_visible()


def test_refused_look_at_a_session(server: Running, visit: Callable[..., Any]) -> None:
    page = visit(tolerated="403|404")
    refusal = {"error": {"code": "host", "message": "ask for it by its own name"}}
    page.route("**/v1/sessions/*", lambda route: route.fulfill(status=403, json=refusal))
    page.goto(f"{server.url}/watch?session={'a' * 32}")
    expect(page.locator("#problem")).to_contain_text("ask for it by its own name")
    page.unroute("**/v1/sessions/*")
    token = new_token()
    with server.socket() as socket:
        socket.start("de", token=token)
        page.goto(f"{server.url}/watch?session={public_name(token)}")
        expect(page.locator("#state")).to_have_text("Live")
        expect(page.locator("#problem")).not_to_be_visible()


def test_element_without_styles(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/watch?room=hall-1")
    page.route("**/css/overlay.css", lambda route: None)  # it never comes
    with server.socket() as socket:
        socket.start("de", room="hall-1")
        utter(socket, "we saw")
        page.evaluate(
            """async () => {
              await import("/redraft-captions.js");
              const element = document.createElement("redraft-captions");
              const attributes = { room: "hall-1", language: "de", clear: "0" };
              for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
              document.body.replaceChildren(element);
            }"""
        )
        wait_for_finals(page, "de", 1)


def connections(page: Any, path: str) -> list[list[bool]]:
    """The page's connections; one whose list is not empty swallows all that comes, in both directions."""
    found: list[list[bool]] = []

    def route(socket: Any) -> None:
        server, lost = socket.connect_to_server(), list[bool]()
        found.append(lost)
        socket.on_message(lambda text: lost or server.send(text))
        # With a heartbeat that tests can wait for.
        server.on_message(lambda text: lost or socket.send(json.dumps(json.loads(text) | {"heartbeat": 0.5})))

    page.route_web_socket(path, route)
    return found


def test_lost_viewer(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/watch")
    opened = connections(page, "**/v1/rooms/**")
    with server.socket() as socket:
        socket.start("de", room="hall-1")
        utter(socket, "we saw")
        socket.until("final")
        page.goto(f"{server.url}/watch/hall-1?language=de")
        wait_for_finals(page, "de", 1)
        opened[-1].append(True)
        utter(socket, "her duck", first=1)
        wait_for_finals(page, "de", 2)
        assert len(opened) > 1


def test_lost_speaker(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/watch")
    opened = connections(page, "**/v1/live")
    page.goto(server.url)
    page.click("text=Type")
    page.fill("#typed", "we saw")
    page.press("#typed", "Enter")
    wait_for_finals(page, "de", 1)
    opened[-1].append(True)
    page.type("#typed", " her duck")
    page.press("#typed", "Enter")
    wait_for_finals(page, "de", 2)
    assert len(opened) > 1


def test_old_captions_are_not_announced(server: Running, visit: Callable[..., Any]) -> None:
    with server.socket() as socket:
        name = socket.start("de", room="hall-1")["session"]
        utter(socket, "we saw", "her duck")
        for _ in range(2):
            socket.until("final")
        for _, cell in server.hub.sessions[name].transcript.cells:
            cell.made -= 60
        page = visit("/watch/hall-1?language=de")
        wait_for_finals(page, "de", 2)
        utter(socket, "it was", first=2)
        wait_for_finals(page, "de", 3)
        expect(page.locator("#announcer p")).to_have_text([expected("it was")])


@pytest.mark.parametrize("able", [True, False])
def test_screen_stays_on(server: Running, visit: Callable[..., Any], able: bool) -> None:
    lock = "window.asked = []; const lock = { request: async (kind) => window.asked.push(kind) };"
    given = "lock" if able else "undefined"
    page = visit("/watch/hall-1", script=f"{lock} Object.defineProperty(navigator, 'wakeLock', {{ value: {given} }});")
    expect(page.locator("#state")).to_have_text("Not started")
    assert page.evaluate("window.asked") == (["screen"] if able else [])
    with server.socket() as socket:
        socket.start("de", room="hall-1")
        expect(page.locator("#state")).to_have_text("Live")
        expect(page.locator("#awake")).to_be_visible(visible=not able)
