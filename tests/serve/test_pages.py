"""The files of the page as they are served: their types, the policy they keep to, what they are told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from redraft.serve.pages import PAGES, WEB
from redraft.serve.security import HEADERS, new_key
from redraft.talk import load_talk
from tests.serve.servers import Running, running

FILES = sorted(path.relative_to(WEB).as_posix() for path in WEB.rglob("*") if path.is_file())
PATHS = {name: path for path, name in PAGES.items()}
TYPES = {
    ".html": ("text/html",),
    ".js": ("text/javascript", "application/javascript"),
    ".css": ("text/css",),
    ".svg": ("image/svg+xml",),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_served_with_its_type_and_the_policy(server: Running, name: str) -> None:
    answer = server.ask(PATHS.get(name, f"/{name}"))
    assert answer.status == 200
    assert answer.headers["content-type"].partition(";")[0] in TYPES[Path(name).suffix]
    assert all(answer.headers[header] == value for header, value in HEADERS.items())


@pytest.mark.parametrize(("path", "name"), [("/", "index"), ("/overlay?session=x", "overlay"), ("/watch", "watch")])
def test_pages_have_addresses_of_their_own(server: Running, path: str, name: str) -> None:
    answer = server.ask(path)
    assert (answer.status, answer.text) == (200, (WEB / f"{name}.html").read_text(encoding="utf-8"))
    assert answer.headers["content-security-policy"] == HEADERS["content-security-policy"]
    assert server.ask(path, method="POST").status == 405


@pytest.mark.parametrize("path", ["/../app.py", "/%2e%2e/app.py", "/js/..%2f..%2fapp.py", "/js/", "/js"])
def test_nothing_else_is_served(server: Running, path: str) -> None:
    assert server.ask(path).status == 404


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".html")])
def test_pages_have_no_inline_scripts_or_styles_and_nothing_of_others(name: str) -> None:
    text = (WEB / name).read_text(encoding="utf-8")
    assert not re.search(r"<style|\bstyle\s*=|\bon\w+\s*=|javascript:|https?:|//", text, re.IGNORECASE)
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    assert scripts and all("src=" in attributes and not body for attributes, body in scripts)
    for path in re.findall(r'(?:src|href)="/([^"]+)"', text):
        assert path in FILES or path == "docs"


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".js")])
def test_scripts_write_text_only(name: str) -> None:
    text = (WEB / name).read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?:", text)
    for path in re.findall(r'from "(\./[^"]+)"', text):
        assert (WEB / "js" / path).is_file()


def test_the_page_is_small() -> None:
    assert sum((WEB / name).stat().st_size for name in FILES) < 100_000
    assert max((WEB / name).read_text(encoding="utf-8").count("\n") for name in FILES) < 250


def test_the_demo_talk_is_served(server: Running) -> None:
    assert server.ask("/v1/talk").json == [asdict(update) for update in load_talk()]


def test_the_server_says_what_it_offers(server: Running, tmp_path: Path) -> None:
    offer = server.ask("/v1/offer").json
    assert offer["methods"] == ["ssbd", "ar"] and offer["most_targets"] == 8 and offer["key"] is False
    assert offer["source_languages"] == offer["target_languages"] == []
    server.model.metadata = {**server.model.metadata, "redraft.target_languages": "de, ja"}
    assert server.ask("/v1/offer").json["target_languages"] == ["de", "ja"]
    new_key(tmp_path / "keys", "one")
    with running(keys=tmp_path / "keys") as other:
        assert other.ask("/v1/offer").json["key"] is True
