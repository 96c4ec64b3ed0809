"""The project's metadata for package indexes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

from tools.hatch_metadata import absolute

ROOT = Path(__file__).parent.parent
REPOSITORY = "https://git.example/o/redraft"
PACKAGES = [
    ROOT,
    *(path.parent for folder in ("packages", "plugins") for path in ROOT.glob(f"{folder}/*/pyproject.toml")),
]
packages = pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)


@pytest.fixture(autouse=True)
def version(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `tools.build_llama` sets."""
    monkeypatch.setenv("REDRAFT_LLAMA_VERSION", "1.2.3")


def metadata(folder: Path) -> ProjectMetadata:
    return ProjectMetadata(str(folder), PluginManager())


def test_links() -> None:
    text = "[a](docs/a.md#b) ![p](docs/p.svg) [c](https://c) [d](#d) [![badge](b.svg)](e.md) `[f]`"
    assert absolute(text, REPOSITORY) == (
        f"[a]({REPOSITORY}/blob/main/docs/a.md#b) ![p]({REPOSITORY}/raw/main/docs/p.svg) [c](https://c) [d](#d) "
        f"[![badge](b.svg)]({REPOSITORY}/blob/main/e.md) `[f]`"
    )


def test_links_of_a_folder() -> None:
    text = "[a](../../docs/a.md#b) [t](TRIED.md) ![p](p.svg)"
    assert absolute(text, REPOSITORY, "packages/a") == (
        f"[a]({REPOSITORY}/blob/main/docs/a.md#b) [t]({REPOSITORY}/blob/main/packages/a/TRIED.md) "
        f"![p]({REPOSITORY}/raw/main/packages/a/p.svg)"
    )


@packages
def test_published(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_REPOSITORY", f"{REPOSITORY}/")
    core = metadata(folder).core
    assert set(core.urls) == {"Repository", "Documentation", "Changelog", "Issues"}
    links = re.findall(r"\]\(([^)]+)\)", core.readme)
    assert links and all(link.startswith(("https://", "http://", "#")) for link in links)
    own = [link.removeprefix(f"{REPOSITORY}/").split("/", 2) for link in links if link.startswith(REPOSITORY)]
    assert all((ROOT / path.partition("#")[0]).exists() for _, _, path in own)


@packages
def test_unpublished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDRAFT_REPOSITORY", raising=False)
    core = metadata(folder).core
    assert not core.urls and core.readme == (folder / "README.md").read_text(encoding="utf-8")


@packages
def test_what_every_package_has(folder: Path) -> None:
    core = metadata(folder).core
    assert core.description and core.authors and core.keywords and core.classifiers
    assert core.license_expression.startswith("Apache-2.0")  # redraft-llama also contains llama.cpp
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes() and "LICENSE" in core.license_files


def test_hooks_of_packages_are_the_same() -> None:
    assert len({(folder / "hatch_build.py").read_bytes() for folder in PACKAGES if folder != ROOT}) == 1
