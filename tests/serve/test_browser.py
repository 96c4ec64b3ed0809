"""The page in a real browser: Debian's chromium, by Playwright."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from redraft.captions.talk import load_talk
from redraft.protocol import MOST_CHARACTERS
from tests.serve.browsers import SENTENCES, expect, final, finals, play, play_slowly, session_of, until, wait_for_finals
from tests.serve.servers import Running

PHONE = {"width": 360, "height": 740}
TARGETS = ("de", "zh", "ja")


def name_of(page: Any) -> str:
    return str(session_of(page)["name"])


def transcript(server: Running, page: Any) -> dict[str, list[str]]:
    """What the server has, by language."""
    lines = server.ask(f"/v1/sessions/{name_of(page)}/transcript?format=jsonl").text.splitlines()
    captions = [json.loads(line) for line in lines]
    return {tag: [each["text"] for each in captions if each["language"] == tag] for tag in TARGETS}


def check_finals(server: Running, page: Any, number: int = SENTENCES) -> None:
    """Every sentence once in every language, as the server has it."""
    for tag in TARGETS:
        wait_for_finals(page, tag, number)
    texts = {tag: [text.strip() for text in finals(page, tag)] for tag in TARGETS}
    assert texts == {tag: [" ".join(text.split()) for text in all_] for tag, all_ in transcript(server, page).items()}
    assert page.locator(".cell:not(.final)").count() == 0


def test_demo_talk(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    expect(page.get_by_label("API key")).to_have_count(0)
    expect(page.locator("#model")).to_have_text("Translated by demo, a small demo model that makes mistakes.")
    play(page)
    expect(page.locator("#state")).to_have_text("Live")
    check_finals(server, page)
    spoken = [update.text for update in load_talk() if update.final][:SENTENCES]
    assert page.locator(".cell.source").all_inner_texts() == spoken
    expect(page.locator('[data-own="passes"]')).not_to_have_text("–")
    assert page.locator(".bars li").count() == 3
    page.click("text=End session")
    expect(page.locator("#state")).to_have_text("Ended")
    assert page.evaluate("sessionStorage.length") == 0
    link = page.get_attribute("#transcripts a[href*='format=srt']", "href")
    subtitles = server.ask(f"/{link}").text.splitlines()
    assert len([line for line in subtitles if line and "-->" not in line and not line.isdigit()]) == SENTENCES
    assert len(finals(page, "de")) == SENTENCES


def test_talk_sound(visit: Callable[..., Any]) -> None:
    page = visit()
    page.unroute("**/v1/talk")  # at its own speed
    play(page)
    until(page, "recording.currentTime > 1.5")
    kept = "['plan', 'position'].map((name) => JSON.parse(sessionStorage.getItem(`redraft.${name}`)))"
    plan, position, heard = page.evaluate(f"[...{kept}, recording.currentTime]")
    assert plan[position["next"] - 1]["time"] - 0.5 < heard < plan[position["next"]]["time"] + 0.5
    assert page.evaluate("[recording.muted, recording.paused]") == [False, False]
    page.get_by_label("Sound").uncheck()
    assert page.evaluate("recording.muted")
    page.get_by_role("button", name="Stop").click()
    until(page, "recording.paused")


def test_reload(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    play_slowly(page)
    expect(page.locator(final("ja")).first).to_be_visible()
    name = name_of(page)
    assert len(finals(page, "ja")) < SENTENCES  # the talk is not over
    page.reload()
    expect(page.locator("#state")).to_have_text("Live")
    assert name_of(page) == name
    check_finals(server, page)


def test_forgotten_session(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    play_slowly(page)
    expect(page.locator(final("ja")).first).to_be_visible()
    session = server.hub.sessions[name_of(page)]
    server.forget(session)
    check_finals(server, page)
    assert server.hub.sessions[name_of(page)] is not session


def test_typed_text(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    page.get_by_text("Type", exact=True).click()
    page.locator("#typed").press_sequentially("we saw <img src=x onerror=alert(1)>")
    expect(page.locator(".cell.source").first).to_have_text("we saw <img src=x onerror=alert(1)>")
    page.reload()  # what was not finished is, since the box is empty now
    wait_for_finals(page, number=1)
    page.get_by_text("Type", exact=True).click()
    page.locator("#typed").press_sequentially("her duck\nand\n")
    check_finals(server, page, 3)
    assert page.locator("main img").count() == 0


def test_pasted_text(server: Running, visit: Callable[..., Any]) -> None:
    page = visit(tolerated="400")
    page.get_by_text("Paste", exact=True).click()
    page.fill("#pasted", "We saw. " * (MOST_CHARACTERS // 8 + 1))
    page.click("text=Translate >> visible=true")
    expect(page.locator("#problem")).to_contain_text(f"at most {MOST_CHARACTERS} characters")
    page.fill("#pasted", "Dr. Smith saw her duck, e.g. at 3 p.m. in Berlin. And it was.\n\nHer cat too")
    page.uncheck("#spoken")
    page.click("text=Translate >> visible=true")
    check_finals(server, page, 3)
    sources = page.locator(".cell.source").all_inner_texts()
    assert sources == ["Dr. Smith saw her duck, e.g. at 3 p.m. in Berlin.", "And it was.", "Her cat too"]


def test_browser_recognition(server: Running, visit: Callable[..., Any]) -> None:
    heard = """
    window.SpeechRecognition = class {
      start() {
        const result = (transcript, isFinal) => Object.assign([{ transcript }], { isFinal });
        setTimeout(() => this.onresult({ resultIndex: 0, results: [result("we saw", false)] }), 50);
        setTimeout(() => this.onresult({ resultIndex: 0, results: [result("We saw her.", true)] }), 150);
      }
      stop() { this.onend(); }
    };
    """
    page = visit(script=heard)
    page.get_by_text("Speak", exact=True).click()
    page.click("#listen")
    check_finals(server, page, 1)
    expect(page.locator("#listen")).to_have_text("Stop listening")
    page.click("#listen")
    expect(page.locator("#listen")).to_have_text("Listen")


def test_late_recognition(visit: Callable[..., Any]) -> None:
    late = """
    window.SpeechRecognition = class {
      start() {
        setTimeout(() => this.#say("we saw", false), 50);
      }
      stop() {
        const timer = setInterval(() => {
          if (window.wait && document.getElementById("state").textContent !== "Ended") return;
          clearInterval(timer);
          this.#say("We saw her.", true);
          this.onend();
          window.late = true;
        });
      }
      #say(transcript, isFinal) {
        const result = Object.assign([{ transcript }], { isFinal });
        this.onresult({ resultIndex: 0, results: [result] });
      }
    };
    """
    page = visit(script=late)
    page.get_by_text("Speak", exact=True).click()
    for wait in ("false", "true"):  # until the session has ended
        page.evaluate(f"[window.wait, window.late] = [{wait}, false]")
        page.click("#listen")
        expect(page.locator("#state")).to_have_text("Live")
        expect(page.locator(".cell.source")).to_have_text("we saw")
        page.click("text=End session")
        until(page, "window.late")
        expect(page.locator("#state")).to_have_text("Ended")
        expect(page.locator("#problem")).not_to_be_visible()
        assert page.locator(".cell.source").all_inner_texts() == ["we saw"]
        assert page.evaluate("sessionStorage.length") == 0


def test_statistics_by_keyboard(visit: Callable[..., Any]) -> None:
    page = visit()
    expect(page.get_by_text("Play the demo talk", exact=True)).to_be_enabled()
    page.evaluate("document.getElementById('compare').click()")
    for _ in range(20):
        page.keyboard.press("Tab")
        both = "[document.activeElement, document.activeElement.parentElement]"
        assert set(page.evaluate(f"{both}.map((each) => getComputedStyle(each).outlineStyle)")) != {"none"}
        if page.evaluate("document.activeElement.textContent") == "Play the demo talk":
            break
    page.keyboard.press("Enter")
    for figure in ("passes", "lag", "erasure"):
        expect(page.locator(f'[data-plain="{figure}"]')).not_to_have_text("–")
    expect(page.locator('[data-own="passes"]')).not_to_have_text("–")
    assert page.locator("#panel-title").inner_text() == "Statistics"
    assert page.locator("#method-name").inner_text() == "ssbd"
    page.get_by_text("Normalized erasure", exact=True).hover()
    expect(page.locator(".explained")).to_contain_text("Words that were shown and retracted")
    term = page.get_by_text("Model passes", exact=True)
    term.focus()
    expect(page.locator(".explained")).to_contain_text("How often the model ran")
    about = term.get_attribute("aria-describedby")
    assert page.locator(f"#{about}").text_content() == page.locator(".explained").text_content()


def test_dark_and_light(visit: Callable[..., Any]) -> None:
    page = visit(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.click("#theme")
    light = page.evaluate(ground)
    page.reload()
    assert dark != light == page.evaluate(ground)
    expect(page.get_by_role("switch", name="Dark")).not_to_be_checked()
    page.click("#theme")
    expect(page.get_by_role("switch", name="Dark")).to_be_checked()


def test_phone(server: Running, visit: Callable[..., Any]) -> None:
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True)
    page.evaluate("scrollTo(0, 250)")
    play(page)
    check_finals(server, page)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    boxes = [cell.bounding_box() for cell in page.locator(".cell").all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"] for box in boxes)
    assert all(above["y"] + above["height"] <= below["y"] for above, below in pairwise(boxes))
    captions, controls = (page.locator(part).bounding_box() for part in ("#captions", ".controls .card >> nth=0"))
    assert captions["y"] + captions["height"] <= controls["y"]
    assert 0 <= captions["y"] < PHONE["height"] / 2  # seen, though the button that was pressed is below
    page.click("text=Captions only")
    expect(page.locator(".controls")).not_to_be_visible()
    expect(page.locator("header")).not_to_be_visible()
    assert page.locator("#captions").bounding_box()["height"] > 0.75 * PHONE["height"]
    page.keyboard.press("Escape")
    expect(page.locator(".controls")).to_be_visible()
    page.click("text=Captions only")
    page.click("text=Show controls")
    expect(page.locator(".controls")).to_be_visible()


#: The captions in the element of the overlay.
OVERLAY = "document.getElementById('overlay').shadowRoot.querySelector('.overlay')"


def test_viewer_and_overlay(server: Running, visit: Callable[..., Any]) -> None:
    page = visit()
    page.locator(".targets [value=zh]").uncheck()
    page.locator(".targets [value=ar]").check()
    play(page)
    wait_for_finals(page)
    viewer = visit(f"/watch?session={name_of(page)}")
    for tag in ("de", "ja", "ar"):
        wait_for_finals(viewer, tag)
        assert finals(viewer, tag) == finals(page, tag)
    assert viewer.locator(final("ar")).first.get_attribute("dir") == "rtl"
    expect(viewer.locator("textarea, input, select").filter(visible=True)).to_have_count(0)
    options = "size=30&lines=1&colour=ff0&outline=00f&background=000000cc&align=start&clear=0"
    viewer.goto(f"{server.url}/overlay?session={name_of(page)}&language=ja&{options}")
    wait_for_finals(viewer)
    assert finals(viewer, "ja")[-1] == finals(page, "ja")[-1]
    style = "(({ fontSize, color, textAlign }) => [fontSize, color, textAlign])(getComputedStyle(OF))"
    found = viewer.evaluate(style.replace("OF", OVERLAY))
    assert found == ["30px", "rgb(255, 255, 0)", "start"]
    ground = "getComputedStyle(OF).backgroundColor"
    assert viewer.evaluate(ground.replace("OF", "document.body")) == "rgba(0, 0, 0, 0)"
    assert viewer.evaluate(ground.replace("OF", f"{OVERLAY}.firstElementChild")) == "rgba(0, 0, 0, 0.8)"
    assert viewer.locator("#overlay").bounding_box()["height"] <= 60
    viewer.goto(f"{server.url}/overlay?session={name_of(page)}&language=<img src=x>")
    expect(viewer.locator("#problem")).to_contain_text("language must be languages of the session")
    assert viewer.locator("img, b").count() == 0
