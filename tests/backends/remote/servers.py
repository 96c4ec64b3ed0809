"""Servers of a table model that take the requests of vLLM and SGLang, and answer in their forms.

The forms are those of vLLM 0.32, which `test_scale.py` runs, and of SGLang's source (0.5.23).  Fields that the real
servers do not have are refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import numpy as np

from redraft.backends.options import RemoteOptions
from redraft.backends.remote.backend import RemoteBackend
from redraft.backends.remote.client import RemoteClient
from redraft.backends.remote.dialect import Sglang, Vllm, served
from redraft.backends.slots import Facts
from redraft.captions.metadata import FINAL_MARK_KEY, PROMPT_KEY
from tests.fakes import RandomModel

KEY = "secret"
NAME = "table"
SERVER = "http://127.0.0.1:8000"

_SAMPLING = {
    "temperature": 0,
    "top_p": 1,
    "min_p": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
}
_VLLM = {"model", "prompt", "max_tokens", "logprobs", "prompt_logprobs", "stop_token_ids", "top_k"}
_VLLM |= {"add_special_tokens", "return_token_ids", "return_tokens_as_token_ids", "stream", "vllm_xargs", *_SAMPLING}
_SGLANG = {"input_ids", "return_logprob", "logprob_start_len", "top_logprobs_num", "return_text_in_logprobs"}
_SGLANG_SAMPLING = {"max_new_tokens", "stop_token_ids", "top_k", *_SAMPLING}


class Table(RandomModel):
    """A table model with a prompt; its outputs are of some length."""

    #: Its sentences have no mark at their end.
    metadata = {PROMPT_KEY: "{source}>{code}", FINAL_MARK_KEY: ""}  # noqa: RUF012 - as the base class declares it

    def __init__(self, seed: int = 0, vocabulary: int = 30) -> None:
        super().__init__(seed, vocabulary, shift=0.3, end_bias=2.0)


class Refused(Exception):
    """What a server does not take."""


class FakeServer:
    """Answers HTTP requests.

    Attributes:
        bodies: of the requests that were for the model.
        down: while true, nothing answers.
        status: what is answered in place of 200.
        spoil: changes an answer before it is sent.
    """

    engine = ""

    def __init__(self, model: RandomModel, key: str = "") -> None:
        self.table, self.key = model, key
        self.bodies: list[dict[str, Any]] = []
        self.down, self.status = False, 200
        self.spoil: Callable[[dict[str, Any]], Any] = lambda answer: answer

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if self.down:
            raise httpx2.ConnectError("connection refused", request=request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        status, content = self.reply(request.method, request.url.path, headers, request.content)
        return httpx2.Response(status, content=content)

    def reply(self, method: str, path: str, headers: dict[str, str], content: bytes) -> tuple[int, str]:
        """Status and text of an answer."""
        body = json.loads(content) if content else {}
        status, answer = self.answer(method, path, headers, body)
        return status, streamed(answer) if status == 200 and body.get("stream") else json.dumps(answer)

    def answer(self, method: str, path: str, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        """Status and JSON."""
        if self.key and headers.get("authorization") != f"Bearer {self.key}":
            return 401, {"error": "Unauthorized"}
        if self.status != 200:
            return self.status, {"error": {"message": "the engine is dead", "code": self.status}}
        if (method, path) == ("GET", "/v1/models"):
            return 200, {"object": "list", "data": [{"id": NAME, "root": "/models/table", "max_model_len": 513}]}
        if (method, path) == ("POST", "/tokenize"):
            assert body["add_special_tokens"] is False
            return 200, {"tokens": self.table.tokenize(body["prompt"]), "count": 0, "max_model_len": 513}
        try:
            answer = self.generate(method, path, body)
        except Refused as error:
            return 400, {"error": {"message": str(error), "type": "BadRequestError"}}
        self.bodies.append(body)
        return 200, self.spoil(answer)

    def generate(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request for tokens."""
        raise NotImplementedError

    def row(self, ids: Sequence[int]) -> dict[int, float]:
        """(vocabulary) log-probabilities after some ids."""
        logits = self.table.logits(ids)
        logs = logits - np.logaddexp.reduce(logits)
        return {token: float(value) for token, value in enumerate(logs)}

    def best(self, ids: Sequence[int], k: int) -> list[tuple[int, float]]:
        """The ``k`` most probable tokens."""
        return sorted(self.row(ids).items(), key=lambda item: (-item[1], item[0]))[:k]

    def greedy(self, ids: Sequence[int], count: int, ends: Sequence[int]) -> list[int]:
        """Ids up to and with the first end."""
        ids, stops = list(ids), {*ends, *self.table.end_tokens}
        start = len(ids)
        while len(ids) - start < count and (len(ids) == start or ids[-1] not in stops):
            ids.append(self.best(ids, 1)[0][0])
        return ids[start:]


def refuse_unknown(body: dict[str, Any], known: set[str]) -> None:
    """Refuse fields that a server does not have."""
    if unknown := set(body) - known:
        raise Refused(f"unknown fields: {unknown}")


def streamed(answer: Any) -> str:
    """The answer of vLLM as server-sent events, one for each token; one event if it is spoiled."""
    try:
        choice = answer["choices"][0]
        tokens, rows = choice["token_ids"], choice["logprobs"]["top_logprobs"]
        parts = [
            {"index": 0, "token_ids": [token], "logprobs": {"top_logprobs": [row]}, "finish_reason": None}
            for token, row in zip(tokens, rows, strict=True)
        ]
        parts[-1]["finish_reason"] = choice["finish_reason"]
        events = [{**answer, "choices": [part]} for part in parts]
    except (LookupError, TypeError, ValueError):
        events = [answer]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


class FakeVllm(FakeServer):
    """``/v1/completions``, with or without the plug-in."""

    engine = "vllm"
    plugin = False

    def generate(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert (method, path) == ("POST", "/v1/completions") and body["model"] == NAME
        refuse_unknown(body, _VLLM)
        assert all(body[name] == value for name, value in _SAMPLING.items())
        ids, k = body["prompt"], body["logprobs"]
        if max(k, body.get("prompt_logprobs", 0)) > 20:
            raise Refused("Requested logprobs are greater than max allowed: 20")
        drafted = body.get("vllm_xargs", {}) if self.plugin else {}
        kept = self.kept(ids, drafted.get("ssbd_draft", [])[: body["max_tokens"]], drafted.get("ssbd_bias", []))
        left = body["max_tokens"] - len(kept)
        tokens = kept + (self.greedy([*ids, *kept], left, body.get("stop_token_ids", ())) if left else [])
        tops = []
        for number, token in enumerate(tokens):
            before = [*ids, *tokens[:number]]
            known = {token: self.row(before)[token]} | dict(self.best(before, k))
            tops.append({f"token_id:{each}": value for each, value in known.items()})
        choice = {
            "index": 0,
            "text": "",
            "token_ids": tokens,
            "logprobs": {"tokens": [f"token_id:{token}" for token in tokens], "top_logprobs": tops},
            "finish_reason": "length" if len(tokens) == body["max_tokens"] else "stop",
            "prompt_logprobs": self.prompt_rows(ids, body["prompt_logprobs"]) if "prompt_logprobs" in body else None,
        }
        return {"object": "text_completion", "model": NAME, "choices": [choice]}

    def kept(self, ids: Sequence[int], draft: Sequence[int], biases: Sequence[float]) -> list[int]:
        """The beginning of a draft that the plug-in keeps."""
        kept: list[int] = []
        for token, bias in zip(draft, biases, strict=False):
            row, (best, _) = self.row([*ids, *kept]), self.best([*ids, *kept], 1)[0]
            gap = math.exp(row[best]) - math.exp(row[token])
            end = not self.table.end_tokens.isdisjoint({best, token})
            if token != best and bias < 0.5 and (end or bias == 0 or gap > bias / (1 - bias)):
                break
            kept.append(token)
        return kept

    def prompt_rows(self, ids: Sequence[int], k: int) -> list[dict[str, Any] | None]:
        """An entry for every id; none for the first."""
        rows: list[dict[str, Any] | None] = [None]
        for place in range(1, len(ids)):
            row, best = self.row(ids[:place]), self.best(ids[:place], k)
            known = {ids[place]: row[ids[place]]} | dict(best)
            ranked = sorted(row.values(), reverse=True)
            rows.append(
                {str(token): {"logprob": value, "rank": ranked.index(value) + 1} for token, value in known.items()}
            )
        return rows


class FakePlugin(FakeVllm):
    """vLLM with ``redraft-vllm``."""

    plugin = True


class FakeSglang(FakeServer):
    """``/generate``."""

    engine = "sglang"

    def generate(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert (method, path) == ("POST", "/generate") and body["return_logprob"] is True
        refuse_unknown(body, {*_SGLANG, "sampling_params"})
        sampling = body["sampling_params"]
        refuse_unknown(sampling, _SGLANG_SAMPLING)
        assert all(sampling[name] == value for name, value in _SAMPLING.items())
        ids, k, start = body["input_ids"], body["top_logprobs_num"], body["logprob_start_len"]
        tokens = self.greedy(ids, sampling["max_new_tokens"], sampling.get("stop_token_ids", ()))
        own: list[Any] = [[None, ids[start], None]]
        best: list[Any] = [None]
        for place in range(start + 1, len(ids)):
            own.append([self.row(ids[:place])[ids[place]], ids[place], None])
            best.append([[value, token, None] for token, value in self.best(ids[:place], k)])
        line = [*ids, *tokens]
        after = range(len(ids), len(line))
        facts = {
            "id": "1",
            "finish_reason": {"type": "length", "length": len(tokens)},
            "prompt_tokens": len(ids),
            "input_token_logprobs": own,
            "input_top_logprobs": best,
            "output_token_logprobs": [[self.row(line[:place])[line[place]], line[place], None] for place in after],
            "output_top_logprobs": [
                [[value, token, None] for token, value in self.best(line[:place], k)] for place in after
            ],
        }
        return {"text": "", "output_ids": tokens, "meta_info": facts}


def sent_by(client: RemoteClient) -> list[httpx2.Request]:
    """The requests that a client sends from now on, including repeated ones."""
    sent: list[httpx2.Request] = []
    client._http.event_hooks = {"request": [sent.append]}
    return sent


def connected(server: FakeServer, key: str = "", **options: Any) -> RemoteBackend:
    """A backend of a server, without a network."""
    settings = RemoteOptions(**{"context_length": 512, "slots": 4, **options})
    client = RemoteClient(server.engine, SERVER, key, settings, httpx2.MockTransport(server))
    (name, _, length), table = served(client, ""), server.table
    known = (length, table.end_tokens, table.pad_token, table.vocabulary_size, table.metadata)
    dialect = (Vllm if server.engine == "vllm" else Sglang)(client, Facts(name, table, *known))
    dialect.verifies = settings.plugin and dialect.probe([9, 21, 4])
    server.bodies.clear()
    return RemoteBackend(dialect, settings)
