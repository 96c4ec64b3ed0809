"""What differs between servers: how they are asked, and what their answers look like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from redraft.backends.remote.client import Absent, RemoteClient
from redraft.backends.remote.line import Steps
from redraft.backends.remote.rows import RemoteRow
from redraft.errors import ModelError


@dataclass(frozen=True, slots=True)
class Served:
    """A model as the server describes it.

    Attributes:
        name: what requests call it.
        files: the folder or hub name that the server has loaded.
        context_length: ids that prompt and output may have together.
    """

    name: str
    files: str
    context_length: int


@dataclass(frozen=True, slots=True)
class Continuation:
    """A request for greedy tokens.

    Attributes:
        model: its name.
        prefix: ids that they follow.
        count: the most tokens, 1 or more.
        k: how many best tokens their rows have.
        ends: ids after which there are no more.
        draft: of the output, for a server that verifies drafts itself.
        bias: of the rule that it verifies with (`redraft.decoding.types.HasBias`).
    """

    model: str
    prefix: Sequence[int]
    count: int
    k: int
    ends: Sequence[int]
    draft: Sequence[int] = ()
    bias: float = 0.0


class RemoteDialect(ABC):
    """One kind of server; all ids are of the model's own vocabulary.

    Args:
        client: of the server.

    Attributes:
        verifies: whether the server verifies drafts by itself and decodes on, in one request.
    """

    def __init__(self, client: RemoteClient) -> None:
        self._client, self.verifies = client, False

    def served(self, wanted: str) -> Served:
        """The model of that name, from the list that servers give in OpenAI's form; of no name, the only one.

        Raises:
            ModelError: it is not served.
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
        """The server's ids of a text, no special tokens added; None if it has no such route."""
        body = {"model": model, "prompt": text, "add_special_tokens": False}
        try:
            answer = self._client.post("/tokenize", body)
        except Absent:
            return None
        with reading(self._client, "without the ids of a text"):
            return [int(token) for token in answer["tokens"]]

    @abstractmethod
    def verify(self, model: str, prefix: Sequence[int], draft: Sequence[int], k: int) -> list[RemoteRow]:
        """(n + 1,) rows of the root and of every draft token, with the ``k`` best tokens and the draft's own.

        Raises:
            MalformedAnswer: rows are missing, or are of other tokens.
            ModelError: the server does not answer.
        """

    @abstractmethod
    def continued(self, wanted: Continuation) -> Steps:
        """At least one and at most ``count`` tokens, chosen greedily, up to and with one of ``ends``.

        Raises:
            MalformedAnswer, ModelError: as `verify`.
        """

    def probe(self, model: str, tokens: Sequence[int]) -> bool:
        """Whether the server verifies drafts by itself.

        Args:
            tokens: a few different ids, none of which ends an output; no model would choose them one after another.
        """
        return False


@contextmanager
def reading(client: RemoteClient, what: str) -> Iterator[None]:
    """While an answer is taken apart: whatever is not as it should be is a malformed answer.

    Raises:
        MalformedAnswer: with ``what``.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise client.malformed(what) from error
