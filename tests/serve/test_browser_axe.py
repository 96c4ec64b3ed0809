"""Every page in its states, judged by axe: on a phone and a desktop; light, dark, and in forced colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from redraft.protocol import new_token, public_name
from tests.serve.browsers import expect, play, wait_for_end, wait_for_finals
from tests.serve.servers import Running, running

axe = pytest.importorskip("axe_playwright_python.base", reason="needs the extra browser")

SIZES = {"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 800}}
COLOURS = {
    "light": {"color_scheme": "light", "forced_colors": "none"},
    "dark": {"color_scheme": "dark", "forced_colors": "none"},
    "forced": {"color_scheme": "light", "forced_colors": "active"},
}
#: What axe finds; only what depends on colours is looked for again in other colours.
RUN = """([part, rules]) => axe.run(part, { resultTypes: ["violations"], ...(rules && { runOnly: rules }) })
    .then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map((each) => each.html)]))"""
OF_COLOURS = ["color-contrast", "link-in-text-block"]
#: Sizes and colours: no colour depends on the size.
LOOKS = (("phone", "light"), ("phone", "dark"), ("desktop", "light"), ("desktop", "forced"))
SOURCES = ("Type", "Paste", "Speak")
#: As many as a phone has no room for.
MANY = "de ar ja fr es it pt nl pl cs uk ru tr he hi ko sv fi da th".split()

#: Complaint about a style of axe's own, with which it sees the rules of the element.
OWN = "Applying inline style"


class Judge:
    """Opens pages and keeps what axe finds, by state and setting."""

    def __init__(self, visit: Callable[..., Any]) -> None:
        self._visit = visit
        self.found: dict[str, Any] = {}

    def open(self, path: str, tolerated: str = "nothing") -> Any:
        page = self._visit(path, tolerated=tolerated)
        page.evaluate(axe.AXE_SCRIPT)
        return page

    def look(self, page: Any, state: str, part: str = "html") -> None:
        """Judge a page, or only the part that has changed."""
        for size, colours in LOOKS:
            page.set_viewport_size(SIZES[size])
            page.emulate_media(**COLOURS[colours])
            rules = None if colours == "light" else OF_COLOURS
            for _ in range(10):  # the browser takes a moment to apply the colours
                if not (violations := page.evaluate(RUN, [part, rules])):
                    break
                page.wait_for_timeout(100)
            else:
                self.found[f"{state}, {size}, {colours}"] = violations


@pytest.fixture
def judge(visit: Callable[..., Any]) -> Judge:
    return Judge(visit)


def test_page(judge: Judge) -> None:
    page = judge.open("/")
    for details in page.locator("details").all():
        details.evaluate("(details) => (details.open = true)")
    judge.look(page, "Talk")
    for kind in SOURCES:
        page.get_by_text(kind, exact=True).click()
        judge.look(page, kind, "[aria-labelledby=source-title]")
    page.get_by_text("Talk", exact=True).click()
    page.fill("[name=beta]", "3")
    play(page)
    expect(page.locator("#beta-wrong")).to_be_visible()
    judge.look(page, "refused", "#wanted")
    page.fill("[name=beta]", "")
    play(page)
    wait_for_end(page)
    judge.look(page, "captions")
    page.click("text=Hide or correct")
    judge.look(page, "editing", ".stage")
    page.locator(".cell.final").last.click()
    expect(page.locator("#editor")).to_be_visible()
    judge.look(page, "editor", "#editor")
    page.keyboard.press("Escape")
    page.click("text=Pause for viewers")
    expect(page.locator("#paused")).to_be_visible()
    page.get_by_role("button", name="QR code").click()
    judge.look(page, "paused, with a QR code")
    page.keyboard.press("Escape")
    page.click("text=Captions only")
    judge.look(page, "captions only")
    page.keyboard.press("Escape")
    page.click("text=End session")
    expect(page.locator("#state")).to_have_text("Ended")
    judge.look(page, "ended", "header")
    assert judge.found == {}


def test_others(judge: Judge, server: Running) -> None:
    for path in (
        *("/watch", "/docs", "/overlay", "/overlay-form?room=hall-1", "/overlay?room=hall-1&size=x", "/nothing/here"),
        *("/rooms", "/rooms/hall-1", "/watch?session=" + "a" * 32),
    ):
        page = judge.open(path, tolerated=f"404|{OWN}")
        page.wait_for_load_state("networkidle")
        judge.look(page, path)
    assert judge.found == {}


def test_viewers(judge: Judge) -> None:
    token = new_token()
    query = f"session={public_name(token)}"
    with running(targets=len(MANY), busy=1.0) as server, server.socket() as socket:
        socket.start(*MANY, token=token)
        socket.say("update", utterance="1", seq=0, text="we saw her duck", final=True)
        socket.until("final")
        socket.say("update", utterance="2", seq=0, text="it was", final=False)
        page = judge.open(f"{server.url}/watch?{query}&language=ar")
        wait_for_finals(page, "ar", 1)
        judge.look(page, "a language")
        page.click("text=Side by side")
        judge.look(page, "side by side")
        page.close()
        page = judge.open(f"{server.url}/overlay?{query}&language=de&clear=0", tolerated=OWN)
        wait_for_finals(page, "de", 1)
        judge.look(page, "overlay")
        page.close()
        page = judge.open(f"{server.url}/overlay-form?{query}")
        expect(page.locator("main")).to_be_visible()
        page.select_option("[name=box]", "yes")
        judge.look(page, "overlay form")
        page.close()
    assert judge.found == {}
