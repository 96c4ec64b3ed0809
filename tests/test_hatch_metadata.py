"""The project's metadata for package indexes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling is not installed (extra `dev`)")
from tools.hatch_metadata import RepositoryHook, absolute

ROOT = Path(__file__).parent.parent
REPOSITORY = "https://git.example/o/redraft"


def metadata() -> dict[str, object]:
    found: dict[str, object] = {}
    RepositoryHook(str(ROOT), {}).update(found)
    return found


def test_links() -> None:
    text = "[a](docs/a.md#b) ![p](docs/p.svg) [c](https://c) [d](#d) [![badge](b.svg)](e.md) `[f]`"
    assert absolute(text, REPOSITORY) == (
        f"[a]({REPOSITORY}/blob/main/docs/a.md#b) ![p]({REPOSITORY}/raw/main/docs/p.svg) [c](https://c) [d](#d) "
        f"[![badge](b.svg)]({REPOSITORY}/blob/main/e.md) `[f]`"
    )


def test_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_REPOSITORY", f"{REPOSITORY}/")
    found = metadata()
    assert set(found) == {"readme", "urls"}
    links = re.findall(r"\]\(([^)]+)\)", str(found["readme"]))
    assert len(links) > 15 and all(link.startswith(("https://", "http://", "#")) for link in links)


def test_unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDRAFT_REPOSITORY", raising=False)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert metadata() == {"readme": {"content-type": "text/markdown", "text": text}}
