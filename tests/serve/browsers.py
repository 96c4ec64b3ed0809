"""Steps of tests on the page in a real browser."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import pytest

from redraft.captions.talk import load_talk
from tests.programs import program
from tests.serve.servers import SECONDS

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra browser")
expect = sync_api.expect
CHROMIUM = program("chromium")
#: What root needs.
SANDBOX = ["--no-sandbox"] if os.geteuid() == 0 else []

SENTENCES = 4

#: In place of the browser's websocket: a server that says what `fake` holds, and then repeats what it hears.
FAKE_SOCKET = """
window.WebSocket = class {
  static OPEN = 1;
  readyState = 1;
  constructor() { setTimeout(() => this.onopen()); }
  close() {}
  say(message) { this.onmessage({ data: JSON.stringify(message) }); }
  send(data) {
    const { type, targets, ...said } = JSON.parse(data);
    if (type === "start") this.begin(targets);
    for (const language of type === "update" ? this.targets : []) {
      this.say({ type: said.final ? "final" : "partial", ...said, language, text: said.text, unstable: " ..." });
    }
  }
  begin(targets) {
    this.targets = targets;
    setTimeout(() => {
      const names = { session: "a".repeat(32), token: "b".repeat(32) };
      this.say({ type: "started", ...names, targets, resumed: false, message_bytes: 65536 });
      const begun = performance.now();
      for (const message of window.fake(targets)) this.say(message);
      window.spent = performance.now() - begun;
    });
  }
};
"""


@contextmanager
def deadline(browser: Any) -> Iterator[None]:
    """Kill a browser that the block needs for too long; all that waits for it then fails.

    What a page evaluates has no deadline in Playwright, and neither has closing it.
    """
    (process,) = [
        each["id"]
        for each in browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
        if each["type"] == "browser"
    ]
    killer = threading.Timer(9 * SECONDS, os.kill, (process, signal.SIGKILL))
    killer.start()
    try:
        yield
    finally:
        killer.cancel()


@contextmanager
def chromium(*arguments: str) -> Iterator[Any]:
    """A browser while the block lasts; expectations of its pages are waited for as long as all else."""
    sync_api.expect.set_options(timeout=1000 * SECONDS)
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=[*SANDBOX, *arguments])
        try:
            yield found
        finally:
            found.close()


def shortened(times: float) -> list[dict[str, Any]]:
    """The first sentences of the talk, so many times faster."""
    updates = [asdict(update) for update in load_talk() if int(update.utterance) <= SENTENCES]
    return [{**update, "time": update["time"] / times} for update in updates]


def play(page: Any) -> None:
    page.click("text=Play the demo talk")


def play_slowly(page: Any) -> None:
    """Play the demo talk so that there is time to do something in the middle of it, on a busy machine too."""
    page.route("**/v1/talk", lambda route: route.fulfill(json=shortened(4)))
    play(page)


def finals(page: Any, tag: str) -> list[str]:
    found: list[str] = page.locator(final(tag)).all_inner_texts()
    return found


def final(tag: str) -> str:
    """The selector of final captions of a language."""
    return f".cell.final[lang={tag}]"


def until(page: Any, expression: str) -> None:
    """Wait for something to hold in the page, whose policy lets no text be evaluated from within."""
    end = time.monotonic() + SECONDS
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)


def wait_for_finals(page: Any, tag: str = "ja", number: int = SENTENCES) -> None:
    expect(page.locator(final(tag))).to_have_count(number)


def wait_for_end(page: Any) -> None:
    """Wait until the demo talk has been played to its end, and all of it is translated."""
    kept = ", ".join(f"sessionStorage.getItem('redraft.{name}')" for name in ("session", "plan", "open"))
    until(page, f"(([session, plan, open]) => session && plan === null && open === '{{}}')([{kept}])")


def watch_sent(page: Any) -> list[dict[str, Any]]:
    """The messages that a page sends over websockets from now on; the list grows while the page is waited for."""
    sent: list[dict[str, Any]] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(json.loads(frame))))
    return sent


def session_of(page: Any) -> dict[str, Any]:
    """What the page keeps of its session."""
    found: dict[str, Any] = json.loads(page.evaluate("sessionStorage.getItem('redraft.session')"))
    return found
