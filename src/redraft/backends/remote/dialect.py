"""What differs between servers: how they are asked, and what their answers look like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from redraft.backends.remote.client import Absent, RemoteClient
from redraft.backends.remote.rows import ChosenToken, RemoteRow
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


class RemoteDialect(ABC):
    """One kind of server; all ids are of the model's own vocabulary.

    Args:
        client: of the server.
    """

    def __init__(self, client: RemoteClient) -> None:
        self._client = client

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
    def continued(
        self, model: str, prefix: Sequence[int], count: int, k: int, ends: Sequence[int]
    ) -> list[ChosenToken]:
        """At least one and at most ``count`` tokens, chosen greedily, up to and with one of ``ends``.

        Raises:
            MalformedAnswer, ModelError: as `verify`.
        """


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
