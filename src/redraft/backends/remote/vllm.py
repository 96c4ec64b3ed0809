"""vLLM: ``/v1/completions`` on ids, with log-probabilities of the prompt's tokens.

With the plug-in ``redraft-vllm``, a request carries a draft, which the engine verifies before it continues decoding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redraft.backends.remote.dialect import GreedyRequest, RemoteDialect, reading
from redraft.backends.remote.line import Steps
from redraft.backends.remote.rows import ChosenToken, RemoteRow
from redraft.errors import ModelError

_ROUTE = "/v1/completions"
#: Sample from the model's own distribution; vLLM would apply the model's generation settings.
_GREEDY = {
    "temperature": 0,
    "top_p": 1,
    "top_k": 0,
    "min_p": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "add_special_tokens": False,
    "return_token_ids": True,
    "return_tokens_as_token_ids": True,
}


class Vllm(RemoteDialect):
    """vLLM's OpenAI-compatible server."""

    def verify(self, wanted: GreedyRequest) -> tuple[list[RemoteRow], list[ChosenToken]]:
        """Read the draft's rows from ``prompt_logprobs``, with which vLLM refuses to stream."""
        prefix, draft, k = wanted.prefix, wanted.draft, wanted.k
        more = {"prompt_logprobs": k, "stop_token_ids": list(wanted.ends)}
        choice = self._complete(_body(wanted.model, [*prefix, *draft], wanted.count, k, more))
        with reading(self._client, "without the log-probabilities of the draft"):
            entries = choice["prompt_logprobs"]
            if len(entries) != len(prefix) + len(draft):
                raise ValueError("not one entry for every id of the prompt")
            rows = [_prompt_row(entry, token, k) for entry, token in zip(entries[len(prefix) :], draft, strict=True)]
        return rows, self._steps(choice, wanted.count, k)

    def continued(self, wanted: GreedyRequest) -> Steps:
        """Yield vLLM's tokens with their rows as they are streamed."""
        more: dict[str, Any] = {"stop_token_ids": list(wanted.ends), "stream": True}
        if wanted.draft:
            more["vllm_xargs"] = _carried(wanted.draft, wanted.bias)
        body, left = _body(wanted.model, wanted.prefix, wanted.count, wanted.k, more), wanted.count
        events = self._client.stream(_ROUTE, body)
        for event in events:
            with reading(self._client, "without a completion"):
                choice = event["choices"][0]
                ended = choice.get("finish_reason") is not None
                nothing = ended and left < wanted.count and not choice["token_ids"]
            steps = [] if nothing else self._steps(choice, left, wanted.k)
            left -= len(steps)
            if ended:
                # There are no more events; reading the end lets the connection be reused.
                for _ in events:
                    pass
            yield from steps
        if left == wanted.count:
            raise self._client.malformed("without a completion")

    def probe(self, model: str, tokens: Sequence[int]) -> bool:
        """Whether the engine accepts a draft that no model would generate, if the request asks for it.

        This tests the running engine rather than what is installed, and needs no extra route or option.
        """
        carried = {"vllm_xargs": _carried(tokens, 1.0)}
        try:
            choice = self._complete(_body(model, tokens[-1:], len(tokens), 0, carried))
            return bool(choice["token_ids"] == list(tokens))
        except (ModelError, LookupError, TypeError):  # older servers reject the field
            return False

    def _complete(self, body: Mapping[str, Any]) -> Any:
        answer = self._client.post(_ROUTE, body)
        with reading(self._client, "without a completion"):
            return answer["choices"][0]

    def _steps(self, choice: Any, count: int, k: int) -> list[ChosenToken]:
        with reading(self._client, "without the log-probabilities of its tokens"):
            tokens, rows = choice["token_ids"], choice["logprobs"]["top_logprobs"]
            if not 1 <= len(tokens) <= count or len(rows) != len(tokens):
                raise ValueError("not one row for every token")
            return [
                ChosenToken(int(token), RemoteRow.of({_id(name): value for name, value in row.items()}, k))
                for token, row in zip(tokens, rows, strict=True)
            ]


def _body(model: str, ids: Sequence[int], count: int, k: int, more: Mapping[str, Any]) -> dict[str, Any]:
    return {"model": model, "prompt": list(ids), "max_tokens": count, "logprobs": k, **_GREEDY, **more}


def _carried(draft: Sequence[int], bias: float) -> dict[str, Any]:
    """Return the fields that ``redraft-vllm`` reads."""
    return {"ssbd_draft": list(draft), "ssbd_bias": bias}


def _prompt_row(entry: Mapping[str, Mapping[str, Any]], drafted: int, k: int) -> RemoteRow:
    known = {int(token): found["logprob"] for token, found in entry.items()}
    if drafted not in known:
        raise ValueError("the row is of another token")
    return RemoteRow.of(known, k)


def _id(name: str) -> int:
    """Return the id in ``token_id:5``."""
    return int(name.removeprefix("token_id:"))
