"""The check that pages of the documentation load nothing from other servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_site import loads, main


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        '<img alt="" src="http://pictures.example/a.png">',
        '<div style="background: url(https://pictures.example/a.png)"></div>',
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(tmp_path: Path, html: str) -> None:
    page = tmp_path / "index.html"
    page.write_text(html, encoding="utf-8")
    assert len(loads(page)) == 1
    assert (main(tmp_path) or "").startswith("index.html loads ")


def test_links_and_files_of_site_are_fine(tmp_path: Path) -> None:
    links = '<a href="https://example.org">x</a><link rel="canonical" href="https://example.org">'
    html = links + '<script src="a.js"></script>'
    (tmp_path / "index.html").write_text(html, encoding="utf-8")
    (tmp_path / "a.css").write_text("a { background: url(a.svg) }", encoding="utf-8")
    assert main(tmp_path) is None


def test_fonts_of_style_sheet_are_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("", encoding="utf-8")
    (tmp_path / "a.css").write_text('@import "https://fonts.example/a.css";', encoding="utf-8")
    assert main(tmp_path) == "a.css loads https://fonts.example/a.css"


def test_folder_without_site_is_refused(tmp_path: Path) -> None:
    assert "must be a built site" in (main(tmp_path) or "")
