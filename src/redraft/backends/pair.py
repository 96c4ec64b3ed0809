"""The draft model of a method: a second model with the same vocabulary, or the target's first layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from redraft.decoding.backend import Backend
from redraft.decoding.method import Method, Value
from redraft.errors import CapabilityError


@runtime_checkable
class EarlyExits(Protocol):
    """A backend that can run its first layers alone."""

    def early_exit(self, layers: int) -> Backend:
        """Return a model of the first ``layers`` layers, with the target's head and a separate cache.

        Raises:
            CapabilityError: the model has fewer layers.
        """


@runtime_checkable
class ListsVocabulary(Protocol):
    """A backend that can list its vocabulary faster than token by token."""

    def listed_tokens(self) -> object:
        """Return the vocabulary; if it equals another backend's of the same class, their ids mean the same."""


def drafting_backend(method: Method, options: Mapping[str, Value], target: Backend, small: Backend | None) -> Backend:
    """Return the backend that answers the requests of ``method``'s drafter.

    Raises:
        CapabilityError: the draft model is missing, or its vocabulary differs from the target's.
    """
    if method.draft_model == "layers":
        if not isinstance(target, EarlyExits) or not target.capabilities.early_exit:
            raise CapabilityError(f"method {method.name!r} needs a backend with early exit")
        return target.early_exit(int(options["layers"]))
    if small is None:
        raise CapabilityError(
            f"method {method.name!r} needs a small model of the same vocabulary; name it with --draft-model"
        )
    check_same_vocabulary(target, small)
    return small


def check_same_vocabulary(target: Backend, small: Backend) -> None:
    """Check that the ids of two models mean the same.

    Raises:
        CapabilityError: the vocabularies differ; the message says where.
    """
    sizes = target.vocabulary_size, small.vocabulary_size
    if sizes[0] != sizes[1]:
        raise CapabilityError(
            f"the small model has {sizes[1]} tokens and the target {sizes[0]}; they must share one vocabulary"
        )
    same = (
        type(target) is type(small)
        and isinstance(target, ListsVocabulary)
        and isinstance(small, ListsVocabulary)
        and target.listed_tokens() == small.listed_tokens()
    )
    for token in () if same else range(sizes[0]):
        if target.token_bytes(token) != small.token_bytes(token):
            raise CapabilityError(f"the small model's vocabulary differs from the target's, first at token {token}")
    if target.end_tokens != small.end_tokens:
        raise CapabilityError("the small model ends its outputs with other tokens than the target")
