"""The demo's picture: drawn as the demo draws, fetching nothing; a change of what it shows is noticed."""

from __future__ import annotations

import io
import json
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from redraft.captions.talk import load_talk
from redraft.cli.demo import scene
from tools import build_docs, demo_picture
from tools.demo_picture import picture, problem, record, self_contained, visible

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the picture and its record."""
    for name in ("demo.json", "demo.svg"):
        shutil.copy(DOCS / name, tmp_path)
    return tmp_path


def test_the_picture_is_what_the_demo_shows_now() -> None:
    assert problem(DOCS) == ""


def change(folder: Path, **values: Any) -> None:
    kept = json.loads((folder / "demo.json").read_text(encoding="utf-8"))
    (folder / "demo.json").write_text(json.dumps({**kept, **values}), encoding="utf-8")


@pytest.mark.parametrize("name", ["model", "talk", "beta", "to", "mask_margin"])
def test_another_model_talk_or_default_is_noticed(folder: Path, name: str) -> None:
    change(folder, inputs={**demo_picture.inputs(), name: "another"})
    assert problem(folder) == f"shows another {name}"


def test_another_way_of_drawing_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene, "MOST_LINES", 4)
    assert problem(folder) == "is not what the demo draws now"


def test_another_record_or_none_is_noticed(folder: Path) -> None:
    change(folder, signature="of another run")
    assert problem(folder) == "is not what the demo draws now"
    (folder / "demo.svg").unlink()
    assert problem(folder) == "is missing"


def test_the_check_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_picture, "problem", lambda _: "shows another model")
    assert build_docs.main(["--check"]) == "docs: docs/demo.svg shows another model, run `make docs ARGS=--picture`"


def test_a_talk_is_recorded_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = [update for update in load_talk() if int(update.utterance) <= 3]
    monkeypatch.setattr(demo_picture, "load_talk", lambda: talk)
    record(tmp_path / "demo.json", threads=1)
    (tmp_path / "demo.svg").write_text(picture(tmp_path / "demo.json"), encoding="utf-8")
    assert problem(tmp_path) == ""
    kept = json.loads((tmp_path / "demo.json").read_text(encoding="utf-8"))
    assert kept["scene"]["source"] in {update.text for update in talk}
    assert {row["segments"] for row in kept["rows"]} == {3}
    assert "hidden:below margin 0" in kept["signature"]
    monkeypatch.setattr(demo_picture, "load_talk", lambda: talk[:-1])
    assert problem(tmp_path) == "shows another talk"


def test_wide_characters_are_given_their_width_and_no_font_is_fetched() -> None:
    console = Console(record=True, width=20, file=io.StringIO(), force_terminal=True)
    console.print("[bold]ab[/bold][dim]漢字[/dim]")
    svg = self_contained(console.export_svg(title="x"), "who & how")
    lengths = {
        text.text: float(text.attrib["textLength"])
        for text in ElementTree.fromstring(svg).iter()
        if text.text and "textLength" in text.attrib
    }
    assert lengths["漢字"] == pytest.approx(2 * lengths["ab"])
    assert "@font-face" not in svg
    assert "<desc>who &amp; how</desc>" in svg


def test_the_picture_fetches_nothing() -> None:
    svg = (DOCS / "demo.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    assert "url(http" not in svg and "@import" not in svg
    assert not [each for each in root.iter() for name in each.attrib if name.endswith("href")]
    assert {"German", "Chinese", "Japanese", "ssbd", "speed-up", "passes"} <= {*visible(svg)}
