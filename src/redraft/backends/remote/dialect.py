"""Requests to vLLM and SGLang, and their responses, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from redraft.backends.remote.client import Absent, RemoteClient
from redraft.backends.remote.rows import ChosenToken, RemoteRow, Steps
from redraft.errors import ModelError


@dataclass(frozen=True, slots=True)
class Served:
    """A model as described by the server.

    Attributes:
        name: its name in requests.
        files: folder or hub name that the server has loaded.
        context_length: maximum number of ids of prompt and output.
    """

    name: str
    files: str
    context_length: int


@dataclass(frozen=True, slots=True)
class GreedyRequest:
    """A request for greedy tokens, with or without a draft.

    Attributes:
        model: name of the model.
        prefix: ids to continue.
        count: maximum number of tokens, at least 1.
        k: number of best tokens in each row.
        ends: ids that end the output.
        draft: draft of the output.
        biases: bias of the acceptance rule for each draft token (`redraft.decoding.types.Rule`).
    """

    model: str
    prefix: Sequence[int]
    count: int
    k: int
    ends: Sequence[int]
    draft: Sequence[int] = ()
    biases: Sequence[float] = ()


class RemoteDialect(ABC):
    """A kind of server; all ids are those of the model's vocabulary.

    Attributes:
        verifies: whether the server verifies a draft and continues decoding in one request.
    """

    def __init__(self, client: RemoteClient) -> None:
        self._client, self.verifies = client, False

    def served(self, wanted: str) -> Served:
        """Return the model called ``wanted``, or the only model if the name is empty, from OpenAI's list of models.

        Raises:
            ModelError: the model is not served.
        """
        with self._reading("without a list of models"):
            models = {str(each["id"]): each for each in self._client.get("/v1/models")["data"]}
            own = {name: each for name, each in models.items() if not each.get("parent")}
        if not wanted and len(own) == 1:
            wanted = next(iter(own))
        if wanted not in models:
            raise ModelError(f"model {wanted!r} is not served: name one of {', '.join(models)} in the address")
        with self._reading("without the context length of the model"):
            found = models[wanted]
            return Served(wanted, str(found.get("root") or wanted), int(found["max_model_len"]))

    def tokenize(self, model: str, text: str) -> list[int] | None:
        """Return the server's ids of a text without special tokens; None if it has no such route."""
        body = {"model": model, "prompt": text, "add_special_tokens": False}
        try:
            answer = self._client.post("/tokenize", body)
        except Absent:
            return None
        with self._reading("without the ids of a text"):
            return [int(token) for token in answer["tokens"]]

    @abstractmethod
    def verify(self, wanted: GreedyRequest) -> tuple[list[RemoteRow], list[ChosenToken]]:
        """Score a draft of n tokens, whatever the model would choose, and continue behind it, in one response.

        Returns:
            (n,) rows that predict the draft's tokens, with the ``k`` best tokens and the draft's own, and between 1 and
            ``count`` greedy tokens behind the draft, up to and including one of ``ends``.

        Raises:
            ModelError: the server does not answer, or rows are missing or belong to other tokens.
        """

    @abstractmethod
    def continued(self, wanted: GreedyRequest) -> Steps:
        """Yield between 1 and ``count`` greedy tokens, up to and including one of ``ends``.

        A server that verifies drafts itself yields the part of the draft first that the rule keeps.

        Raises:
            ModelError: the server does not answer, or rows are missing or belong to other tokens.
        """

    def probe(self, model: str, tokens: Sequence[int]) -> bool:
        """Whether the server verifies drafts itself.

        Args:
            tokens: a few different ids, none of which ends an output, that no model would generate in this order.
        """
        return False

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Convert exceptions while parsing a response to a `ModelError`, whose message contains ``what``."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise self._client.malformed(what) from error


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

    def verify(self, wanted: GreedyRequest) -> tuple[list[RemoteRow], list[ChosenToken]]:
        """Read the draft's rows from ``prompt_logprobs``, with which vLLM refuses to stream."""
        prefix, draft, k = wanted.prefix, wanted.draft, wanted.k
        more = {"prompt_logprobs": k, "stop_token_ids": list(wanted.ends)}
        choice = self._complete(_body(wanted.model, [*prefix, *draft], wanted.count, k, more))
        with self._reading("without the log-probabilities of the draft"):
            entries = choice["prompt_logprobs"]
            if len(entries) != len(prefix) + len(draft):
                raise ValueError("not one entry for every id of the prompt")
            rows = [_prompt_row(entry, token, k) for entry, token in zip(entries[len(prefix) :], draft, strict=True)]
        return rows, self._steps(choice, wanted.count, k)

    def continued(self, wanted: GreedyRequest) -> Steps:
        """Yield vLLM's tokens with their rows as they are streamed."""
        more: dict[str, Any] = {"stop_token_ids": list(wanted.ends), "stream": True}
        if wanted.draft:
            more["vllm_xargs"] = _carried(wanted.draft, wanted.biases)
        body, left = _body(wanted.model, wanted.prefix, wanted.count, wanted.k, more), wanted.count
        events = self._client.stream(_ROUTE, body)
        for event in events:
            with self._reading("without a completion"):
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
        carried = {"vllm_xargs": _carried(tokens, [1.0] * len(tokens))}
        try:
            choice = self._complete(_body(model, tokens[-1:], len(tokens), 0, carried))
            return bool(choice["token_ids"] == list(tokens))
        except (ModelError, LookupError, TypeError):  # older servers reject the field
            return False

    def _complete(self, body: Mapping[str, Any]) -> Any:
        answer = self._client.post(_ROUTE, body)
        with self._reading("without a completion"):
            return answer["choices"][0]

    def _steps(self, choice: Any, count: int, k: int) -> list[ChosenToken]:
        with self._reading("without the log-probabilities of its tokens"):
            tokens, rows = choice["token_ids"], choice["logprobs"]["top_logprobs"]
            if not 1 <= len(tokens) <= count or len(rows) != len(tokens):
                raise ValueError("not one row for every token")
            return [
                ChosenToken(int(token), RemoteRow.of({_id(name): value for name, value in row.items()}, k))
                for token, row in zip(tokens, rows, strict=True)
            ]


def _body(model: str, ids: Sequence[int], count: int, k: int, more: Mapping[str, Any]) -> dict[str, Any]:
    return {"model": model, "prompt": list(ids), "max_tokens": count, "logprobs": k, **_GREEDY_VLLM, **more}


def _carried(draft: Sequence[int], biases: Sequence[float]) -> dict[str, Any]:
    """Return the fields that ``redraft-vllm`` reads."""
    return {"ssbd_draft": list(draft), "ssbd_bias": list(biases)}


def _prompt_row(entry: Mapping[str, Mapping[str, Any]], drafted: int, k: int) -> RemoteRow:
    known = {int(token): found["logprob"] for token, found in entry.items()}
    if drafted not in known:
        raise ValueError("the row is of another token")
    return RemoteRow.of(known, k)


def _id(name: str) -> int:
    """Return the id in ``token_id:5``."""
    return int(name.removeprefix("token_id:"))


class Sglang(RemoteDialect):
    """SGLang: ``/generate`` on ids; it has one model, so requests do not name it."""

    def verify(self, wanted: GreedyRequest) -> tuple[list[RemoteRow], list[ChosenToken]]:
        """Read the draft's rows from ``input_top_logprobs``."""
        facts = self._generate(wanted)
        with self._reading("without the log-probabilities of the draft"):
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
            "sampling_params": {
                "max_new_tokens": wanted.count,
                "stop_token_ids": list(wanted.ends),
                "top_k": -1,
                **_GREEDY,
            },
        }
        answer = self._client.post("/generate", body)
        with self._reading("without a completion"):
            return answer["meta_info"]

    def _steps(self, facts: Any, count: int, k: int) -> list[ChosenToken]:
        with self._reading("without the log-probabilities of its tokens"):
            own, best = facts["output_token_logprobs"], facts["output_top_logprobs"]
            if not 1 <= len(own) <= count or len(best) != len(own):
                raise ValueError("not one row for every token")
            return [
                ChosenToken(int(entry[1]), _row([*entries, entry], k)) for entry, entries in zip(own, best, strict=True)
            ]


def _row(entries: Sequence[Sequence[Any]], k: int) -> RemoteRow:
    """Make a row from ``[log-probability, id, text]`` triples."""
    return RemoteRow.of({int(entry[1]): entry[0] for entry in entries}, k)
