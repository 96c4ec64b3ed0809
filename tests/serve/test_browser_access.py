"""Accessibility of the page, small screens, and long sessions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.serve.browsers import (
    FAKE_SOCKET,
    expect,
    final,
    finals,
    play,
    shortened,
    until,
    wait_for_end,
    wait_for_finals,
)
from tests.serve.servers import Running, running

TEXTS = """
const TEXTS = {
  de: "Straßenbahnhaltestellen".repeat(12),
  ar: "رأينا بطتها مع Redraft.",
  he: "ראינו את הברווז שלה.",
  ja: "短い文。",
};
const finalOf = (number, language) =>
  ({ utterance: `f${number}`, seq: 0, language, text: `${number} ${TEXTS[language]}` });
window.fake = (targets) => Array.from({ length: MANY }, (_, number) =>
  targets.map((language) => ({ type: "final", ...finalOf(number, language) }))
).flat();
"""
VIEW = "document.querySelector('.view')"


def open_fake(visit: Callable[..., Any], many: int, *targets: str, **options: Any) -> Any:
    """The page, with so many captions in these languages."""
    page = visit(script=TEXTS.replace("MANY", str(many)) + FAKE_SOCKET, **options)
    for tag in ("de", "zh", "ja"):
        page.uncheck(f".targets [value={tag}]")
    for tag in targets:
        page.check(f".targets [value={tag}]")
    page.get_by_text("Type", exact=True).click()
    page.locator("#typed").press_sequentially("s")
    until(page, "window.spent !== undefined")
    return page


def test_long_session(visit: Callable[..., Any]) -> None:
    page = open_fake(visit, 1000, "ar", "he", "ja")
    assert page.evaluate("window.spent") < 10_000  # milliseconds for 3,000 captions; about 200 on an idle machine
    assert page.locator(".utterance").count() == 500  # of which the first is still open
    assert page.locator(final("ja")).first.inner_text().startswith("501 ")
    assert page.evaluate("document.querySelectorAll('*').length") < 6000
    expect(page.locator(".earlier:visible").first).to_have_text("Earlier captions")
    page.locator("#typed").press_sequentially("aw her\n", timeout=10_000)
    expect(page.locator(final("ja")).first).to_have_text("saw her")
    until(page, f"{VIEW}.scrollHeight - {VIEW}.scrollTop - {VIEW}.clientHeight < 2")


def test_scrolled_up(visit: Callable[..., Any]) -> None:
    page = open_fake(visit, 500, "ja")
    top = "document.querySelectorAll('.cell.final[lang=ja]')[100].getBoundingClientRect().top"
    until(page, f"{VIEW}.scrollTop > 1000")
    page.locator(".view").hover()
    page.mouse.wheel(0, -200)
    expect(page.locator(".newest")).to_be_visible()
    page.evaluate(f"{VIEW}.scrollTop = 1000")
    page.evaluate("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
    row = page.locator(final("ja")).nth(100).element_handle()
    before = page.evaluate(top)
    page.locator("#typed").press_sequentially("aw\nher\n")  # two more, so the two oldest go
    expect(page.locator(final("ja")).last).to_have_text("her")
    assert abs(row.evaluate("(row) => row.getBoundingClientRect().top") - before) < 2
    page.set_viewport_size({"width": 1280, "height": 700})
    page.evaluate("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
    assert page.evaluate(f"{VIEW}.scrollTop") < 1100


def test_texts_run_from_right_to_left(visit: Callable[..., Any]) -> None:
    page = open_fake(visit, 1, "ar", "he")
    for tag in ("ar", "he"):
        cell = page.locator(final(tag))
        assert cell.get_attribute("dir") == "rtl"
        right = "(row) => { const range = document.createRange(); range.selectNodeContents(row); return "
        ends = cell.evaluate(right + "[range.getBoundingClientRect().right, row.getBoundingClientRect().right]; }")
        assert abs(ends[0] - ends[1]) < 1
    page.fill("#typed", "مرحبا")
    assert page.evaluate("document.getElementById('typed').matches(':dir(rtl)')")


def test_narrow_screens(visit: Callable[..., Any]) -> None:
    page = open_fake(visit, 2, "de", "ar")
    for width, height in ((640, 400), (320, 640)):  # the first is 1280 x 800 at 200 %
        page.set_viewport_size({"width": width, "height": height})
        until(page, f"document.documentElement.scrollWidth === {width}")
        for view in page.locator(".view").all():
            assert view.evaluate("(view) => view.scrollWidth <= view.clientWidth")
    page.click("text=End session")
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_focus(visit: Callable[..., Any]) -> None:
    page = visit()
    page.route("**/v1/talk", lambda route: route.fulfill(json=shortened(0.1)))  # it must still play when it is stopped
    for key in ("Play the demo talk", "Stop"):
        page.get_by_role("button", name=key, exact=True).focus()
        page.keyboard.press("Enter")
        other = f"document.activeElement.textContent !== '{key}'"
        until(page, f"document.activeElement.matches('.play, .stop') && {other}")
    page.locator("#end").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_have_text("Ended")
    assert page.evaluate("document.activeElement.name") == "kind"


def test_screen_reader(visit: Callable[..., Any]) -> None:
    page = visit()
    play(page)
    wait_for_end(page)
    read = page.locator("#announcer p").all_inner_texts()
    assert read and set(read) <= {text for tag in ("de", "zh", "ja") for text in finals(page, tag)}
    assert page.locator("#announcer p").first.get_attribute("lang") in ("de", "zh", "ja")
    assert page.get_attribute("#announcer", "aria-live") == "polite"
    assert page.locator("[aria-live] .cell, .cell[aria-live]").count() == 0
    page.reload()
    expect(page.locator("#state")).to_have_text("Live")
    wait_for_finals(page)
    assert page.locator("#announcer p").count() == 0  # they were read out before


def test_failed_translation(visit: Callable[..., Any]) -> None:
    failing = """
    window.fake = (targets) => [
      { type: "final", utterance: "f", seq: 0, language: "de", text: "Wir sahen." },
      { type: "error", code: "translation", message: "nothing came", utterance: "f", language: "ja", final: true },
    ];
    """
    page = visit(script=failing + FAKE_SOCKET)
    page.get_by_text("Type", exact=True).click()
    page.locator("#typed").press_sequentially("s")
    failed = page.locator(".utterance", has_text="Wir sahen.").locator("[lang=ja]")
    expect(failed).to_have_text("Not translated")
    assert failed.get_attribute("class") == "cell failed"
    expect(page.locator("#problem")).to_contain_text("nothing came")


LANGUAGES = "ar bn cs da de el es fa fi fr he hi hu id it ja ko nl pl pt".split()


def test_many_languages_leave_room(visit: Callable[..., Any]) -> None:
    with running(targets=32, slots=64) as wide, wide.socket() as socket:
        name = socket.start(*LANGUAGES)["session"]
        socket.say("update", utterance="1", seq=0, text="we saw", final=True)
        socket.until("final")
        for width, height, least in ((844, 390, 0.6), (640, 360, 0.6), (320, 568, 0.6), (390, 844, 0.7)):
            page = visit(f"{wide.url}/watch?session={name}", viewport={"width": width, "height": height})
            expect(page.locator(".cell.final:visible")).to_have_count(1)
            assert page.evaluate(f"{VIEW}.clientHeight") > least * height
            assert page.evaluate("document.documentElement.scrollWidth") == width
            last = page.locator("#languages button").nth(len(LANGUAGES) - 1)
            last.click()
            expect(last).to_have_attribute("aria-pressed", "true")
            page.close()


def test_forced_colours_show_what_is_on(visit: Callable[..., Any]) -> None:
    page = visit(forced_colors="active")
    background = "(each) => getComputedStyle(each).backgroundColor"
    kinds = [page.locator(f".kinds {each} + span").first for each in (":checked", ":not(:checked)")]
    assert kinds[0].evaluate(background) != kinds[1].evaluate(background)
    pause = page.locator("#pause")
    before = pause.evaluate(background)
    pause.evaluate("(each) => each.setAttribute('aria-pressed', 'true')")
    until(page, f"({background})(document.getElementById('pause')) !== {json.dumps(before)}")


def test_skip_link_is_on_top(visit: Callable[..., Any]) -> None:
    page = visit()
    page.keyboard.press("Tab")
    skip = page.locator(".skip")
    expect(skip).to_be_focused()
    assert skip.evaluate(
        """(link) => {
          const { x, y } = link.getBoundingClientRect();
          return document.elementFromPoint(x + 4, y + 4) === link;
        }"""
    )


def test_focus_after_dismissed_problem(visit: Callable[..., Any]) -> None:
    page = visit(script="delete window.webkitSpeechRecognition; delete window.SpeechRecognition;")
    page.get_by_text("Speak", exact=True).click()
    page.locator("#listen").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Close").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.localName") == "main"


def test_overlay_is_a_table(server: Running, visit: Callable[..., Any]) -> None:
    with server.socket() as socket:
        name = socket.start("ar")["session"]
        socket.say("update", utterance="1", seq=0, text="we saw", final=True)
        page = visit(f"/overlay?session={name}&clear=0")
        expect(page.get_by_role("table", name="Captions").get_by_role("rowgroup").get_by_role("row")).to_have_count(1)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        watch = visit(f"/watch?session={name}&language=en&language=ar")
        title = watch.locator(".head > [data-key=ar]")
        expect(title).to_have_attribute("dir", "rtl")
    expect(visit("/watch").get_by_role("main").locator("#which")).to_be_visible()


def test_transcript_is_linked_from_a_long_page(server: Running, visit: Callable[..., Any]) -> None:
    with server.socket() as socket:
        name = socket.start("de")["session"]
        page = visit(f"/watch?session={name}")
        until(page, "document.querySelector('.view') !== null")
        link = page.evaluate(
            """async (name) => {
              const { Columns } = await import("/js/captions/columns.js");
              const [place, region] = ["captions", "announcer"].map((id) => document.getElementById(id));
              const columns = new Columns(place, region, ["de"], "en", () => `v1/sessions/${name}/transcript`);
              for (let n = 0; n < 502; n++) columns.final({ utterance: `${n}`, language: "de", text: "Wir" });
              return document.querySelector(".earlier:not([hidden]) a").href;
            }""",
            name,
        )
        assert link == f"{server.url}/v1/sessions/{name}/transcript"
