"""What reading mode shows, and when: one table, which `RowsWriter` and the pages both run.

A step is a time in seconds, a caption that comes then (by default partial, German and of utterance 1) or null, and the
lines that appear, with their names.  Lines have 16 cells.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from redraft.captions.events import Caption, Event
from redraft.captions.formats.rows import RowsWriter
from redraft.captions.formats.write import Writer
from tests.serve.javascript import in_node

SCENARIOS: dict[str, list[list[Any]]] = json.loads(Path(__file__).with_name("reading.json").read_text("utf-8"))
WIDTH = 16
PAGE = """
let now = 0, tick;
performance.now = () => 1000 * now;
globalThis.setInterval = (look) => (tick = look);
const source = new EventTarget(), lines = new module.ReadingLines(source, 16), shown = [];
lines.addEventListener("final", ({ detail }) => shown.push(`${detail.utterance} ${detail.text}`));
return given.map(([time, caption]) => {
  now = time;
  if (!caption) tick();
  else {
    const detail = { utterance: "1", language: "de", ...caption };
    source.dispatchEvent(new CustomEvent(caption.final ? "final" : "partial", { detail }));
  }
  return shown.splice(0);
});
"""


class Loop:
    """An event loop whose time passes when told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, seconds: float, run: Callable[[], None]) -> Timer:
        self.timers.append((self.now + seconds, run))
        return Timer(self, self.timers[-1])

    def pass_to(self, now: float) -> None:
        """Run the timers that are due until then."""
        while due := [each for each in self.timers if each[0] <= now]:
            first = min(due, key=lambda each: each[0])
            self.timers.remove(first)
            self.now = first[0]
            first[1]()
        self.now = now


class Timer(NamedTuple):
    loop: Loop
    entry: tuple[float, Callable[[], None]]

    def cancel(self) -> None:
        if self.entry in self.loop.timers:
            self.loop.timers.remove(self.entry)


class Shown(Writer):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, event: Event) -> None:
        assert isinstance(event, Caption) and event.final
        self.lines.append(f"{event.utterance} {event.text}")

    def close(self) -> None:
        """Nothing is held back."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_writer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, shown = Loop(), Shown()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    writer, found = RowsWriter(shown, WIDTH, lambda: loop.now, live=True), list[list[str]]()
    for time, caption, _ in SCENARIOS[name]:
        loop.pass_to(time)
        if caption:
            fields = {"utterance": "1", "language": "de", "final": False, **caption}
            writer.write(Caption(seq=0, time=None, **fields))
        found.append(shown.lines)
        shown.lines = []
    assert found == [lines for _, _, lines in SCENARIOS[name]]


@pytest.mark.parametrize("name", SCENARIOS)
def test_page(name: str, tmp_path: Path) -> None:
    (found,) = in_node(tmp_path, "captions/reading", PAGE, [SCENARIOS[name]])
    assert found == [lines for _, _, lines in SCENARIOS[name]]
