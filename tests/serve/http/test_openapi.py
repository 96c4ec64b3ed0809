"""The HTTP interface against its own description: requests of all kinds, made from it by schemathesis."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import settings

from redraft.serve.http.pages import API
from tests.serve.fakes import CachedModel
from tests.serve.servers import FUZZED, SECONDS, Running, running

OPENAPI = json.loads((API / "openapi.json").read_text(encoding="utf-8"))
DESCRIPTION = schemathesis.openapi.from_dict(OPENAPI)
#: A request in good order may still ask for a language that there is not, or come when there is no room (503).
LEFT_OUT = [schemathesis.checks.positive_data_acceptance, schemathesis.checks.not_a_server_error]
NAMES: dict[str, str] = {}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    many = ("sessions", "sessions_per_address", "languages", "starts_per_second", "updates_per_second")
    with running(CachedModel(2), message_bytes=1 << 24, **dict.fromkeys(many, 10_000)) as found:
        for name in ("going", "ended"):
            started = found.ask("/v1/sessions", {"targets": ["de"], "room": name}).json
            found.ask(f"/v1/ingest/{started['token']}?seq=0", b"we saw")
            NAMES.update({f"{name} token": started["token"], f"{name} session": started["session"]})
            NAMES[f"{name} room"] = name
        found.ask(f"/v1/ingest/{started['token']}", method="DELETE")
        yield found


@DESCRIPTION.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Now and then a session that there is; it must have ended where it is to be ended, or waited for."""
    if path_parameters and sum(map(ord, str(path_parameters))) % 2:
        state = "going" if context.operation.method == "post" else "ended"
        # At collection, when examples are made, there is no server yet.
        return {name: NAMES.get(f"{state} {name}", value) for name, value in path_parameters.items()}
    return path_parameters


@DESCRIPTION.hook
def map_body(context: Any, body: Any) -> Any:
    """Names of languages and methods that there are, in place of others that might be; what might not be stays."""
    if not isinstance(body, dict):
        return body
    known: dict[str, Any] = {"targets": ["de", "ja"], "source_language": "en", "method": "ar"}
    return {name: known[name] if name in known and _might_be(value) else value for name, value in body.items()}


def _might_be(value: Any) -> bool:
    if isinstance(value, list):
        return 0 < len(value) <= 16 and all(map(_might_be, value)) and len(set(value)) == len(value)
    return isinstance(value, str) and 0 < len(value) <= 100


@pytest.mark.fuzz
@settings(max_examples=min(500, settings().max_examples))  # of each operation
@DESCRIPTION.parametrize()
def test_answers(server: Running, case: Any) -> None:
    if case.query and case.query.get("live") not in (None, False, "false", "0", "off", "no"):
        # A live transcript ends with its session, and those that other requests have begun go on.
        case.path_parameters = {name: NAMES[f"ended {name}"] for name in case.path_parameters}
    answer = case.call(base_url=server.url, timeout=SECONDS)
    # Schemathesis does not accept 413 as a refusal of a body that is wrong in other ways, too.
    too_large = [schemathesis.checks.negative_data_rejection] if answer.status_code == 413 else []
    case.validate_response(answer, excluded_checks=[*LEFT_OUT, *too_large])
    FUZZED["requests"] += 1
    assert answer.status_code < 500 or answer.json()["error"]["code"] in ("capacity", "translation")
    assert server.hub.engines.alive


def test_documented_refusals() -> None:
    answers = OPENAPI["paths"]["/v1/translate"]["post"]["responses"]
    assert sorted(answers) == ["200", "400", "401", "413", "429", "500", "503"]
    assert all(f"`{code}`" in answers["503"]["description"] for code in ("capacity", "draining", "engine"))
