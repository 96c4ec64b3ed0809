"""Reading mode on the speaker's own page: complete lines that never change, of what was said too."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.serve.browsers import expect, play, session_of, wait_for_end
from tests.serve.servers import Running

#: Keeps every state of the cells of each language.
KEEP = """() => {
  window.seen = { "": [], de: [] };
  const of = { "": ".cell.source", de: ".cell[lang=de]" };
  const look = () => {
    for (const [tag, cells] of Object.entries(of)) {
      window.seen[tag].push([...document.querySelectorAll(cells)].map((cell) => cell.textContent));
    }
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def lines(page: Any, cells: str) -> list[str]:
    found: list[str] = page.locator(cells).all_inner_texts()
    return [line for line in found if line.strip()]


def test_lines_of_speaker(server: Running, visit: Callable[..., Any]) -> None:
    page = visit("/?reading=20")
    page.evaluate(KEEP)
    play(page)
    wait_for_end(page)
    spoken = server.hub.find(session_of(page)["name"]).transcript
    seen = page.evaluate("window.seen")
    for states in seen.values():
        for before, after in pairwise(states):
            changed = [(old, new) for old, new in zip(before, after, strict=False) if old not in ("", new)]
            assert changed == []
    for cells in (".cell.source", ".cell[lang=de]"):
        shown = lines(page, cells)
        assert len(shown) > 4 and all(len(line) <= 20 or " " not in line.strip() for line in shown)
    finals = [caption for caption in spoken.finals if caption.language == "de"]
    assert lines(page, ".cell.source")[-1] in finals[-1].source
    expect(page.locator("#edit")).not_to_be_visible()
    count = len(lines(page, ".cell[lang=de]"))
    page.reload()
    expect(page.locator("#state")).to_have_text("Live")
    assert len(lines(page, ".cell[lang=de]")) == pytest.approx(count, abs=count / 2)
    assert page.evaluate("getComputedStyle(document.querySelector('.cell'), '::after').content") == "none"
