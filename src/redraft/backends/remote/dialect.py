"""Requests to vLLM and SGLang, and their responses, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from redraft.backends.remote.client import Absent, RemoteClient
from redraft.backends.remote.rows import RemoteRow, Steps
from redraft.backends.slots import Facts
from redraft.decoding.types import Score
from redraft.errors import ModelError


class RemoteDialect(ABC):
    """A model on a kind of server; all ids are those of its vocabulary.

    Attributes:
        verifies: whether the server verifies a draft and continues decoding in one request.
    """

    def __init__(self, client: RemoteClient, model: Facts, verifies: bool = False) -> None:
        self.client, self.model, self.verifies = client, model, verifies

    @abstractmethod
    def verify(self, score: Score, k: int) -> list[RemoteRow]:
        """Score a draft of n tokens, whatever the model would choose, in one response.

        Returns:
            (n + 1,) rows that predict the draft's tokens and the one behind them, with the ``k`` best tokens and the
            draft's own.

        Raises:
            ModelError: the server does not answer, or rows are missing or belong to other tokens.
        """

    @abstractmethod
    def continued(self, score: Score, count: int, k: int) -> Steps:
        """Yield between 1 and ``count`` greedy tokens after the prefix, up to and including one that ends an output.

        A server that verifies drafts itself yields the part of the draft first that the rule keeps (`Score.biases`).

        Raises:
            ModelError: the server does not answer, or rows are missing or belong to other tokens.
        """

    def probe(self, tokens: Sequence[int]) -> bool:
        """Whether the server verifies drafts itself.

        Args:
            tokens: a few different ids, none of which ends an output, that no model would generate in this order.
        """
        return False


def served(client: RemoteClient, wanted: str) -> tuple[str, str, int]:
    """Return the model called ``wanted``, or the only model if the name is empty, from OpenAI's list of models.

    Returns:
        Its name, the files that the server has loaded, and the most ids of a request: the server always adds a token.

    Raises:
        ModelError: the model is not served.
    """
    with client.reading("without a list of models"):
        models = {str(each["id"]): each for each in client.ask("/v1/models")["data"]}
        own = {name: each for name, each in models.items() if not each.get("parent")}
    if not wanted and len(own) == 1:
        wanted = next(iter(own))
    if wanted not in models:
        raise ModelError(f"model {wanted!r} is not served: name one of {', '.join(models)} in the address")
    with client.reading("without the context length of the model"):
        found = models[wanted]
        return wanted, str(found.get("root") or wanted), int(found["max_model_len"]) - 1


def check_ids(client: RemoteClient, model: Facts) -> None:
    """Compare this machine's tokenizer with the server's, if it has a route for that.

    Raises:
        ModelError: they give different ids for the same text.
    """
    text = "Guten Tag, 12 Katzen und 猫。"
    try:
        answer = client.ask("/tokenize", {"model": model.name, "prompt": text, "add_special_tokens": False})
    except Absent:
        return
    with client.reading("without the ids of a text"):
        theirs = [int(token) for token in answer["tokens"]]
    if theirs != model.tokenizer.tokenize(text):
        raise ModelError(
            f"the tokenizer here differs from the server's for model {model.name!r}: "
            "put the right one after a # in the address"
        )


_ROUTE = "/v1/completions"
#: Sample from the model's own distribution; vLLM would apply the model's generation settings.
_GREEDY = {
    "temperature": 0,
    "top_p": 1,
    "min_p": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
}
_GREEDY_VLLM = {
    **_GREEDY,
    "top_k": 0,
    "add_special_tokens": False,
    "return_token_ids": True,
    "return_tokens_as_token_ids": True,
}


class Vllm(RemoteDialect):
    """vLLM: ``/v1/completions`` on ids, with log-probabilities of the prompt's tokens.

    With the plug-in ``redraft-vllm``, a request carries a draft, which the engine verifies before it decodes on.
    """

    def verify(self, score: Score, k: int) -> list[RemoteRow]:
        """Read the draft's rows from ``prompt_logprobs``, with which vLLM refuses to stream."""
        prefix, draft = score.prefix, score.draft.tokens
        choice = self._complete(prefix + draft, 1, k, prompt_logprobs=k)
        with self.client.reading("without the log-probabilities of the draft"):
            rows = []
            for entry, drafted in zip(choice["prompt_logprobs"][len(prefix) :], draft, strict=True):
                known = {int(token): found["logprob"] for token, found in entry.items()}
                if drafted not in known:
                    raise ValueError("the row is of another token")
                rows.append(RemoteRow.of(known, k))
        return rows + [row for _token, row in self._steps(choice, 1, k)]

    def continued(self, score: Score, count: int, k: int) -> Steps:
        """Yield vLLM's tokens with their rows as they are streamed."""
        carried = _carried(score.draft.tokens, score.biases or ()) if score.draft else {}
        events, left = self.client.stream(_ROUTE, self._body(score.prefix, count, k, stream=True, **carried)), count
        for event in events:
            with self.client.reading("without a completion"):
                choice = event["choices"][0]
                ended = choice.get("finish_reason") is not None
                nothing = ended and left < count and not choice["token_ids"]
            steps = [] if nothing else self._steps(choice, left, k)
            left -= len(steps)
            if ended:
                # There are no more events; reading the end lets the connection be reused.
                for _ in events:
                    pass
            yield from steps
        if left == count:
            raise self.client.malformed("without a completion")

    def probe(self, tokens: Sequence[int]) -> bool:
        """Whether the engine accepts a draft that no model would generate, if the request asks for it.

        This tests the running engine rather than what is installed, and needs no extra route or option.
        """
        try:
            carried = _carried(tokens, [1.0] * len(tokens))
            choice = self._complete(tokens[-1:], len(tokens), 0, **carried)
            return bool(choice["token_ids"] == list(tokens))
        except (ModelError, LookupError, TypeError):  # older servers reject the field
            return False

    def _complete(self, ids: Sequence[int], count: int, k: int, **more: Any) -> Any:
        answer = self.client.ask(_ROUTE, self._body(ids, count, k, **more))
        with self.client.reading("without a completion"):
            return answer["choices"][0]

    def _body(self, ids: Sequence[int], count: int, k: int, **more: Any) -> dict[str, Any]:
        body = {"model": self.model.name, "prompt": list(ids), "max_tokens": count, "logprobs": k, **_GREEDY_VLLM}
        return {**body, "stop_token_ids": sorted(self.model.end_tokens), **more}

    def _steps(self, choice: Any, count: int, k: int) -> list[tuple[int, RemoteRow]]:
        with self.client.reading("without the log-probabilities of its tokens"):
            tokens, rows = choice["token_ids"], choice["logprobs"]["top_logprobs"]
            if not 1 <= len(tokens) <= count or len(rows) != len(tokens):
                raise ValueError("not one row for every token")
            known = [{int(name.removeprefix("token_id:")): value for name, value in row.items()} for row in rows]
            return [(int(token), RemoteRow.of(row, k)) for token, row in zip(tokens, known, strict=True)]


def _carried(draft: Sequence[int], biases: Sequence[float]) -> dict[str, Any]:
    return {"vllm_xargs": {"ssbd_draft": list(draft), "ssbd_bias": list(biases)}}


class Sglang(RemoteDialect):
    """SGLang: ``/generate`` on ids; it has one model, so requests do not name it."""

    def verify(self, score: Score, k: int) -> list[RemoteRow]:
        """Read the draft's rows from ``input_top_logprobs``."""
        facts = self._generate(score, score.draft.tokens, 1, k)
        with self.client.reading("without the log-probabilities of the draft"):
            # The first entry is the last prefix token, which has no prediction.
            steps = _ranked(facts["input_token_logprobs"][1:], facts["input_top_logprobs"][1:], k)
            if tuple(token for token, _row in steps) != score.draft.tokens:
                raise ValueError("not one row for every token of the draft")
        return [row for _token, row in (*steps, *self._chosen(facts, 1, k))]

    def continued(self, score: Score, count: int, k: int) -> Steps:
        """Yield SGLang's tokens with their rows, all at once."""
        yield from self._chosen(self._generate(score, (), count, k), count, k)

    def _generate(self, score: Score, draft: tuple[int, ...], count: int, k: int) -> Any:
        sampling = {"max_new_tokens": count, "stop_token_ids": sorted(self.model.end_tokens), "top_k": -1, **_GREEDY}
        body = {
            "input_ids": [*score.prefix, *draft],
            "return_logprob": True,
            "logprob_start_len": len(score.prefix) - 1,  # skips the rows of the prompt
            "top_logprobs_num": k,
            "return_text_in_logprobs": False,
            "sampling_params": sampling,
        }
        answer = self.client.ask("/generate", body)
        with self.client.reading("without a completion"):
            return answer["meta_info"]

    def _chosen(self, facts: Any, count: int, k: int) -> list[tuple[int, RemoteRow]]:
        with self.client.reading("without the log-probabilities of its tokens"):
            steps = _ranked(facts["output_token_logprobs"], facts["output_top_logprobs"], k)
            if not 1 <= len(steps) <= count:
                raise ValueError("not one row for every token")
            return steps


def _ranked(own: Sequence[Any], best: Sequence[Any], k: int) -> list[tuple[int, RemoteRow]]:
    """Return tokens with their rows: each entry is a log-probability, an id and a text; raises `ValueError`."""
    pairs = zip(own, best, strict=True)
    return [
        (int(entry[1]), RemoteRow.of({int(each[1]): each[0] for each in (*others, entry)}, k))
        for entry, others in pairs
    ]
