"""A server behind a proxy that shows it under a path, with the configuration from the documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

import pytest

from conftest import ROOT
from redraft import Update
from redraft.client import Client
from redraft.serve.http.pages import PAGES, WEB
from tests.serve.proxies import nginx
from tests.serve.servers import SECONDS, Running
from tests.serve.talking import expected

DEPLOYMENT = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
(LOCATION,) = re.findall(r"```nginx\n(.*?)```", DEPLOYMENT, re.DOTALL)
HTTP = "worker_processes 1; events {} http { server { listen 127.0.0.1:%d; %s } }"
HTML = {"accept": "text/html"}


@contextmanager
def behind(server: Running, folder: Path) -> Iterator[str]:
    """The server behind nginx; its address, with the path."""
    location = LOCATION.replace("http://127.0.0.1:8765", server.url)
    with nginx(folder, lambda port: HTTP % (port, location)) as address:
        yield f"{address}/captions/"


@pytest.fixture
def address(server: Running, tmp_path: Path) -> Iterator[str]:
    with behind(server, tmp_path) as found:
        yield found


def get(address: str) -> tuple[int, str, str]:
    """Status, address after redirections, and text."""
    try:
        with urlopen(Request(address, headers=HTML), timeout=SECONDS) as answer:
            return answer.status, answer.url, answer.read().decode(errors="replace")
    except HTTPError as error:
        with error:
            return error.code, error.url, error.read().decode(errors="replace")


class References(HTMLParser):
    """The addresses in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {value for name, value in attrs if name in ("href", "src") and value}


@pytest.mark.parametrize("path", [*PAGES, "/docs", "/watch/hall-1", "/nowhere", "/no/such/page/"])
def test_references(address: str, path: str) -> None:
    status, found, text = get(address + path.removeprefix("/"))
    assert status == (404 if "no" in path else 200)
    references = References(text).found
    assert references or "." in path  # a picture and a script have none
    for reference in references:
        assert get(urljoin(found, reference))[0] == 200, reference


def test_short_link(address: str) -> None:
    assert get(f"{address}watch/hall-1?language=de")[:2] == (200, f"{address}watch?room=hall-1&language=de")


@pytest.mark.parametrize("path", ["watch", "docs", "overlay-form", "watch/hall-1"])
def test_slash_at_the_end(address: str, path: str) -> None:
    status, found, _ = get(f"{address}{path}/?language=de")
    assert status == 200 and found.startswith(f"{address}{path.partition('/')[0]}?")
    assert found.endswith("language=de")


@pytest.mark.parametrize("name", [path.relative_to(WEB).as_posix() for path in sorted(WEB.rglob("*.js"))])
def test_script_addresses(name: str) -> None:
    assert not re.search(r"[\"'`(]/(v1|js|css|watch|overlay|docs|talk)\b", (WEB / name).read_text("utf-8"))


def test_descriptions(address: str) -> None:
    (server,) = json.loads(get(f"{address}openapi.json")[2])["servers"]
    assert urljoin(f"{address}openapi.json", server["url"]) == address


def test_client(address: str) -> None:
    import asyncio

    async def talk() -> tuple[list[Any], str]:
        async with Client(address, to=["de"], method="ar", room="hall-1") as client:
            await client.send(Update("1", 0, "we saw", final=True))
            await client.end()
            return [event async for event in client], client.viewers_page

    (caption,), page = asyncio.run(talk())
    assert (caption.text, page) == (expected("we saw"), f"{address}watch/hall-1")


def test_pages_in_a_browser(server: Running, tmp_path: Path) -> None:
    from tests.serve.browsers import chromium, play, session_of, shortened, until, wait_for_finals

    with behind(server, tmp_path) as address, chromium() as browser:
        complaints: list[str] = []
        page, viewer = browser.new_page(), browser.new_page()
        for each in (page, viewer):
            each.on("pageerror", lambda error: complaints.append(str(error)))
            each.on("response", lambda answer: complaints.extend([answer.url] if answer.status >= 400 else []))
        page.route("**/v1/talk", lambda route: route.fulfill(json=shortened(12)))
        page.goto(address)
        play(page)
        wait_for_finals(page)
        for path in (f"watch?session={session_of(page)['name']}", f"overlay?session={session_of(page)['name']}"):
            viewer.goto(address + path)
            viewer.locator(".cell.final:visible").first.wait_for()
        page.get_by_role("button", name="QR code").first.click()
        until(page, "document.querySelector('.qr img')?.naturalWidth > 0")
        assert complaints == []
