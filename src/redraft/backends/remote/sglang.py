"""SGLang: ``/generate`` on ids; rows of the prompt are computed only from the draft on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    def verify(self, model: str, prefix: Sequence[int], draft: Sequence[int], k: int) -> list[RemoteRow]:
        """Read rows from ``input_top_logprobs``, and the last one from the single generated token."""
        facts = self._generate([*prefix, *draft], 1, k, {"logprob_start_len": len(prefix) - 1})
        with reading(self._client, "without the log-probabilities of the draft"):
            # The first entry is the last prefix token, which has no prediction.
            own, best = facts["input_token_logprobs"][1:], facts["input_top_logprobs"][1:]
            if [entry[1] for entry in own] != list(draft) or len(best) != len(draft):
                raise ValueError("not one row for every token of the draft")
            rows = [_row([*entries, entry], k) for entries, entry in zip(best, own, strict=True)]
        return [*rows, self._steps(facts, 1, k)[0].row]

    def continued(self, wanted: GreedyRequest) -> Steps:
        """Yield SGLang's tokens with their rows, all at once."""
        sampling = {"stop_token_ids": list(wanted.ends)}
        # skips the rows of the prompt
        start = {"logprob_start_len": len(wanted.prefix) - 1}
        facts = self._generate(wanted.prefix, wanted.count, wanted.k, start, sampling)
        yield from self._steps(facts, wanted.count, wanted.k)

    def _generate(
        self, ids: Sequence[int], count: int, k: int, more: Mapping[str, Any], sampling: Mapping[str, Any] | None = None
    ) -> Any:
        body = {
            "input_ids": list(ids),
            "return_logprob": True,
            "top_logprobs_num": k,
            "return_text_in_logprobs": False,
            "sampling_params": {"max_new_tokens": count, **_GREEDY, **(sampling or {})},
            **more,
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
