"""The page's options, and its errors when the server refuses one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redraft.captions import spoken
from redraft.serve.access import new_key
from tests.captions.detector import Detector
from tests.serve.browsers import (
    SENTENCES,
    expect,
    final,
    finals,
    play,
    session_of,
    shortened,
    wait_for_finals,
    watch_sent,
)
from tests.serve.servers import SECONDS, Running, running

REFUSED = [
    ("beta", "3", "beta must be a number from 0 to 1, not 3.0"),
    ("mask_k", "101", "mask_k must be a whole number from 0 to 100, not 101.0"),
    ("context", "-5", "context must be a whole number from 0 to 100, not -5.0"),
    ("glossary", "duck", 'glossary: "duck", for Chinese, must be a term, "=" and its translation'),
    ("glossary", " duck=Ente\n\n a = b = c \n", "glossary: this model does not support it"),
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
    for name, value in {
        "beta": "0",
        "agree": "3",
        "first_sight": "0.5",
        "context": "2",
    }.items():
        page.fill(f"[name={name}]", value)
    play(page)
    wait_for_finals(page)
    options = {"beta": 0, "end": "model", "agree": 3, "first_sight": 0.5, "context": 2}
    wanted = {"method": "ssbd", "options": options}
    assert {name: sent[0].get(name) for name in wanted} == wanted
    assert sent[0]["glossary"] == {}
    page.reload()
    assert page.input_value("[name=beta]") == "0" and page.input_value("[name=agree]") == "3"
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
    assert sent[-1]["glossary"] == {"zh": [["duck", "Ente"], ["a", "b = c"]]}
    play(page)
    expect(page.locator("#state")).to_have_text("Live")


def test_glossary_of_each_language(visit: Callable[..., Any]) -> None:
    page = visit()
    sent = watch_sent(page)
    open_options(page)
    language, terms = page.locator("[name=glossary_language]"), page.locator("[name=glossary]")
    expect(language.locator("option")).to_have_text(["Chinese", "German", "Japanese"])
    language.select_option("de")
    terms.fill("hull = Rumpf")
    language.select_option("ja")
    expect(terms).to_have_value("")
    terms.fill("hull")
    page.uncheck("[name=target][value=zh]")
    expect(language.locator("option")).to_have_text(["German", "Japanese"])
    language.select_option("de")
    play(page)
    expect(page.locator("#glossary-wrong")).to_contain_text('"hull", for Japanese, must be')
    assert language.input_value() == "ja"
    terms.fill("hull = 船体")
    page.reload()
    open_options(page)
    language.select_option("de")
    expect(terms).to_have_value("hull = Rumpf")
    language.select_option("ja")
    expect(terms).to_have_value("hull = 船体")
    play(page)
    expect(page.locator("#glossary-wrong")).to_be_visible()  # the model follows no instructions
    assert sent[-1]["glossary"] == {"de": [["hull", "Rumpf"]], "ja": [["hull", "船体"]]}


def test_refused_while_loading(visit: Callable[..., Any]) -> None:
    page = visit()
    sent = watch_sent(page)
    open_options(page)
    page.fill("[name=beta]", "3")
    waiting: list[Any] = []
    page.route("**/v1/talk", lambda route: waiting.append(route))
    play(page)
    expect(page.locator("#beta-wrong")).to_be_visible()
    end = time.monotonic() + SECONDS
    while not waiting:
        assert time.monotonic() < end
        page.wait_for_timeout(20)
    with page.expect_response("**/v1/talk"):
        waiting[0].fulfill(json=shortened(4))
    expect(page.locator("[name=beta]")).to_be_focused()
    expect(page.locator("[name=beta]")).to_be_enabled()
    page.fill("[name=beta]", "")
    play(page)
    expect(page.locator("#state")).to_have_text("Live")
    assert [message["options"] for message in sent if message["type"] == "start"] == [
        {"beta": 3, "end": "model"},
        {"end": "model"},
    ]


def test_typed_into_used_room(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    typed, refused = page.locator("#typed"), page.locator("#refused")
    page.get_by_text("Type", exact=True).click()
    page.fill("[name=room]", "Säle 1")
    with server.socket() as socket:
        socket.start(room="sale-1")
        typed.press_sequentially("we saw\nher")
        expect(refused).to_contain_text("room 'sale-1' is in use")
        typed.press_sequentially(" duck")
        expect(typed).to_be_focused()
        expect(typed).to_have_value("we saw\nher duck")
        expect(page.locator("#take_over-wrong")).to_contain_text("is in use")
        expect(page.locator("#problem")).not_to_be_visible()
    page.fill("[name=room]", "sale-2")
    typed.press_sequentially(" ")
    expect(page.locator(".cell.source.final")).to_have_text("we saw")
    expect(page.locator(".cell.source:not(.final)")).to_have_text("her duck")
    expect(refused).not_to_be_visible()
    expect(typed).to_have_value("her duck ")


@pytest.mark.parametrize("glossary", [False, True])
def test_typed_text_stays_until_form_is_valid(visit: Callable[..., Any], glossary: bool) -> None:
    page = visit()
    page.get_by_text("Type", exact=True).click()
    if glossary:
        open_options(page)
        page.fill("[name=glossary]", "no pair")
    else:
        for _ in range(3):
            page.locator("[name=target]:checked").first.uncheck()
    page.locator("#typed").press_sequentially("we saw\n")
    said = "glossary" if glossary else "Choose at least one language."
    expect(page.locator("#refused")).to_contain_text(said)
    expect(page.locator("#typed")).to_be_focused()
    expect(page.locator("#typed")).to_have_value("we saw\n")
    if glossary:
        page.fill("[name=glossary]", "")
    else:
        page.check("[name=target][value=de]")
    page.locator("#typed").press_sequentially("her duck\n")
    expect(page.locator(".cell.source.final")).to_have_count(2)


def test_typed_text_of_lost_session_stays(visit: Callable[..., Any]) -> None:
    with running(sessions=1) as full, full.socket() as socket:
        socket.start()
        page = visit(full.url)
        page.get_by_text("Type", exact=True).click()
        page.locator("#typed").press_sequentially("we saw\n")
        expect(page.locator("#refused")).to_contain_text("all 1 sessions are in use")
        expect(page.locator("#typed")).to_have_value("we saw\n")
        socket.say("end")
        socket.until("done")
        page.locator("#typed").press_sequentially("her duck\n")
        expect(page.locator(".cell.source.final")).to_have_text(["we saw", "her duck"])
        page.close()  # it would try to reconnect


def test_room_by_its_title(visit: Callable[..., Any]) -> None:
    page = visit()
    sent = watch_sent(page)
    page.fill("[name=room]", "Hall 1")
    play(page)
    expect(page.locator("#links a").first).to_have_attribute("href", re.compile("/watch/hall-1$"))
    expect(page.locator("[name=room]")).to_have_value("hall-1")
    assert next(each for each in sent if each["type"] == "start")["room"] == "hall-1"


def test_languages(visit: Callable[..., Any]) -> None:
    page = visit()
    chips = page.locator(".chip:visible")
    expect(chips.first).to_be_visible()  # the server's offer has come
    names = chips.all_inner_texts()
    assert names[:3] == ["Chinese", "German", "Japanese"] and names[3:] == sorted(names[3:])
    assert "English" not in names
    page.fill("#find", "PORTU")
    expect(chips).to_have_text([*names[:3], "Portuguese"])
    page.fill("#find", "espanol")
    page.press("#find", "Enter")
    expect(page.locator("#find")).to_have_value("")
    assert page.locator("[name=target]:checked").evaluate_all("(all) => all.map((each) => each.value)") == [
        *("zh", "de", "ja", "es")
    ]
    page.select_option("[name=source_language]", "de")
    expect(page.locator(".chip:visible", has_text="German")).to_have_count(0)
    expect(page.locator(".chip:visible", has_text="English")).to_have_count(1)
    expect(page.locator("[name=target]:checked")).to_have_count(3)


def test_two_people_speak_in_turn(visit: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spoken, "_detector", Detector)
    page = visit()
    sent = watch_sent(page)
    page.click("#also > summary")
    page.check("[name=also_spoken][value=de]")
    expect(page.locator("[name=also_spoken][value=en]")).to_be_disabled()  # the first one
    for tag in ("zh", "ja"):
        page.uncheck(f"[name=target][value={tag}]")
    page.check("[name=target][value=en]")
    page.get_by_text("Type", exact=True).click()
    page.locator("#typed").press_sequentially("we see the house.\nwir sehen das haus.\n")
    for tag, text in (("en", "we see the house."), ("de", "wir sehen das haus.")):
        expect(page.locator(final(tag))).to_have_count(2)
        expect(page.locator(final(tag)).filter(has_text=text)).to_have_count(1)
    expect(page.locator(".head > div > span")).to_have_text(["English", "Deutsch"])
    expect(page.locator(".source")).to_have_count(0)
    start = next(each for each in sent if each["type"] == "start")
    assert (start["source_language"], start["also_spoken"], start["targets"]) == ("en", ["de"], ["de", "en"])
    page.reload()
    expect(page.locator("#chosen")).to_have_text("English, German to German, English")
    expect(page.locator(".cell.final")).to_have_count(4)


def test_any_language(visit: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spoken, "_detector", Detector)
    page = visit()
    page.select_option("[name=source_language]", "auto")
    expect(page.locator("#also")).not_to_be_visible()
    for tag in ("de", "zh"):
        page.uncheck(f"[name=target][value={tag}]")
    page.get_by_text("Type", exact=True).click()
    page.locator("#typed").press_sequentially("wir sehen das haus.\n")
    expect(page.locator(".cell.source.final")).to_have_text("wir sehen das haus.")
    expect(page.locator(final("ja"))).to_have_count(1)
    viewer = visit(page.locator("#links a").first.get_attribute("href"))
    viewer.get_by_role("button", name="Original").click()
    expect(viewer.locator(".cell.source.final")).to_have_text("wir sehen das haus.")


def test_language_that_cannot_be_detected(visit: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence says so, and the form can be changed."""
    monkeypatch.setattr(spoken, "_detector", Detector)
    page = visit()
    page.click("#also > summary")
    page.check("[name=also_spoken][value=es]")
    play(page)
    expect(page.locator("#problem span")).to_contain_text("'es' cannot be detected, so it must be the only one")
    expect(page.locator("[name=source_language]")).to_be_enabled()


def test_browser_recognises_one_language(visit: Callable[..., Any]) -> None:
    page = visit(script="window.webkitSpeechRecognition = class {};")
    page.select_option("[name=source_language]", "auto")
    page.get_by_text("Speak", exact=True).click()
    page.click("#listen")
    expect(page.locator("#problem")).to_contain_text("The browser recognises one language at a time.")
    expect(page.locator("#end")).not_to_be_visible()  # no session was begun


def test_a_full_server_says_so(visit: Callable[..., Any]) -> None:
    with running(sessions=1) as full, full.socket() as socket:
        socket.start()
        page = visit(full.url)
        play(page)
        expect(page.locator("#problem")).to_contain_text("all 1 sessions are in use: try again later")
        expect(page.locator(".empty")).to_be_visible()
        expect(page.locator(".play:visible")).to_have_count(1)
        page.click("#problem button")
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
