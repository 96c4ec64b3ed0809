"""Servers that are down, refuse, or send an unexpected response; unknown models and missing rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import httpx2
import pytest

from redraft import Translator, Update
from redraft.backends.load import open_backend, open_model, resolve
from redraft.backends.options import RemoteOptions
from redraft.backends.remote import client as clients
from redraft.backends.remote.address import Address
from redraft.backends.remote.client import RemoteClient
from redraft.backends.remote.dialect import check_ids, served
from redraft.backends.slots import Facts
from redraft.captions.events import Caption, Failure
from redraft.deadlines import Backoff
from redraft.decoding.types import ROOT, Draft, Provenance, Score
from redraft.errors import CapabilityError, ContextOverflow, ModelError, OptionError
from tests.backends.remote.servers import KEY, NAME, SERVER, FakeServer, FakeSglang, FakeVllm, Table, connected, sent_by

DRAFT = Draft.chain((6, 7), Provenance.PREVIOUS)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "RETRIES", Backoff(first=0.001, patience=0.001))


@pytest.fixture(params=[FakeVllm, FakeSglang])
def server(request: pytest.FixtureRequest) -> FakeServer:
    made: FakeServer = request.param(Table())
    return made


def texts(*words: str) -> Iterator[Update]:
    for seq, text in enumerate(words):
        yield Update("1", seq, text)


def test_failed_request_beside_others(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass ends when all of its requests have, so that none of their slots is in use."""
    with closing(connected(server, slots=2)) as backend:
        answered = []

        def answer(slot: int, score: Score) -> None:
            if slot == 0:
                raise ModelError("no answer")
            time.sleep(0.3)
            answered.append(slot)

        monkeypatch.setattr(backend, "_answer", answer)
        with pytest.raises(ModelError, match="no answer"):
            backend.score([(backend.open_slot(), Score((5,))), (backend.open_slot(), Score((5,)))])
        assert answered == [1]


def test_server_away(server: FakeServer) -> None:
    updates = list(texts("the cats", "the cats of", "the cats of our house"))
    settings: dict[str, Any] = {
        "to": ["de"],
        "options": {"beta": 0},
    }
    with closing(connected(server)) as backend, Translator(backend, **settings) as translator:
        (first,) = translator.translate(updates[0])
        server.down = True
        (second,) = translator.translate(updates[1])
        server.down = False
        (third,) = translator.translate(updates[2])
    assert isinstance(first, Caption) and isinstance(third, Caption)
    assert second == Failure(
        f"the {server.engine} server at {SERVER} cannot be reached: connection refused", None, "1", 1
    )
    with Translator(Table(), **settings) as translator:
        translator.translate(updates[0])
        assert translator.translate(updates[2]) == [third]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, r"refuses the API key \(HTTP 401\): put the right one into REDRAFT_REMOTE_KEY"),
        (400, r"answers HTTP 400: .*the engine is dead.*"),
        (500, r"answers HTTP 500: .*the engine is dead.*"),
        (503, r"answers HTTP 503: .*the engine is dead.*"),
    ],
)
def test_refusals_are_one_sentence(server: FakeServer, status: int, words: str) -> None:
    with closing(connected(server)) as backend:
        slot = backend.open_slot()
        server.status = status
        with pytest.raises(ModelError, match=f"^the {server.engine} server at {SERVER} {words}$"):
            backend.score([(slot, Score((3,)))])


def test_key_is_sent(server: FakeServer) -> None:
    server.key = KEY
    with pytest.raises(ModelError, match="refuses the API key"):
        connected(server, "wrong")
    with closing(connected(server, KEY)) as backend:
        assert backend.score([(backend.open_slot(), Score((3,)))])


def answering(answer: Callable[[httpx2.Request], httpx2.Response]) -> RemoteClient:
    return RemoteClient("vllm", SERVER, "", RemoteOptions(timeout=0.5), httpx2.MockTransport(answer))


def test_only_what_is_over_quickly_is_sent_again() -> None:
    def slow(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("timed out", request=request)

    client = answering(slow)
    sent = sent_by(client)
    with pytest.raises(ModelError, match="did not answer within 0.5 seconds"):
        client.ask("/x", {})
    assert len(sent) == 1

    answers = iter([httpx2.Response(503, json={}), httpx2.Response(200, json={"a": 1})])
    client = answering(lambda request: next(answers))
    sent = sent_by(client)
    assert client.ask("/x", {}) == {"a": 1} and len(sent) == 2

    client = answering(lambda request: httpx2.Response(500, text=" it\nbroke "))
    sent = sent_by(client)
    with pytest.raises(ModelError, match="answers HTTP 500: it broke$"):
        client.ask("/x", {})
    assert len(sent) == 1


def test_redirects_are_not_followed() -> None:
    client = answering(lambda request: httpx2.Response(302, headers={"Location": "http://127.0.0.1:9/"}))
    with pytest.raises(ModelError, match="answers HTTP 302: Found"):
        client.ask("/x")


def spoiled(server: FakeServer, place: str, value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Changes one field of the rows of drafts or of generated tokens."""

    def spoil(answer: Any) -> Any:
        facts = answer["choices"][0] if server.engine == "vllm" else answer["meta_info"]
        name = {
            ("vllm", "draft"): "prompt_logprobs",
            ("vllm", "tokens"): "token_ids",
            ("sglang", "draft"): "input_top_logprobs",
            ("sglang", "tokens"): "output_token_logprobs",
        }[server.engine, place]
        if facts[name]:
            facts[name] = value(facts[name])
        return answer

    return spoil


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda rows: None, id="none"),
        pytest.param(lambda rows: rows[:-1], id="one short"),
        pytest.param(lambda rows: [*rows[:-1], None], id="one missing"),
        pytest.param(lambda rows: [*rows[:-1], {}], id="one empty"),
        pytest.param(lambda rows: [*rows[:-1], "?"], id="one that is no row"),
        pytest.param(lambda rows: [*rows[:-1], {"6": {"logprob": None}}], id="one without numbers"),
    ],
)
def test_malformed_rows_of_draft(server: FakeServer, value: Callable[[Any], Any]) -> None:
    server.spoil = spoiled(server, "draft", value)
    words = "gave an answer without the log-probabilities of the draft"
    with closing(connected(server)) as backend, pytest.raises(ModelError, match=words):
        backend.score([(backend.open_slot(), Score((3, 4, 5), DRAFT))])


@pytest.mark.parametrize("value", [lambda tokens: [], lambda tokens: [*tokens, *tokens], lambda tokens: None])
def test_malformed_tokens_are_failure(server: FakeServer, value: Callable[[Any], Any]) -> None:
    server.spoil = spoiled(server, "tokens", value)
    with closing(connected(server)) as backend, Translator(backend, ["de"]) as translator:
        first, second = texts("the cats", "the cats of")
        (failure,) = translator.translate(first)
        assert isinstance(failure, Failure)
        assert failure.message.endswith("gave an answer without the log-probabilities of its tokens")
        server.spoil = lambda answer: answer
        assert isinstance(translator.translate(second)[0], Caption)


@pytest.mark.parametrize("answer", [[], {}, {"choices": []}, {"meta_info": None}, 5])
def test_other_answers_are_failure(server: FakeServer, answer: Any) -> None:
    server.spoil = lambda _answer: answer
    with (
        closing(connected(server)) as backend,
        pytest.raises(ModelError, match="gave an answer without"),
    ):
        backend.score([(backend.open_slot(), Score((3,)))])


def test_what_servers_do_not_give_is_refused_by_name(server: FakeServer) -> None:
    with closing(connected(server, slots=1)) as backend:
        slot = backend.open_slot()
        with pytest.raises(CapabilityError, match="all 1 slots are in use"):
            backend.open_slot()
        with pytest.raises(CapabilityError, match="no draft trees"):
            backend.score([(slot, Score((3,), Draft((4, 5), (ROOT, ROOT), (Provenance.MODEL,) * 2)))])
        with pytest.raises(CapabilityError, match="no rows of the prompt"):
            backend.score([(slot, Score((3, 4), prompt_rows=2))])
        with pytest.raises(ContextOverflow, match="513 tokens do not fit into the context length of 512"):
            backend.score([(slot, Score((3,) * 513))])
        (rows,) = backend.score([(slot, Score((3, 4), DRAFT))])
        with pytest.raises(CapabilityError, match="no entropy"):
            rows.entropy(0)
        with pytest.raises(CapabilityError, match="no rows of the prompt"):
            rows.argmax(-2)
        with pytest.raises(CapabilityError, match="at most the 20 best tokens, not 21"):
            rows.best(0, 21)
        worst = server.best((3, 4), 30)[-1][0]
        with pytest.raises(CapabilityError, match="of the draft and of the 20 best tokens only"):
            rows.logprob(ROOT, worst)


@pytest.mark.parametrize("method", ["aasd"])
def test_methods_with_trees_are_refused(server: FakeServer, method: str) -> None:
    with closing(connected(server)) as backend, pytest.raises(CapabilityError, match="needs a backend with"):
        Translator(backend, ["de"], method=method)


def test_models_that_are_not_served_are_refused(server: FakeServer) -> None:
    client = RemoteClient(server.engine, SERVER, "", RemoteOptions(), httpx2.MockTransport(server))
    with pytest.raises(ModelError, match=f"model 'other' is not served: name one of {NAME} in the address"):
        served(client, "other")


def test_another_tokenizer_is_refused(server: FakeServer) -> None:
    client = RemoteClient(server.engine, SERVER, "", RemoteOptions(), httpx2.MockTransport(server))
    other = Table(vocabulary=29)
    with pytest.raises(ModelError, match="differs from the server's for model 'table'"):
        check_ids(client, Facts(NAME, other, 513, other.end_tokens, 1, 29))


@pytest.mark.parametrize(
    "name",
    ["vllm:", "vllm:host", "sglang:ftp://host/m", "vllm:http:///m", "vllm:http://host:x/m", "vllm:http://host/m?a=1"],
)
def test_addresses_that_are_none_are_refused(name: str) -> None:
    with pytest.raises(
        ModelError, match=f"^model '{name.replace('?', '.')}' is not ENGINE:http://HOST:PORT/MODEL#TOKENIZER"
    ):
        open_backend(name)


def test_addresses() -> None:
    assert Address.parse("vllm:https://host:8000/Qwen/Qwen3-4B#/models/q") == Address(
        "vllm", "https://host:8000", "Qwen/Qwen3-4B", "/models/q"
    )
    assert Address.parse("sglang:http://[::1]:3") == Address("sglang", "http://[::1]:3")
    with pytest.raises(ModelError, match="put the API key into REDRAFT_REMOTE_KEY instead") as caught:
        Address.parse("vllm:http://me:word@host/m")
    assert "word" not in str(caught.value)


def test_model_on_server_is_no_file() -> None:
    for refused in (resolve, open_model):
        with pytest.raises(ModelError, match="is on a server, but a file is needed"):
            refused("vllm:http://host/m")
    with pytest.raises(OptionError, match="^engine dtype is not for models on servers, so leave it out; its options: "):
        open_backend("vllm:http://host/m", {"dtype": "float32"})


@pytest.mark.parametrize(
    ("field", "value"), [("slots", 0), ("ahead", 0), ("context_length", 1), ("timeout", 0), ("timeout", float("nan"))]
)
def test_options_are_checked(field: str, value: float) -> None:
    with pytest.raises(OptionError, match=f"^{field} must be"):
        RemoteOptions(**{field: value})  # type: ignore[arg-type]
