"""SGLang: ``/generate`` on ids; rows of the prompt are computed only from the draft on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redraft.backends.remote.dialect import GreedyRequest, RemoteDialect, reading
from redraft.backends.remote.line import Steps
from redraft.backends.remote.rows import ChosenToken, RemoteRow

#: Sample from the model's own distribution.
_GREEDY = {
    "temperature": 0,
    "top_p": 1,
    "top_k": -1,
    "min_p": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
}


class Sglang(RemoteDialect):
    """SGLang's own server; it has one model, so requests do not name it."""

    def verify(self, wanted: GreedyRequest) -> tuple[list[RemoteRow], list[ChosenToken]]:
        """Read the draft's rows from ``input_top_logprobs``."""
        facts = self._generate(wanted)
        with reading(self._client, "without the log-probabilities of the draft"):
            # The first entry is the last prefix token, which has no prediction.
            own, best = facts["input_token_logprobs"][1:], facts["input_top_logprobs"][1:]
            if [entry[1] for entry in own] != list(wanted.draft) or len(best) != len(own):
                raise ValueError("not one row for every token of the draft")
            rows = [_row([*entries, entry], wanted.k) for entries, entry in zip(best, own, strict=True)]
        return rows, self._steps(facts, wanted.count, wanted.k)

    def continued(self, wanted: GreedyRequest) -> Steps:
        """Yield SGLang's tokens with their rows, all at once."""
        yield from self._steps(self._generate(wanted), wanted.count, wanted.k)

    def _generate(self, wanted: GreedyRequest) -> Any:
        body = {
            "input_ids": [*wanted.prefix, *wanted.draft],
            "return_logprob": True,
            "logprob_start_len": len(wanted.prefix) - 1,  # skips the rows of the prompt
            "top_logprobs_num": wanted.k,
            "return_text_in_logprobs": False,
            "sampling_params": {"max_new_tokens": wanted.count, "stop_token_ids": list(wanted.ends), **_GREEDY},
        }
        answer = self._client.post("/generate", body)
        with reading(self._client, "without a completion"):
            return answer["meta_info"]

    def _steps(self, facts: Any, count: int, k: int) -> list[ChosenToken]:
        with reading(self._client, "without the log-probabilities of its tokens"):
            own, best = facts["output_token_logprobs"], facts["output_top_logprobs"]
            if not 1 <= len(own) <= count or len(best) != len(own):
                raise ValueError("not one row for every token")
            return [
                ChosenToken(int(entry[1]), _row([*entries, entry], k)) for entry, entries in zip(own, best, strict=True)
            ]


def _row(entries: Sequence[Sequence[Any]], k: int) -> RemoteRow:
    """Make a row from ``[log-probability, id, text]`` triples."""
    return RemoteRow.of({int(entry[1]): entry[0] for entry in entries}, k)
