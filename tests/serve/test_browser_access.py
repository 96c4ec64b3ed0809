"""The page for those who see, hear or move differently, on small screens, and after hours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.serve.browsers import FAKE_SOCKET, expect, final, finals, play, until, wait_for_end, wait_for_finals

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
    expect(page.locator(".earlier:visible").first).to_have_text("Earlier captions are in the transcript.")
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
