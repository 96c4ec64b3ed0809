"""Drafters of n-grams on the shipped model: the ids of plain decoding, trees included, in fewer passes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import BRANCHES_OF_A_TREE, open_model
from redraft.backends.options import LlamaOptions
from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.method import Setup
from redraft.decoding.methods import get_method
from redraft.decoding.types import Output, Prompt

TEXT = "<s> The man saw the dog and the dog saw the man, and the man and the dog went home. <2de>"


@pytest.fixture(scope="module")
def backend() -> Iterator[LlamaCpp]:
    # Exact: the passes over a tree give the bits of the passes over one token, so that no tie is decided by rounding.
    opened = open_model("demo-tiny", LlamaOptions(512, branches=BRANCHES_OF_A_TREE, threads=1, exact=True))
    yield opened
    opened.close()


def decoded(backend: LlamaCpp, method: str, **options: float | str) -> Output:
    chosen = get_method(method)
    drafter, rule = chosen.build(Setup(chosen.check(options), backend.end_tokens, backend.pad_token))
    prompt = tuple(backend.tokenize(TEXT, special=True))
    slot = backend.open_slot()
    output = run(decode(Prompt(prompt), drafter, rule, end_tokens=backend.end_tokens, limit=48), backend, slot)
    backend.close_slot(slot)
    return output


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("pld", {}),
        ("aasd", {"verification": "exact"}),
        ("aasd", {"verification": "exact", "width": 0}),
        ("aasd", {"verification": "exact", "key": 1, "ngram": 16}),
        ("aasd", {"alpha": 0, "beta": 1}),
    ],
)
def test_exact_verification_gives_ids_of_plain_decoding(
    backend: LlamaCpp, method: str, options: dict[str, float | str]
) -> None:
    plain, output = decoded(backend, "ar"), decoded(backend, method, **options)
    assert (output.tokens, output.finished) == (plain.tokens, plain.finished)
    assert output.passes == plain.passes - output.accepted
    assert output.accepted > 0, "the text repeats itself, so something must have been found"
