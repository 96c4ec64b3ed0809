"""Requests of the imitated services as documented, and the responses."""

from __future__ import annotations

import http.client
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.routing import Route, WebSocketRoute

from conftest import ROOT
from redraft.captions import spoken
from redraft.cli.main import cli
from redraft.errors import MissingExtra, OptionError
from redraft.serve import service
from redraft.serve.access import new_key
from redraft.serve.http.compat import check_compat, compat_routes
from redraft.serve.http.compat.openai import ONLY_TRANSLATES
from redraft.serve.settings import ServeSettings
from tests.serve.fakes import CachedModel, slow
from tests.serve.http.compat.conftest import COMPAT
from tests.serve.servers import Running, running
from tests.serve.talking import expected
from tests.waiting import eventually

FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}
FORM_OF_ERROR = {"/v2/translate": "message"} | dict.fromkeys(
    ("/translate", "/v1/chat/completions", "/v1/translate"), "error"
)


def form(**fields: Any) -> bytes:
    return urlencode(fields, doseq=True).encode()


# DeepL


@pytest.mark.parametrize("agent", ["json", "form"])
def test_deepl_texts(imitating: Running, agent: str) -> None:
    sent = {"text": ["we saw", "her duck", " "], "target_lang": "DE"}
    headers = {"user-agent": agent, "authorization": "DeepL-Auth-Key any"}
    answer = (
        imitating.ask("/v2/translate", sent, headers=headers)
        if agent == "json"
        else imitating.ask("/v2/translate", form(**sent), headers=headers | FORM)
    )
    assert answer.status == 200
    assert answer.json == {
        "translations": [
            {"detected_source_language": "EN", "text": text} for text in (expected("we saw"), expected("her duck"), " ")
        ]
    }


LINES = "\nwe saw. again\n\n her duck\r\nit was\n "
TRANSLATED = ["\n", "we saw.", " ", "again", "\n\n ", "her duck", "\r\n", "it was", "\n "]


@pytest.mark.parametrize(
    ("path", "sent", "place"),
    [
        ("/v2/translate", {"text": [LINES], "target_lang": "DE"}, ("translations", 0, "text")),
        ("/translate", {"q": LINES, "source": "en", "target": "de"}, ("translatedText",)),
        ("/translate", {"q": [LINES], "source": "en", "target": "de"}, ("translatedText", 0)),
    ],
)
def test_lines(imitating: Running, path: str, sent: dict[str, Any], place: tuple[str | int, ...]) -> None:
    found = imitating.ask(path, sent, headers={"authorization": "DeepL-Auth-Key any"}).json
    for part in place:
        found = found[part]
    assert found == "".join(text if text.isspace() else expected(text) for text in TRANSLATED)


@pytest.mark.parametrize(
    ("spelling", "target"), [("DE", "de"), ("de-DE", "de"), ("EN-US", "en"), ("ZH-HANS", "zh"), ("JA", "ja")]
)
def test_deepl_languages(imitating: Running, spelling: str, target: str) -> None:
    sent = {"text": "we saw", "target_lang": spelling, "source_lang": "FR", "show_billed_characters": True}
    (found,) = imitating.ask("/v2/translate", sent, headers={"user-agent": spelling}).json["translations"]
    assert found == {"detected_source_language": "FR", "text": expected("we saw", target), "billed_characters": 6}


@pytest.mark.parametrize(
    ("split", "sentences"),
    [
        ("1", ["we saw", "\n", "her duck.", " ", "it was"]),
        ("nonewlines", ["we saw\nher duck.", " ", "it was"]),
        ("0", None),
    ],
)
def test_deepl_split_sentences(imitating: Running, split: str, sentences: list[str] | None) -> None:
    text = "we saw\nher duck. it was"
    sent = {"text": [text], "target_lang": "DE", "split_sentences": split}
    (found,) = imitating.ask("/v2/translate", sent).json["translations"]
    assert found["text"] == "".join(each if each.isspace() else expected(each) for each in sentences or [text])


def test_wrong_method_or_type(imitating: Running) -> None:
    wrong = (("/v2/translate", "GET", "POST"), ("/translate", "PUT", "POST"), ("/v1/models", "DELETE", "GET or HEAD"))
    for path, method, right in wrong:
        answer = imitating.ask(path, method=method)
        assert answer.status == 405 and set(answer.headers["allow"].split(", ")) == set(right.split(" or "))
        assert answer.json["error"]["message"] == f"this method is not allowed here: use {right}"
    assert imitating.ask("/v2/translate", b"a", headers={"content-type": "text/plain"}).status == 400


# LibreTranslate


@pytest.mark.parametrize("agent", ["libre json", "libre form"])
def test_libretranslate_text(imitating: Running, agent: str) -> None:
    sent = {"q": "we saw", "source": "en", "target": "de", "format": "text", "api_key": ""}
    body: Any = sent if agent == "libre json" else form(**sent)
    headers = {"user-agent": agent} | ({} if agent == "libre json" else FORM)
    assert imitating.ask("/translate", body, headers=headers).json == {"translatedText": expected("we saw")}


@pytest.mark.parametrize(
    ("code", "target"),
    [("zt", "zh-Hant"), ("zh-Hant", "zh-Hant"), ("zh", "zh"), ("pb", "pt"), ("PB", "pt"), ("nb", "nb")],
)
def test_libretranslate_codes(imitating: Running, code: str, target: str) -> None:
    sent = {"q": "we saw", "source": "en", "target": code}
    answer = imitating.ask("/translate", sent, headers={"user-agent": f"libre {code}"})
    assert answer.json == {"translatedText": expected("we saw", target)}


def test_libretranslate_auto(imitating: Running) -> None:
    sent = {"q": ["we saw", "her duck"], "source": "auto", "target": "de"}
    answer = imitating.ask("/translate", sent, headers={"user-agent": "libre several"})
    assert answer.json == {
        "translatedText": [expected("we saw"), expected("her duck")],
        "detectedLanguage": [{"confidence": 100.0, "language": "en"}] * 2,
    }
    one = imitating.ask("/translate", sent | {"q": "wir saw"}, headers={"user-agent": "libre one"})
    assert one.json["detectedLanguage"] == {"confidence": 50.0, "language": "de"}
    assert one.json["translatedText"] == "wir saw"  # which is in the target language
    none = imitating.ask("/translate", sent | {"q": ". "}, headers={"user-agent": "libre none"})
    assert none.json == {"translatedText": ". ", "detectedLanguage": {"confidence": 0.0, "language": "en"}}


@pytest.mark.parametrize(
    ("text", "language", "confidence"), [("wir sehen", "de", 100), ("we", "en", 100), ("", "en", 0)]
)
def test_libretranslate_detect(imitating: Running, text: str, language: str, confidence: float) -> None:
    answer = imitating.ask("/detect", {"q": text}, headers={"user-agent": f"detect {text}"})
    assert answer.json == [{"confidence": confidence, "language": language}]


def test_deepl_detects_each_text(imitating: Running) -> None:
    sent = {"text": ["wir sehen", "we saw", "das Haus"], "target_lang": "ZH"}
    found = imitating.ask("/v2/translate", sent, headers={"user-agent": "each"}).json["translations"]
    assert [each["detected_source_language"] for each in found] == ["DE", "EN", "DE"]
    assert [each["text"] for each in found] == [expected(text, "zh") for text in sent["text"]]


AUTOMATIC: dict[str, dict[str, Any]] = {
    "/v2/translate": {"text": ["a"], "target_lang": "DE"},
    "/translate": {"q": "a", "source": "auto", "target": "de"},
    "/detect": {"q": "a"},
}


def test_without_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by the field's name, unless the model translates from one language alone."""

    def missing() -> None:
        raise MissingExtra("this needs py3langid")

    monkeypatch.setattr(spoken, "_detector", missing)
    with running(compat=COMPAT) as server:
        for path, body in AUTOMATIC.items():
            answer = server.ask(path, body)
            assert answer.status == 400
            field = {"/v2/translate": "source_lang", "/translate": "source", "/detect": "q"}[path]
            assert answer.text.count(f"{field}: name the language, since this needs py3langid") == 1
        server.model.metadata = {**server.model.metadata, "redraft.source_languages": "fr"}
        assert [server.ask(path, body).status for path, body in AUTOMATIC.items()] == [200] * 3
        assert server.ask("/detect", {"q": "a"}).json == [{"confidence": 0.0, "language": "fr"}]


def test_libretranslate_lists_pairs_that_work() -> None:
    with running(compat=COMPAT) as server:
        assert server.ask("/languages").json == [{"code": "en", "name": "English", "targets": []}]
        known = {"redraft.target_languages": "de, zh, en", "redraft.source_languages": "en, de"}
        server.model.metadata = {**server.model.metadata, **known}
        del server.hub.offer  # made once
        assert server.ask("/languages").json == [
            {"code": "de", "name": "German", "targets": ["en", "zh"]},
            {"code": "en", "name": "English", "targets": ["de", "zh"]},
        ]


# All of them


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v2/translate", {"text": ["a"]}),
        ("/v2/translate", {"text": ["a"] * 51, "target_lang": "DE"}),
        ("/v2/translate", {"text": ["a"], "target_lang": "DE", "source_lang": "XX"}),
        ("/v2/translate", {"text": ["a"], "target_lang": "DE", "glossary_id": "g"}),
        ("/v2/translate", {"text": ["a" * 70_000], "target_lang": "DE"}),
        ("/v2/translate", b"[" * 60_000),
        ("/v2/translate", b'{"text": ["\\ud800"], "target_lang": "DE"}'),
        ("/translate", {"q": "a", "target": "de"}),
        ("/translate", {"q": "a", "source": "en", "target": "xx"}),
        ("/translate", {"q": 5, "source": "en", "target": "de"}),
        ("/v1/chat/completions", {"messages": []}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": 5}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "n": 2}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a" * 70_000}]}),
    ],
)
def test_bad_requests(imitating: Running, path: str, body: Any) -> None:
    answer = imitating.ask(path, body)
    assert (answer.status, list(answer.json)) == (413 if "a" * 99 in str(body) else 400, [FORM_OF_ERROR[path]])
    if path == "/v1/chat/completions":
        assert set(answer.json["error"]) == {"message", "type", "param", "code"}


BODIES: dict[str, dict[str, Any]] = {
    "/v2/translate": {"text": ["a"], "target_lang": "DE"},
    "/translate": {"q": "a", "source": "en", "target": "de"},
    "/v1/chat/completions": {"model": "demo/de", "messages": [{"role": "user", "content": "a"}]},
}


def test_keys(tmp_path: Path) -> None:
    key = new_key(tmp_path / "keys", "stage")
    with running(compat=COMPAT, keys=tmp_path / "keys") as server:
        statuses = [(path, server.ask(path, body).status) for path, body in BODIES.items()]
        assert [status for _, status in statuses] == [403, 403, 401]
        wrong = server.ask(
            "/v1/chat/completions", BODIES["/v1/chat/completions"], headers={"authorization": "Bearer x"}
        )
        assert wrong.json["error"]["code"] == "invalid_api_key"
        deepl, libre, openai = BODIES.items()
        assert server.ask(*deepl, headers={"authorization": f"DeepL-Auth-Key {key}"}).status == 200
        assert server.ask(deepl[0], deepl[1] | {"auth_key": key}).status == 403  # where only old clients send it
        assert server.ask(libre[0], libre[1] | {"api_key": key}).status == 200
        assert server.ask(*openai, headers={"authorization": f"Bearer {key}"}).status == 200
        assert server.ask("/v1/models").status == 401


def test_no_sessions() -> None:
    """Texts are answered beside the sessions and languages that a server may have, and however busy it is."""
    with (
        running(compat=COMPAT, sessions=1, languages=1, slots=2, starts_per_second=1) as server,
        server.socket() as live,
    ):
        live.start("de")
        bodies = [*BODIES.items()] * 10
        with ThreadPoolExecutor(len(bodies)) as threads:
            assert [each.status for each in threads.map(lambda each: server.ask(*each), bodies)] == [200] * len(bodies)


def test_too_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_MOST", 0)
    with running(compat=COMPAT) as server:
        for path, body in BODIES.items():
            answer = server.ask(path, body)
            assert (answer.status, list(answer.json), answer.headers["retry-after"]) == (
                503,
                [FORM_OF_ERROR[path]],
                "5",
            )


SENTENCES = ("We saw her.", "It failed!", "They left?")


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("path", [*BODIES, "/v1/translate"])
def test_failing_sentence(path: str, place: int) -> None:
    bad = (1, *CachedModel().tokenize(SENTENCES[place]))
    model = CachedModel(1, broken=lambda scores: any(score.prefix[: len(bad)] == bad for score in scores))
    text = " ".join(SENTENCES)
    bodies: dict[str, dict[str, Any]] = {
        "/v2/translate": {"text": ["We saw.", text], "target_lang": "DE"},
        "/translate": {"q": text, "source": "en", "target": "de"},
        "/v1/chat/completions": {"model": "demo/de", "messages": [{"role": "user", "content": text}]},
        "/v1/translate": {"text": text, "targets": ["ja", "de"]},
    }
    with running(model, compat=COMPAT, busy=1000) as server:
        answer = server.ask(path, bodies[path])
    assert (answer.status, list(answer.json)) == (500, [FORM_OF_ERROR[path]])
    assert "the text could not be translated: the model failed on it" in answer.text


def test_client_that_leaves() -> None:
    for path, body in [*BODIES.items(), ("/v1/translate", {"text": "a", "targets": ["de"]})]:
        body = json.loads(json.dumps(body).replace('"a"', '"We all looked at our phones."'))
        model = CachedModel(1, broken=slow)
        model.end_bias = -1000.0
        with running(model, compat=COMPAT, busy=1000) as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            connection.request("POST", path, json.dumps(body), JSON)
            eventually(lambda model=model: model.new)
            connection.close()
            eventually(lambda: server.engine.scheduler.requests == 0)
            before = len(model.new)
            time.sleep(0.2)
            assert len(model.new) == before


def test_hosts_and_origins(imitating: Running) -> None:
    for path, body in BODIES.items():
        assert imitating.ask(path, body, headers={"origin": "https://elsewhere.example"}).status == 403
        assert imitating.ask(path, body, headers={"host": "elsewhere.example"}).status == 403


def test_apis_off_by_default() -> None:
    with running(compat=("libretranslate",)) as server:
        assert [server.ask(path, body).status for path, body in BODIES.items()] == [404, 200, 404]
    with running() as server:
        assert [server.ask(path, body).status for path, body in BODIES.items()] == [404] * 3


def test_documented_endpoints() -> None:
    table = (ROOT / "docs" / "contracts.md").read_text("utf-8")
    with running(compat=(*COMPAT, "alignatt-mt")) as server:
        routes = compat_routes(server.hub)
    found = re.findall(r"^\| `(?:(?:POST|GET) )?(/[\w/]*)` \| (?!Redraft)\w+ \| [A-Z].*\. \|$", table, re.MULTILINE)
    assert sorted({*found}) == sorted(route.path for route in routes if isinstance(route, (Route, WebSocketRoute)))
    text = (ROOT / "docs" / "compat.md").read_text("utf-8")
    sentence = ONLY_TRANSLATES.format(example="redraft-demo/de")
    assert sentence in " ".join(text.replace("\n> ", " ").split())


def test_unknown_api() -> None:
    said = "compat must be one or more of alignatt-mt, deepl, libretranslate, openai, not 'bing'"
    with pytest.raises(OptionError, match=re.escape(said)):
        check_compat(ServeSettings(compat=("openai", "bing")))
    done = CliRunner().invoke(cli, ["serve", "--port", "0", "--compat", "deepl, bing"])
    assert said in str(done.exception or done.output)


@given(
    st.sampled_from(list(BODIES)),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(["de", "a 🔤 b 🔤", "user"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["text", "target_lang", "q", "source", "target", "messages", "role", "content", "model"]
                ),
                inner,
                max_size=4,
            )
        ),
    ),
)
@settings(deadline=None, max_examples=150)
def test_fuzz(imitating: Running, path: str, body: Any) -> None:
    fields = body if isinstance(body, dict) else {"text": body, "q": body, "messages": body}
    answer = imitating.ask(path, BODIES[path] | fields)
    assert answer.status in (200, 400, 413, 429, 503), answer.text
    assert answer.status == 200 or list(answer.json) == [FORM_OF_ERROR[path]]
