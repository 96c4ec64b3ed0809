"""Pages of other origins: they may use what the operator allows, and read the responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.serve.servers import Response, Running, running

PAGE, OTHER = "https://tools.example", "https://evil.example"
ASKS = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, content-type"}


@pytest.fixture(scope="module", params=[(PAGE,), ("*",)])
def server(request: Any) -> Iterator[Running]:
    with running(busy=1000, origins=request.param, compat=("deepl", "libretranslate", "openai")) as found:
        yield found


def shared(answer: Response) -> bool:
    """Whether the page may read an answer."""
    allowed = answer.headers["access-control-allow-origin"]
    return allowed == "*" or (allowed == PAGE and "Origin" in answer.headers["vary"])


def test_preflight(server: Running) -> None:
    for path in ("/v1/translate", "/v1/chat/completions", "/v2/translate", "/translate", "/v1/sessions/x/transcript"):
        answer = server.ask(path, method="OPTIONS", headers={"origin": PAGE, **ASKS})
        assert answer.status == 200 and shared(answer)
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert {"authorization", "content-type"} <= set(answer.headers["access-control-allow-headers"].split(", "))


def test_modules_of_the_element(server: Running) -> None:
    for path in ("/redraft-captions.js", "/js/net/viewer.js", "/v1/rooms/hall-1"):
        assert shared(server.ask(path, headers={"origin": PAGE}))


def test_services(server: Running) -> None:
    messages = [{"role": "user", "content": "we saw"}]
    bodies = {
        "/v1/chat/completions": {"model": "demo/de", "messages": messages},
        "/v2/translate": {"text": ["we saw"], "target_lang": "DE"},
        "/translate": {"q": "we saw", "source": "en", "target": "de"},
        "/v1/translate": {"text": "we saw", "targets": ["de"]},
    }
    for path, body in bodies.items():
        answer = server.ask(path, body, headers={"origin": PAGE})
        assert answer.status == 200 and shared(answer), answer.text
    refused = server.ask("/v1/translate", {"text": ""}, headers={"origin": PAGE})
    assert refused.status == 400 and shared(refused)  # the page can say why


def test_other_origins() -> None:
    with running(origins=(PAGE,)) as server:
        asked = server.ask("/v1/translate", method="OPTIONS", headers={"origin": OTHER, **ASKS})
        sent = server.ask("/v1/translate", {"text": "we saw", "targets": ["de"]}, headers={"origin": OTHER})
        assert asked.status == 400 and sent.status == 403 and json.loads(sent.text)["error"]["code"] == "origin"
        assert not any(answer.headers.get("access-control-allow-origin") for answer in (asked, sent))
        read = server.ask("/v1/offer", headers={"origin": OTHER})
        assert read.status == 200 and read.headers.get("access-control-allow-origin") is None
