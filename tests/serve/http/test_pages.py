"""The files of the page as they are served: their types, their security policy, and their settings."""

from __future__ import annotations

import gzip
import io
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import segno

from redraft.captions.talk import RECORDING, load_talk
from redraft.decoding.method import COMMON
from redraft.decoding.methods import BETA
from redraft.decoding.methods.redraft import STOP
from redraft.decoding.types import TARGET
from redraft.serve.access import new_key
from redraft.serve.http.pages import PAGES, STYLED, WEB
from redraft.serve.http.security import HEADERS
from redraft.serve.service import Service, offer_of
from redraft.serve.settings import ServeSettings
from tests.serve.fakes import CachedModel
from tests.serve.servers import SECONDS, Running, running

FILES = sorted(path.relative_to(WEB).as_posix() for path in WEB.rglob("*") if path.is_file())
#: Folder of JavaScript -> those it imports from, as in docs/development.md.
BELOW = {
    "pages": {"captions", "forms", "net", "speech"},
    "forms": {"captions"},
    "speech": {"captions", "net"},
    "net": {"captions"},
    "captions": set[str](),
}
PATHS = {name: path for path, name in PAGES.items()} | {"overlay.html": "/overlay?room=hall-1"}
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


def test_styles_in_older_browsers() -> None:
    """Chromium 92 drops what it does not know: a height in `dvh`, and a rule with `:has` in any of its selectors."""
    texts = [path.read_text(encoding="utf-8") for path in (WEB / "css").glob("*.css")]
    rules = [rule for text in texts for rule in re.findall(r"([^{}]+)\{([^{}]*)\}", re.sub(r"/\*.*?\*/", "", text))]
    heights = [body for _, body in rules if "dvh" in body]
    assert len(heights) > 3
    for body in heights:
        for name, number in re.findall(r"([\w-]+): (\d+)dvh", body):
            assert f"{name}: {number}vh; {name}: {number}dvh" in body
    found = [selectors for selectors, _ in rules if ":has(" in selectors]
    assert found
    for selectors in found:
        while "(" in selectors:
            selectors = re.sub(r"\([^()]*\)", "", selectors)
        assert "," not in selectors
    for name in ("captions", "overlay", "watch"):  # what viewers see must not depend on it
        assert ":has(" not in (WEB / "css" / f"{name}.css").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_static_files(server: Running, name: str) -> None:
    answer = server.ask(PATHS.get(name, f"/{name}"))
    assert (answer.status, answer.text) == (200, (WEB / name).read_text(encoding="utf-8"))
    assert answer.headers["content-type"].partition(";")[0] in TYPES[Path(name).suffix]
    styled = {"content-security-policy": STYLED} if name == "overlay.html" else {}
    assert all(answer.headers[header] == value for header, value in (HEADERS | styled).items())


def test_addresses_of_rooms(server: Running) -> None:
    for path, end in (
        ("/watch/hall-1?language=de", "/watch?room=hall-1&language=de"),
        ("/overlay/hall-1", "/overlay?room=hall-1"),
        ("/rooms/hall%201", "/rooms?room=hall%201"),
        ("/overlay", "/overlay-form"),
    ):
        with urllib.request.urlopen(server.url + path, timeout=SECONDS) as answer:
            assert answer.url == server.url + end


def test_compressed_texts(server: Running) -> None:
    for path in ("/", "/js/pages/main.js", "/css/base.css", "/icon.svg"):
        answers = {}
        for coding in ("gzip", "identity"):
            asking = urllib.request.Request(server.url + path, headers={"accept-encoding": coding})
            with urllib.request.urlopen(asking, timeout=SECONDS) as answer:
                answers[coding] = answer.headers.get("content-encoding"), answer.read()
        assert answers["identity"][0] is None
        assert answers["gzip"][0] == "gzip" or len(answers["identity"][1]) < 500
        assert len(answers["gzip"][1]) <= len(answers["identity"][1])
    asking = urllib.request.Request(f"{server.url}/talk.ogg", headers={"accept-encoding": "gzip"})
    with urllib.request.urlopen(asking, timeout=SECONDS) as answer:  # it is compressed already, and read in ranges
        assert answer.headers.get("content-encoding") is None


@pytest.mark.parametrize("path", ["/../app.py", "/%2e%2e/app.py", "/js/..%2f..%2fapp.py", "/js/", "/js"])
def test_nothing_else_is_served(server: Running, path: str) -> None:
    assert server.ask(path).status == 404
    assert server.ask("/", method="POST").status == 405


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".html")])
def test_no_inline_code(name: str) -> None:
    text = (WEB / name).read_text(encoding="utf-8")
    assert not re.search(r"<style|\bstyle\s*=|\bon\w+\s*=|javascript:|https?:|//", text, re.IGNORECASE)
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    assert scripts and all("src=" in attributes and not body for attributes, body in scripts)
    for path in re.findall(r'(?:src|href)="([^"#]+)"', text):
        assert path in FILES or path in ("docs", "talk.ogg")


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".js")])
def test_scripts_write_text_only(name: str) -> None:
    text = (WEB / name).read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?:", text)
    for path in re.findall(r'from "([^"]+)"', text):
        assert (WEB / name).parent.joinpath(path).is_file()
        assert path.startswith("./") or path.split("/")[1] in BELOW[Path(name).parts[1]]


def _colours() -> dict[str, tuple[str, str]]:
    """Name -> light and dark."""
    text = (WEB / "css" / "base.css").read_text(encoding="utf-8")
    light, chosen, preferred = (
        dict(re.findall(r"--([\w-]+): (#\w{6});", part)) for part in re.split(r":root\[|@media", text)[:3]
    )
    assert chosen == preferred and chosen.keys() == light.keys()
    return {name: (light[name], chosen[name]) for name in light}


#: What the browsers in streaming programs, Chromium 92 and later, do not know -> where it came.
TOO_RECENT = {
    r"light-dark\(": "123",
    r"paint-order": "123, of text that is no picture",
    r"\.(?:toSorted|toReversed|toSpliced|findLast)\(|\.with\(\d": "110",
    r"Object\.hasOwn\(|Object\.groupBy": "93",
    r"Promise\.withResolvers|Set\(\)\.union": "119",
    r"/v(?=[;,)])": "112",
}


@pytest.mark.parametrize("pattern", TOO_RECENT)
def test_old_browsers(pattern: str) -> None:
    for path in WEB.rglob("*"):
        if path.suffix in (".js", ".css", ".html"):
            text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            assert not re.search(pattern, text), path


def _luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2) of a colour of six hexadecimal digits."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize(
    ("front", "grounds", "least"),
    [
        ("text", ("ground", "surface", "tint"), 7),
        ("dim", ("ground", "surface"), 4.5),
        ("accent", ("ground", "surface", "tint"), 4.5),
        ("bad", ("ground", "surface"), 4.5),
        ("on-accent", ("accent",), 4.5),
        ("control", ("ground", "surface"), 3),
        ("good", ("ground", "surface"), 3),
    ],
)
def test_colours_stand_out(front: str, grounds: tuple[str, ...], least: float, theme: int) -> None:
    colours = _colours()
    for ground in grounds:
        dark, light = sorted(_luminance(colours[name][theme]) for name in (front, ground))
        assert (light + 0.05) / (dark + 0.05) >= least, f"{front} on {ground}"


def test_the_page_is_small() -> None:
    assert sum(len(gzip.compress((WEB / name).read_bytes())) for name in FILES) < 92_000  # as sent


def test_split(server: Running) -> None:
    def split(text: str) -> Any:
        return server.ask("/v1/sentences", {"text": text}).json["sentences"]

    for sentences in (
        ["Dr. Smith met Mr. Jones at 3 p.m. in Washington.", 'He said: "Hello!"', "It cost $3.50."],
        ["Am 3. Mai kam Dr. Müller, d. h. der Arzt.", "Er ging."],
    ):
        assert split(" ".join(sentences)) == sentences
    assert split("これは文です。次の文です！") == ["これは文です。", "次の文です！"]
    assert split("A title\n\none line\r\n") == ["A title", "one line"]
    assert len(split("She saw her duck. " * 20_000)) == 20_000  # more than a message may have


def test_qr_code(server: Running) -> None:
    assert server.ask(f"/v1/qr?link={quote('http://127.0.0.1:8765/watch/hall-1', safe='')}").status == 200
    link = "https://captions.example.org/talks/watch?session=hall&language=de"
    answer = server.ask(f"/v1/qr?link={quote(link, safe='')}")
    assert (answer.status, answer.headers["content-type"]) == (200, "image/svg+xml")
    expected = io.BytesIO()
    made = segno.make(link, error="m", micro=False)
    made.save(expected, kind="svg", xmldecl=False, omitsize=True, border=4, dark="#000", light="#fff")
    assert answer.text.encode() == expected.getvalue()


@pytest.mark.parametrize(
    "link",
    [
        "",
        "javascript:alert(1)",
        "https://example.org/",
        "http:///watch",
        "http://[/watch",
        f"http://a/watch?{'b' * 500}",
        "http://ä/watch",
    ],
)
def test_refused_qr_code(server: Running, link: str) -> None:
    answer = server.ask(f"/v1/qr?link={quote(link, safe='')}")
    assert answer.status == 400 and answer.json["error"]["code"] == "option"


def test_the_demo_talk_is_served(server: Running) -> None:
    assert server.ask("/v1/talk").json == [asdict(update) for update in load_talk()]
    with urllib.request.urlopen(f"{server.url}/talk.ogg", timeout=SECONDS) as answer:
        assert answer.headers["content-type"] == "audio/ogg"
        assert answer.read() == RECORDING.read_bytes()


def test_offer(server: Running, tmp_path: Path) -> None:
    offer = server.ask("/v1/offer").json
    assert offer["methods"] == ["ssbd", "ar"] and offer["most_targets"] == 8 and offer["key"] is False
    assert offer["most_glossary"] == 64
    assert (offer["model"], offer["demo"]) == ("demo", True)
    assert [each["name"] for each in offer["about"]["ar"]["options"]] == [*COMMON] and set(offer["about"]) == {
        "ssbd",
        "ar",
    }
    assert offer["about"]["ssbd"]["options"][0] == {
        "name": "beta",
        "help": BETA.help,
        "default": 0.2,
        "allowed": "a number from 0 to 1",
        "words": [],
    }
    assert offer["source_languages"] == offer["target_languages"] == []
    server.model.metadata = {**server.model.metadata, "redraft.target_languages": "de, ja"}
    del server.hub.offer  # made once
    assert server.ask("/v1/offer").json["target_languages"] == ["de", "ja"]
    new_key(tmp_path / "keys", "one")
    with running(keys=tmp_path / "keys") as other:
        assert other.ask("/v1/offer").json["key"] is True


def test_offer_limits() -> None:
    settings = ServeSettings(model="/srv/models/some.gguf", methods=("redraft",))
    offer = offer_of(Service({TARGET: CachedModel(1)}, settings), key=True)
    assert (offer.model, offer.demo) == ("some.gguf", False)  # of a path, the name only
    assert (offer.most_glossary, offer.key) == (64, True)
    (stop,) = (option for option in offer.about["redraft"].options if option.name == STOP.name)
    assert (stop.default, stop.words, stop.allowed) == (STOP.default, (), "a number from 0 to 1")
