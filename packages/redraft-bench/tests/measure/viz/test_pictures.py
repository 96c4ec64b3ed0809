"""The files: pages escape what they show and fetch nothing, pictures hold every word, what is missing is said."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

from measure.viz.traces import iterations
from redraft.decoding.types import Provenance
from redraft_bench.viz import figure
from redraft_bench.viz.ddg import graph
from redraft_bench.viz.drafts import ORIGINS, Cell, DraftRow
from redraft_bench.viz.draw import draw_drafts
from redraft_bench.viz.labels import width
from redraft_bench.viz.page import NAMES, drafts_page, graph_page
from redraft_bench.viz.trace import Given, Token

GRAPH = graph(iterations([1] * 4, [5, 9, 9, 9], [5, 6, 7, 9], [5, 6, 7, 8]))
LABELS = {5: "<i>", 6: "$x$ & y", 7: '"q"', 8: "[end]", 9: "other", 1: "pad"}
ROWS = [
    DraftRow("1", 0, "a <source>", False, (Cell("<b>", Token(3, 1, 0.5, Given.ALONE), 'about "<b>"'),), 1),
    DraftRow("1", 1, "a longer source", True, (Cell(" $5", Token(4, 1, 1.0, Provenance.PREVIOUS), "kept"),), 1, 1, 1),
    DraftRow("2", 0, "", False, note="line 3 <is> broken"),
]


class Reader(HTMLParser):
    """Collects the text and the attributes of a page, and checks that its elements are nested."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.attributes, self.open = "", [], []  # type: ignore[var-annotated]
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self.open += [] if tag in ("meta", "col") else [tag]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_graph_page_shows_every_token_escaped() -> None:
    page = graph_page(GRAPH, LABELS, "a <source>", "b & c", "4 tokens")
    read = Reader(page)
    assert "a <source> → b & c" in read.text
    for token in GRAPH.tokens:
        assert LABELS[token.token] in read.text
        assert f"{token.probability:.2f}" in read.text
    assert "other" in read.text  # a guess that changed
    depends = [value for name, value in read.attributes if name == "data-depends"]
    assert depends == ["", "0", "0", "0 1 2"]
    assert "$x$ & y: iteration 2, probability 0.20; waited for <i>" in [value for _name, value in read.attributes]
    assert len(re.findall(r"<path d=\"M[\d.]+ [\d.]+C", page)) == len(GRAPH.tokens)


def test_draft_page() -> None:
    read = Reader(drafts_page(ROWS, "title <x>", "3 updates"))
    for text in ("a <source>", "<b>", " $5", "line 3 <is> broken", "title <x>", "1/1"):
        assert text in read.text
    assert 'about "<b>"' in [value for name, value in read.attributes if name == "data-about"]
    assert ORIGINS[Given.ALONE] in read.text
    assert ORIGINS[Given.BONUS] not in read.text  # the legend has what occurs
    assert ("class", NAMES[Provenance.PREVIOUS]) in read.attributes


@pytest.mark.parametrize("page", [graph_page(GRAPH, LABELS, "a", "b", "c"), drafts_page(ROWS, "a", "b")])
def test_pages_fetch_nothing(page: str) -> None:
    assert not re.search(r"https?:|src=|href=|@import|url\((?!#)", page)
    assert "prefers-color-scheme: dark" in page


def words(path: Path) -> list[str]:
    """The texts of an SVG file."""
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(each.itertext()) for each in found]


def test_long_texts_are_broken_into_lines(tmp_path: Path) -> None:
    path = tmp_path / "drafts.svg"
    row = DraftRow(
        "1", 0, "word " * 40 + "漢字" * 60, False, tuple(Cell(" nine", ROWS[0].cells[0].token, "") for _ in range(40))
    )
    draw_drafts([row], "a", "b").save(path)
    assert all(width(text) <= 72 for text in words(path))
    assert sum(text.count("word") for text in words(path)) == 40
    assert sum(text.count("漢字") for text in words(path)) == 60
    assert words(path).count("nine") == 40


def test_missing_glyphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure, "CJK_FONTS", ())
    for name in ("sheet.png", "sheet.svg"):
        sheet = figure.Sheet(20, 3)
        sheet.text(1, 1, "漢字 漢 x")
        assert sheet.save(tmp_path / name) == "漢字"
    assert "漢字 漢 x" in words(tmp_path / "sheet.svg")
