"""The page's options, and what it says where it is refused something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redraft.serve.security import new_key
from tests.serve.browsers import SENTENCES, expect, finals, play, session_of, shortened, wait_for_finals, watch_sent
from tests.serve.servers import running

REFUSED = [
    ("beta", "3", "beta must be a number from 0 to 1, not 3.0"),
    ("mask_k", "101", "mask_k must be a whole number from 0 to 100"),
    ("context", "5", "context must be at most 4, not 5"),
    ("glossary", "duck", 'glossary: "duck" must be a term, "=" and its translation'),
    ("glossary", " duck=Ente\n\n a = b = c \n", "glossary: this model does not follow instructions"),
]


def open_options(page: Any) -> None:
    page.click("#options > summary")
    page.click("text=More of ssbd")


def test_options(visit: Callable[..., Any]) -> None:
    page = visit()
    sent = watch_sent(page)
    expect(page.locator("[name=beta]")).not_to_be_visible()
    open_options(page)
    assert page.get_attribute("[name=beta]", "placeholder") == "0.2"
    for name, value in {"beta": "0", "mask_margin": "-0.5", "context": "2", "source_policy": "stable:0.8"}.items():
        page.fill(f"[name={name}]", value)
    page.select_option("[name=mask_unit]", "words")
    play(page)
    wait_for_finals(page)
    wanted = {"method": "ssbd", "options": {"beta": 0}, "mask_margin": -0.5, "mask_unit": "words", "context": 2}
    assert wanted.items() <= sent[0].items()
    assert sent[0]["source_policy"] == "stable:0.8"
    assert sent[0]["glossary"] == [] and "mask_k" not in sent[0]
    page.reload()
    assert page.input_value("[name=beta]") == "0" and page.input_value("[name=mask_unit]") == "words"
    assert page.input_value("[name=floor]") == ""
    expect(page.locator("[name=beta]")).to_be_disabled()


def test_a_method_has_its_own_options(visit: Callable[..., Any]) -> None:
    page = visit()
    page.click("#options > summary")
    expect(page.locator("#method-help")).to_contain_text("self-speculative biased decoding")
    page.select_option("[name=method]", "ar")
    expect(page.locator("#method-help")).to_contain_text("re-translation from scratch")
    expect(page.locator("[name=beta]")).to_have_count(0)
    play(page)
    wait_for_finals(page)
    assert session_of(page)["start"]["method"] == "ar" and session_of(page)["start"]["options"] == {}


def test_refused_options(visit: Callable[..., Any]) -> None:
    page = visit()
    sent = watch_sent(page)
    open_options(page)
    for name, value, sentence in REFUSED:
        page.fill(f"[name={name}]", value)
        play(page)
        wrong, field = page.locator(f"#{name}-wrong"), page.locator(f"[name={name}]")
        expect(wrong).to_contain_text(sentence)
        expect(field).to_be_focused()
        assert f"{name}-wrong" in (field.get_attribute("aria-describedby") or "")
        assert field.get_attribute("aria-invalid") == "true"
        expect(page.locator("#problem")).not_to_be_visible()
        expect(page.locator(".empty")).to_be_visible()
        expect(page.locator("#state")).to_have_text("Not connected")
        page.fill(f"[name={name}]", "")
        expect(wrong).not_to_be_visible()
    assert sent[-1]["glossary"] == [["duck", "Ente"], ["a", "b = c"]]
    play(page)
    expect(page.locator("#state")).to_have_text("Live")


def test_refused_while_loading(visit: Callable[..., Any]) -> None:
    page = visit()
    sent = watch_sent(page)
    open_options(page)
    page.fill("[name=beta]", "3")
    waiting: list[Any] = []
    page.route("**/v1/talk", lambda route: waiting.append(route))
    play(page)
    expect(page.locator("#beta-wrong")).to_be_visible()
    while not waiting:
        page.wait_for_timeout(20)
    with page.expect_response("**/v1/talk"):
        waiting[0].fulfill(json=shortened(4))
    expect(page.locator("[name=beta]")).to_be_focused()
    expect(page.locator("[name=beta]")).to_be_enabled()
    page.fill("[name=beta]", "")
    play(page)
    expect(page.locator("#state")).to_have_text("Live")
    assert [message["options"] for message in sent if message["type"] == "start"] == [{"beta": 3}, {}]


def test_a_full_server_says_so(visit: Callable[..., Any]) -> None:
    with running(sessions=1) as full, full.socket() as socket:
        socket.start()
        page = visit(full.url)
        play(page)
        expect(page.locator("#problem")).to_contain_text("all 1 sessions are in use: try again later")
        expect(page.locator(".empty")).to_be_visible()
        expect(page.locator(".play:visible")).to_have_count(1)
        page.click("text=Dismiss")
        expect(page.locator("#problem")).not_to_be_visible()


def test_reconnecting(visit: Callable[..., Any]) -> None:
    with running(busy=1.0) as gone:
        page = visit(gone.url, tolerated="ERR_CONNECTION_REFUSED|WebSocket connection")
        page.get_by_text("Type", exact=True).click()
        page.locator("#typed").press_sequentially("we saw\n")
        wait_for_finals(page, number=1)
    expect(page.locator("#notice")).to_contain_text("Reconnecting… Nothing is lost.")
    expect(page.locator("#state")).to_have_text("Reconnecting")
    page.locator("#typed").press_sequentially("her duck")
    expect(page.locator(".cell.source:not(.final)")).to_have_text("her duck")
    page.get_by_text("Talk", exact=True).click()
    play(page)  # the talk comes from elsewhere here, and waits like all else
    expect(page.locator(".cell.source.final")).not_to_have_count(0)


def test_no_browser_recognition(visit: Callable[..., Any]) -> None:
    page = visit(script="delete window.webkitSpeechRecognition; delete window.SpeechRecognition;")
    page.get_by_text("Speak", exact=True).click()
    expect(page.locator("#own-hint")).to_contain_text("This browser has no speech recognition")
    for part in ("#recognisers", "#server-hint", "#mute", "#level"):  # nor has this server
        expect(page.locator(part)).not_to_be_visible()
    assert page.get_attribute("#listen", "aria-describedby") == "own-hint"
    page.locator("#listen").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#problem")).to_contain_text("This browser has no speech recognition")
    expect(page.locator("#state")).to_have_text("Not connected")


# API keys


FOCUSED = "document.activeElement.name"


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address of a server with keys, and a key."""
    path = tmp_path / "keys"
    key = new_key(path, "stage")
    with running(keys=path, busy=1.0) as server:
        yield server.url, key


def test_key(locked: tuple[str, str], visit: Callable[..., Any]) -> None:
    url, key = locked
    page = visit(url)
    field = page.get_by_label("API key")
    expect(field).to_be_visible()
    play(page)
    assert field.evaluate("(field) => field.validationMessage").startswith("Enter the API key")
    assert page.evaluate(FOCUSED) == "key"
    expect(page.locator("#state")).to_have_text("Not connected")
    field.fill(f" {key} ")
    page.check("#compare")  # the session beside it needs the key, too
    play(page)
    wait_for_finals(page)
    expect(page.locator('[data-plain="lag"]')).not_to_have_text("–")
    page.reload()
    wait_for_finals(page)
    name = session_of(page)["name"]
    viewer = visit(f"{url}/watch?session={name}&language=ja")  # without a key
    for path in ("watch", "overlay"):
        viewer.goto(f"{url}/{path}?session={name}&language=ja")
        wait_for_finals(viewer, "ja", SENTENCES)
        assert finals(viewer, "ja") == finals(page, "ja")
        assert key not in viewer.content()
    page.click("text=End session")
    expect(page.locator("#state")).to_have_text("Ended")
    assert field.input_value() == key  # for the next session


def test_wrong_key(locked: tuple[str, str], visit: Callable[..., Any]) -> None:
    url, key = locked
    page = visit(url)
    page.get_by_label("API key").fill("wrong")
    play(page)
    expect(page.locator("#key-wrong")).to_contain_text("the API key is not known to this server")
    expect(page.locator("#problem")).not_to_be_visible()
    expect(page.locator(".empty")).to_be_visible()
    assert page.evaluate(FOCUSED) == "key"
    assert page.get_attribute("[name=key]", "aria-invalid") == "true"
    page.fill("[name=key]", key)
    expect(page.locator("#key-wrong")).not_to_be_visible()
    play(page)
    expect(page.locator("#state")).to_have_text("Live")
