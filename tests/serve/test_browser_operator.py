"""The page's controls over viewers' captions, and its room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.serve.browsers import expect, final, finals, session_of, until, wait_for_finals
from tests.serve.servers import Running
from tests.waiting import eventually

#: Translations that viewers do not see.
UNSEEN = ".unseen:not(.source)"


def type_in(page: Any, *sentences: str, room: str = "") -> None:
    """Type sentences, of which the first begins a session in German."""
    if not page.locator("#end").is_visible():
        for tag in ("zh", "ja"):
            page.uncheck(f".targets [value={tag}]")
        if room:
            page.click("#options > summary")
            page.fill("[name=room]", room)
        page.get_by_text("Type", exact=True).click()
    for sentence in sentences:
        page.locator("#typed").press_sequentially(f"{sentence}\n")


def transcript(server: Running, page: Any) -> list[str]:
    return server.ask(f"/v1/sessions/{session_of(page)['name']}/transcript").text.splitlines()


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def test_pause(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    expect(button(page, "Pause for viewers")).not_to_be_visible()
    type_in(page, "we saw")
    wait_for_finals(page, "de", 1)
    button(page, "Pause for viewers").click()
    expect(page.locator("#paused")).to_have_text("Viewers see no new captions until you resume.")
    type_in(page, "her duck")
    wait_for_finals(page, "de", 2)  # here they come all the same
    assert len(transcript(server, page)) == 1
    page.reload()
    expect(page.locator("#paused")).to_be_visible()
    button(page, "Resume for viewers").click()
    expect(page.locator("#paused")).not_to_be_visible()
    eventually(lambda: transcript(server, page) == finals(page, "de"))
    page.click("#end")
    expect(button(page, "Pause for viewers")).not_to_be_visible()


def test_hide_and_correct(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    type_in(page, "we saw", "her duck")
    wait_for_finals(page, "de", 2)
    first, second = finals(page, "de")
    button(page, "Hide or correct").click()
    page.locator(final("de")).first.click()
    expect(page.locator("#editor-title")).to_have_text("Caption in German")
    assert page.input_value("#corrected") == first
    page.fill("#corrected", "Wir sahen es")
    button(page, "Correct").click()
    expect(page.locator(final("de")).first).to_have_text("Wir sahen es")
    page.locator(final("de")).nth(1).focus()  # by keyboard, too
    expect(page.locator(final("de")).nth(1)).to_have_attribute("aria-description", "Press Enter to hide or correct it.")
    page.keyboard.press("Space")
    button(page, "Hide from viewers").click()
    expect(page.locator(UNSEEN)).to_have_text(second)
    expect(page.locator(".source.unseen")).to_have_text("her duck")  # goes with its only translation
    assert transcript(server, page) == ["Wir sahen es"]
    page.reload()
    expect(page.locator(UNSEEN)).to_have_text(second)
    assert finals(page, "de") == ["Wir sahen es", second]
    button(page, "Hide or correct").click()
    page.locator(UNSEEN).click()
    button(page, "Show to viewers").click()
    expect(page.locator(".unseen")).to_have_count(0)
    assert transcript(server, page) == ["Wir sahen es", second]
    page.locator(final("de")).first.click()
    page.keyboard.press("Escape")
    expect(page.locator("#editor")).not_to_be_visible()
    button(page, "Hide or correct").click()
    page.locator(final("de")).first.click()  # no longer
    expect(page.locator("#editor")).not_to_be_visible()


def test_named_speaker(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    type_in(page, "we saw")
    wait_for_finals(page, "de", 1)
    page.evaluate("document.querySelector('.utterance').dataset.speaker = 'Speaker 1'")  # as a recogniser tells
    button(page, "Hide or correct").click()
    for name in ("Anna", "Anne"):
        page.locator(final("de")).first.click()
        page.get_by_label("Speaker").fill(name)
        button(page, "Correct").click()
        expect(page.locator(".utterance")).to_have_attribute("data-speaker", name)
    names = server.hub.sessions[session_of(page)["name"]].transcript.names
    eventually(lambda: names.get("Speaker 1") == ("Anne", 2))


def test_partial_can_be_hidden(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    type_in(page)
    page.locator("#typed").press_sequentially("we saw")
    until(page, "document.querySelector('.cell[lang=de]')?.textContent")
    button(page, "Hide or correct").click()
    page.locator(".cell[lang=de]").click()
    expect(button(page, "Correct")).to_be_disabled()
    button(page, "Hide from viewers").click()
    expect(page.locator(UNSEEN)).to_have_count(1)
    page.locator("#typed").press_sequentially(" her\n")
    wait_for_finals(page, "de", 1)
    assert transcript(server, page) == []


def test_hidden_after_restart(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    type_in(page, "we saw", "her duck")
    wait_for_finals(page, "de", 2)
    first, _ = finals(page, "de")
    button(page, "Hide or correct").click()
    page.locator(final("de")).nth(1).click()
    button(page, "Hide from viewers").click()
    expect(page.locator(UNSEEN)).to_have_count(1)
    button(page, "Pause for viewers").click()
    expect(page.locator("#paused")).to_be_visible()
    session = server.hub.sessions[session_of(page)["name"]]
    server.forget(session)
    eventually(lambda: server.hub.sessions.get(session.name, session) is not session)
    again = server.hub.sessions[session.name].transcript
    eventually(lambda: [each.text for each in again.kept if each.language == "de"] == [first])
    assert transcript(server, page) == []
    button(page, "Resume for viewers").click()
    eventually(lambda: transcript(server, page) == [first])


def test_links_of_room(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    type_in(page, "we saw", room="hall-1")
    wait_for_finals(page, "de", 1)
    links = page.locator("#links a").evaluate_all("(links) => links.map((link) => link.href)")
    assert [link.removeprefix(server.url) for link in links] == [
        *("/watch/hall-1", "/overlay?room=hall-1", "/overlay-form?room=hall-1", "/rooms/hall-1")
    ]
    viewer = visit("/watch/hall-1?language=de")
    wait_for_finals(viewer, "de", 1)
    form = visit("/overlay-form?room=hall-1")
    expect(form.locator("#address")).to_contain_text(f"{server.url}/overlay?room=hall-1")
    other = visit()
    type_in(other, "her duck", room="hall-1")
    expect(other.locator("#take_over-wrong")).to_contain_text("room 'hall-1' is in use")
    other.select_option("[name=take_over]", "yes")
    type_in(other, "")  # Enter sends what was kept
    wait_for_finals(other, "de", 1)
    expect(page.locator("#problem")).to_contain_text("another session has taken over room 'hall-1'")
    expect(viewer.locator(final("de"))).to_have_text(finals(other, "de"))  # in place of those of the first session
