"""vLLM: ``/v1/completions`` on ids, with the log-probabilities of the prompt's own tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redraft.backends.remote.dialect import RemoteDialect, reading
from redraft.backends.remote.rows import ChosenToken, RemoteRow

#: The model's own distribution and nothing else; vLLM would take defaults from the model's generation settings.
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

    def verify(self, model: str, prefix: Sequence[int], draft: Sequence[int], k: int) -> list[RemoteRow]:
        """Rows from ``prompt_logprobs``; the last one from the one token that is generated."""
        choice = self._complete(model, [*prefix, *draft], 1, k, {"prompt_logprobs": k})
        with reading(self._client, "without the log-probabilities of the draft"):
            entries = choice["prompt_logprobs"]
            if len(entries) != len(prefix) + len(draft):
                raise ValueError("not one entry for every id of the prompt")
            rows = [_prompt_row(entry, token, k) for entry, token in zip(entries[len(prefix) :], draft, strict=True)]
        return [*rows, self._steps(choice, 1, k)[0].row]

    def continued(
        self, model: str, prefix: Sequence[int], count: int, k: int, ends: Sequence[int]
    ) -> list[ChosenToken]:
        """Tokens that vLLM chooses, with their rows."""
        return self._steps(self._complete(model, prefix, count, k, {"stop_token_ids": list(ends)}), count, k)

    def _complete(self, model: str, ids: Sequence[int], count: int, k: int, more: Mapping[str, Any]) -> Any:
        body = {"model": model, "prompt": list(ids), "max_tokens": count, "logprobs": k, **_GREEDY, **more}
        answer = self._client.post("/v1/completions", body)
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


def _prompt_row(entry: Mapping[str, Mapping[str, Any]], drafted: int, k: int) -> RemoteRow:
    known = {int(token): found["logprob"] for token, found in entry.items()}
    if drafted not in known:
        raise ValueError("the row is of another token")
    return RemoteRow.of(known, k)


def _id(name: str) -> int:
    """The id in ``token_id:5``."""
    return int(name.removeprefix("token_id:"))
