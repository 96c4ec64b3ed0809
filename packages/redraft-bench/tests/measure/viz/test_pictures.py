"""Files of pictures: they contain every word, and missing dependencies are reported."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from measure.viz.traces import iterations
from redraft.decoding.types import Provenance
from redraft_bench.viz import figure
from redraft_bench.viz.ddg import graph
from redraft_bench.viz.drafts import ORIGINS, Cell, DraftRow
from redraft_bench.viz.draw import draw_drafts, draw_graph
from redraft_bench.viz.labels import width
from redraft_bench.viz.trace import Given, Token

GRAPH = graph(iterations([1] * 4, [5, 9, 9, 9], [5, 6, 7, 9], [5, 6, 7, 8]))
LABELS = {5: "<i>", 6: "$x$ & y", 7: '"q"', 8: "[end]", 9: "other", 1: "pad"}
ROWS = [
    DraftRow("1", 0, "a <source>", False, (Cell("<b>", Token(3, 1, 0.5, Given.ALONE)),), 1),
    DraftRow("1", 1, "a longer source", True, (Cell(" $5", Token(4, 1, 1.0, Provenance.PREVIOUS)),), 1, 1, 1),
    DraftRow("2", 0, "", False, note="line 3 <is> broken"),
]


def test_graph_has_every_token(tmp_path: Path) -> None:
    draw_graph(GRAPH, LABELS, "a <source>", "b & c", "4 tokens").save(tmp_path / "graph.svg")
    found = words(tmp_path / "graph.svg")
    assert {"a <source>", "→ b & c", "4 tokens", "other"} <= {*found}  # other is a guess that changed
    for token in GRAPH.tokens:
        assert LABELS[token.token] in found


def test_drafts_and_legend(tmp_path: Path) -> None:
    draw_drafts(ROWS, "title <x>", "3 updates").save(tmp_path / "drafts.svg")
    found = words(tmp_path / "drafts.svg")
    assert {"a <source>", "<b>", "$5", "line 3 <is> broken", "title <x>", "1/1", ORIGINS[Given.ALONE]} <= {*found}
    assert ORIGINS[Given.BONUS] not in found  # the legend has what occurs


def words(path: Path) -> list[str]:
    """The texts of an SVG file."""
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(each.itertext()) for each in found]


def test_long_texts_are_broken_into_lines(tmp_path: Path) -> None:
    path = tmp_path / "drafts.svg"
    row = DraftRow(
        "1", 0, "word " * 40 + "漢字" * 60, False, tuple(Cell(" nine", ROWS[0].cells[0].token) for _ in range(40))
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
