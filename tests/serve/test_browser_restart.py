"""Pages during a restart of the server: they follow to the end without moving."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.serve.browsers import expect, session_of, until, wait_for_finals
from tests.serve.servers import running

SIZES = ((390, 844), (1280, 800))
#: Sums up layout shift (https://wicg.github.io/layout-instability/) that no click or key explains.
SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const { value, hadRecentInput, startTime, sources } of list.getEntries())
    if (!hadRecentInput) window.shifts.push([value, startTime, sources.map(({ node }) => node?.id || node?.className)]);
}).observe({ type: "layout-shift", buffered: true });
"""
#: Keeps the milliseconds of tasks that block the page.
LONG_TASKS = """
window.long = [];
const keep = (list) => window.long.push(...list.getEntries().map(({ duration }) => duration));
new PerformanceObserver(keep).observe({ type: "longtask" });
"""
VIEW = "document.querySelector('.view')"
AT_END = f"{VIEW} && {VIEW}.scrollHeight - {VIEW}.scrollTop - {VIEW}.clientHeight < 2"
BEFORE, AFTER = 24, 27


def paste(page: Any, sentences: int) -> None:
    page.get_by_text("Paste", exact=True).click()
    page.fill("#pasted", "We saw her duck under the old table. " * sentences)
    page.uncheck("#spoken")
    page.click("text=Translate >> visible=true")


def talk(page: Any, first: int, end: int) -> None:
    """Type sentences, each once the one before is translated."""
    page.get_by_text("Type", exact=True).click()
    for number in range(first, end):
        page.fill("#typed", "we saw her duck under the old table\n")
        wait_for_finals(page, "ja", number + 1)


def check(pages: dict[str, Any], number: int) -> None:
    """All captions have come, and the newest is visible."""
    for page in pages.values():
        wait_for_finals(page, "de", number)
        until(page, AT_END)


def test_restart(visit: Callable[..., Any]) -> None:
    tolerated = "ERR_CONNECTION_REFUSED|WebSocket connection|404"
    speakers, viewers = {}, {}
    with running(busy=1.0) as server:
        for width, height in SIZES:
            size = {"width": width, "height": height}
            page = visit(server.url, SHIFTS, tolerated, viewport=size)
            talk(page, 0, BEFORE)
            expect(page.locator("#state")).to_have_text("Live")
            speakers[f"speaker {width}"] = page
            address = f"{server.url}/watch?session={session_of(page)['name']}&language=de"
            viewers[f"viewer {width}"] = visit(address, SHIFTS, tolerated, viewport=size)
        pages = speakers | viewers
        check(pages, BEFORE)
        for page in pages.values():  # a slow machine moves the page longer after the click that began the session
            page.evaluate("window.shifts = []")
    for page in pages.values():
        expect(page.locator("#state")).to_have_text("Reconnecting")
        expect(page.locator("#problem:visible, #notice:visible")).to_have_text(re.compile("^Reconnecting…"))
    with running(busy=1.0, port=server.port):
        for page in pages.values():
            expect(page.locator("#state")).to_have_text("Live")
            expect(page.locator("#problem:visible, #notice:visible")).to_have_count(0)
        for page in speakers.values():
            talk(page, BEFORE, AFTER)
        check(pages, AFTER)
        shifts = {name: page.evaluate("window.shifts") for name, page in pages.items()}
    moved = {name: each for name, each in shifts.items() if sum(value for value, *_ in each) >= 0.05}
    assert not moved


def test_banner_moves_nothing(visit: Callable[..., Any]) -> None:
    page = visit("/watch?session=" + "a" * 32, tolerated="404")
    expect(page.locator("#notice")).to_have_text("Waiting for the session to start…")
    page = visit()
    expect(page.locator("main")).to_be_visible()  # it is hidden until the settings have come
    top = page.locator("main").bounding_box()
    page.evaluate(
        """async () => {
          const { notice, problem } = await import("/js/pages/status.js");
          problem("Something went wrong.");
          notice("Captions are behind.", "lag");
          notice("Reconnecting…");
        }"""
    )
    expect(page.locator("#notice")).to_have_text("Reconnecting…")  # the connection comes first
    assert page.locator("main").bounding_box() == top
    page.evaluate("import('/js/pages/status.js').then(({ notice }) => notice(''))")
    expect(page.locator("#notice")).to_have_text("Captions are behind.")


def test_follow_end(visit: Callable[..., Any]) -> None:
    page = visit()
    paste(page, 20)
    wait_for_finals(page, "de", 20)
    until(page, AT_END)
    page.set_viewport_size({"width": 1280, "height": 500})
    paste(page, 3)
    wait_for_finals(page, "de", 23)
    until(page, AT_END)
    page.evaluate(f"{VIEW}.scrollTop -= 200")  # not by the reader
    paste(page, 3)
    wait_for_finals(page, "de", 26)
    until(page, AT_END)
    page.locator(".view").focus()
    page.keyboard.press("PageUp")
    expect(page.locator(".newest")).to_be_visible()
    paste(page, 3)
    wait_for_finals(page, "de", 29)
    assert not page.evaluate(AT_END)


def test_long_text_at_once(visit: Callable[..., Any]) -> None:
    with running(updates_per_second=1000, busy=1000) as quick:
        page = visit(quick.url, script=LONG_TASKS, tolerated="ERR_CONNECTION_REFUSED|WebSocket connection")
        for tag in ("zh", "ja"):
            page.uncheck(f".targets [value={tag}]")
        paste(page, 540)
        progress = page.locator("#progress")
        expect(progress).to_be_visible()
        expect(page.locator(".progress span")).to_contain_text("of 540 sentences")
        expect(progress).not_to_be_visible(timeout=200_000)
        until(page, "document.querySelectorAll('.cell:not(.final)').length === 0")
        expect(page.locator(".utterance")).to_have_count(500)
        expect(page.locator(".cell.source.final")).to_have_count(500)
        lines = quick.ask(f"/v1/sessions/{session_of(page)['name']}/transcript").text.splitlines()
        assert len(lines) == 540
        assert page.evaluate("Math.max(0, ...window.long)") < 2000  # milliseconds; one of 200 on an idle machine


def test_shorter_caption_moves_nothing(visit: Callable[..., Any]) -> None:
    page = visit("/watch?session=" + "a" * 32, tolerated="404")
    shorten = """async () => {
          const { Columns } = await import("/js/captions/columns.js");
          document.getElementById("stage").hidden = false;
          const [place, region] = ["captions", "announcer"].map((id) => document.getElementById(id));
          const columns = new Columns(place, region, ["de", "ja"], "en");
          const caption = (language, text) => ({ utterance: "1", language, text, unstable: "" });
          const tops = () => [...document.querySelectorAll(".cell")].map((cell) => cell.getBoundingClientRect().y);
          columns.partial(caption("de", "Wir sahen ihre Ente unter dem alten Tisch. ".repeat(9)));
          columns.partial(caption("ja", "見た"));
          await new Promise(requestAnimationFrame);
          const before = tops();
          columns.partial(caption("de", "Wir"));
          columns.final(caption("de", "Wir"));
          return [before, tops()];
        }"""
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        before, after = page.evaluate(shorten)
        assert after == before
        page.reload()


def test_finished_row_leaves_no_hole(visit: Callable[..., Any]) -> None:
    page = visit("/watch?session=" + "a" * 32, tolerated="404")
    shrink = """async () => {
          const { Columns } = await import("/js/captions/columns.js");
          document.getElementById("stage").hidden = false;
          const [place, region] = ["captions", "announcer"].map((id) => document.getElementById(id));
          const columns = new Columns(place, region, ["de"], "en");
          const say = (kind, utterance, text, language = "de") =>
            columns[kind]({ utterance, language, text, unstable: "" });
          const height = (n) => document.querySelectorAll(".utterance")[n].getBoundingClientRect().height;
          say("final", "1", "Wir");
          say("final", "1", "we", "en");
          say("partial", "2", "Wir sahen ihre Ente unter dem alten Tisch. ".repeat(9));
          say("final", "2", "we", "en");
          await new Promise(requestAnimationFrame);
          say("final", "2", "Wir");
          return [height(0), height(1)];
        }"""
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        usual, shrunk = page.evaluate(shrink)
        assert abs(usual - shrunk) <= 1
        page.reload()
