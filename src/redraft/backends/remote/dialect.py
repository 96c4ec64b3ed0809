"""The interface to different servers: requests and responses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from redraft.backends.remote.client import Absent, RemoteClient
from redraft.backends.remote.line import Steps
from redraft.backends.remote.rows import ChosenToken, RemoteRow
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
        bias: bias of the acceptance rule (`redraft.decoding.types.HasBias`).
    """

    model: str
    prefix: Sequence[int]
    count: int
    k: int
    ends: Sequence[int]
    draft: Sequence[int] = ()
    bias: float = 0.0


class RemoteDialect(ABC):
    """A kind of server; all ids are those of the model's vocabulary.

    Args:
        client: client of the server.

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
        with reading(self._client, "without a list of models"):
            models = {str(each["id"]): each for each in self._client.get("/v1/models")["data"]}
            own = {name: each for name, each in models.items() if not each.get("parent")}
        if not wanted and len(own) == 1:
            wanted = next(iter(own))
        if wanted not in models:
            raise ModelError(f"model {wanted!r} is not served: name one of {', '.join(models)} in the address")
        with reading(self._client, "without the context length of the model"):
            found = models[wanted]
            return Served(wanted, str(found.get("root") or wanted), int(found["max_model_len"]))

    def tokenize(self, model: str, text: str) -> list[int] | None:
        """Return the server's ids of a text without special tokens; None if it has no such route."""
        body = {"model": model, "prompt": text, "add_special_tokens": False}
        try:
            answer = self._client.post("/tokenize", body)
        except Absent:
            return None
        with reading(self._client, "without the ids of a text"):
            return [int(token) for token in answer["tokens"]]

    @abstractmethod
    def verify(self, wanted: GreedyRequest) -> tuple[list[RemoteRow], list[ChosenToken]]:
        """Score a draft of n tokens, whatever the model would choose, and continue behind it, in one response.

        Returns:
            (n,) rows that predict the draft's tokens, with the ``k`` best tokens and the draft's own, and between 1 and
            ``count`` greedy tokens behind the draft, up to and including one of ``ends``.

        Raises:
            MalformedAnswer: rows are missing, or belong to other tokens.
            ModelError: the server does not answer.
        """

    @abstractmethod
    def continued(self, wanted: GreedyRequest) -> Steps:
        """Yield between 1 and ``count`` greedy tokens, up to and including one of ``ends``.

        A server that verifies drafts itself yields the part of the draft first that the rule keeps.

        Raises:
            MalformedAnswer: rows are missing, or belong to other tokens.
            ModelError: the server does not answer.
        """

    def probe(self, model: str, tokens: Sequence[int]) -> bool:
        """Whether the server verifies drafts itself.

        Args:
            model: name of the model.
            tokens: a few different ids, none of which ends an output, that no model would generate in this order.
        """
        return False


@contextmanager
def reading(client: RemoteClient, what: str) -> Iterator[None]:
    """Convert exceptions while parsing a response to `MalformedAnswer`.

    Raises:
        MalformedAnswer: the response is malformed; the message contains ``what``.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise client.malformed(what) from error
