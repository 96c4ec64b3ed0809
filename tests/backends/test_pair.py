"""Which models may draft for which: one vocabulary, or the target's own first layers."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from redraft import Translator
from redraft.backends.load import backends_of, check_same_vocabulary
from redraft.captions.metadata import PROMPT_KEY
from redraft.decoding.backend import Backend, Capability
from redraft.decoding.method import Method, Value
from redraft.decoding.methods import get_method
from redraft.decoding.types import DRAFT_MODEL
from redraft.errors import CapabilityError
from tests.fakes import RandomModel


class Renamed(RandomModel):
    """Its token 5 is spelt otherwise."""

    def token_bytes(self, token: int) -> bytes:
        return b" five" if token == 5 else super().token_bytes(token)


class EndsOtherwise(RandomModel):
    end_tokens = frozenset({0, 3})


def drafting_backend(method: Method, options: dict[str, Value], target: Backend, small: Backend | None) -> Backend:
    with ExitStack() as stack:
        return backends_of(method, options, target, small, stack)[DRAFT_MODEL]


class Layered(RandomModel):
    """A model of three layers, each of which can be the last."""

    capabilities = frozenset({Capability.EARLY_EXIT})

    def early_exit(self, layers: int) -> Backend:
        if layers > 3:
            raise CapabilityError(f"layers must be a whole number from 1 to 3, not {layers}")
        return RandomModel(layers)


REFUSED = {
    "size": (RandomModel(vocabulary=11), "the small model has 11 tokens and the target 12; they must share one vocab"),
    "token": (Renamed(), "the small model's vocabulary differs from the target's, first at token 5"),
    "end": (EndsOtherwise(), "the small model and the target must have the same end tokens"),
}


@pytest.mark.parametrize(("small", "words"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("method", ["bild", "ssbd-bild", "speculative-sampling"])
def test_another_vocabulary_is_refused(method: str, small: RandomModel, words: str) -> None:
    with pytest.raises(CapabilityError) as refused:
        drafting_backend(get_method(method), {}, RandomModel(), small)
    assert str(refused.value).startswith(words)


def test_same_vocabulary_is_not() -> None:
    small = RandomModel(7)
    check_same_vocabulary(RandomModel(3), small)
    assert drafting_backend(get_method("bild"), {}, RandomModel(3), small) is small


def test_missing_small_model() -> None:
    with pytest.raises(CapabilityError, match="^method 'bild' needs a small model .*; name it with --draft-model$"):
        drafting_backend(get_method("bild"), {}, RandomModel(), None)


def test_first_layers() -> None:
    method = get_method("bild-early-exit")
    found = drafting_backend(method, {"layers": 2.0}, Layered(), None)
    assert isinstance(found, RandomModel) and found.seed == 2
    with pytest.raises(CapabilityError, match="layers must be a whole number from 1 to 3, not 4"):
        drafting_backend(method, {"layers": 4}, Layered(), None)


def test_first_layers_are_closed_with_their_user() -> None:
    class Counted(Layered):
        metadata = {PROMPT_KEY: "{source}>{code}"}  # noqa: RUF012 - as the base class declares it
        closed = 0

        def early_exit(self, layers: int) -> Backend:
            found = super().early_exit(layers)
            found.close = self.count  # type: ignore[method-assign]
            return found

        def count(self) -> None:
            self.closed += 1

    def refused() -> int:
        raise CapabilityError("no slot is free")

    target = Counted()
    Translator(target, ["de"], method="bild-early-exit", options={"layers": 2}).close()
    assert target.closed == 1
    target.open_slot = refused  # type: ignore[method-assign]
    with pytest.raises(CapabilityError):
        Translator(target, ["de"], method="bild-early-exit", options={"layers": 2})
    assert target.closed == 2, "although there was no slot"


def test_backend_without_early_exit_is_refused() -> None:
    class Switchedoff(Layered):
        capabilities = frozenset[Capability]()

    for target in (RandomModel(), Switchedoff()):
        with pytest.raises(CapabilityError, match="needs a backend with early exit"):
            drafting_backend(get_method("bild-early-exit"), {"layers": 1}, target, None)
