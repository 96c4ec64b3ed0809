"""``--draft-model`` and the methods that need it: what is refused, and that a shipped pair translates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redraft import Translator, Update
from redraft.decoding.types import Tally
from tests.cli.conftest import Run
from tests.cli.refusals import RUN, T, check_refusal, events, final
from tests.gguf_models import write_llama

BILD = [*T, "--method", "bild"]
SAMPLING = [*T, "--method", "speculative-sampling"]
BAD = [
    ([*BILD, "-o", "fallback=nan"], ["fallback must be a number from 0 to 1", "nan"]),
    ([*BILD, "-o", "rollback=inf"], ["rollback must be a number from 0 to 100", "inf"]),
    ([*BILD, "-o", "window=2.5"], ["window must be a whole number from 1 to 10", "2.5"]),
    (
        [*BILD, "-o", "layers=1"],
        ["method 'bild' has no option 'layers'", "fallback, confidence, rollback, agreeing, window"],
    ),
    ([*SAMPLING, "-o", "seed=random"], ["seed must be a whole number", "'random'"]),
    ([*T, "--draft-model", "demo-tiny"], ["method 'redraft' drafts without a small model", "--draft-model out"]),
    ([*T, "--method", "bild-early-exit"], ["method 'bild-early-exit' needs a backend with early exit"]),
    ([*BILD, "--draft-model", "wonder"], ["model 'wonder'", "demo", "`redraft models`"]),
    ([*BILD, "--draft-model", "/no/such.gguf"], ["such.gguf", "does not exist"]),
    ([*BILD, "--model", "demo-tiny"], ["'bild' needs a small model", "'demo-tiny'", "name it with --draft-model"]),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_one_sentence_names_field_and_what_is_allowed(redraft: Run, arguments: list[str], words: list[str]) -> None:
    check_refusal(redraft(*arguments, stdin=b"Hello.\n"), words)


def test_models_of_different_vocabularies(redraft: Run, tmp_path: Path) -> None:
    other = write_llama(tmp_path / "other.gguf")
    done = redraft(*BILD, "--draft-model", str(other), stdin=b"Hello.\n")
    check_refusal(done, ["the small model has", "tokens and the target", "must share one vocabulary"])


@pytest.mark.parametrize(
    ("method", "option"),
    [("bild", "temperature=1"), ("speculative-sampling", "temperature=0"), ("sampling", "top_p=0")],
)
def test_sampling(redraft: Run, method: str, option: str) -> None:
    done = redraft(*RUN, "--method", method, "-o", option, "--input", "jsonl", "--output", "jsonl", stdin=final("1"))
    captions, errors = events(done)
    assert [(row["source"], row["type"]) for row in captions] == [("Hello.", "final")]
    assert captions[0]["text"] and errors == []


def translated(method: str, **options: float) -> tuple[list[str], Tally]:
    """The captions of two updates with their counts."""
    engine = {"context_length": 256, "threads": 1}
    with Translator.open(
        "demo", to=["de"], method=method, options={**options, "max_tokens": 24}, engine=engine
    ) as translator:
        updates = [Update("1", 0, "I have a"), Update("1", 1, "I have a black dog.", final=True)]
        captions = [event for update in updates for event in translator.translate(update)]
        return [str(getattr(caption, "text", "")) for caption in captions], translator.state("de").tally


def test_passes_of_both_models_are_counted() -> None:
    plain, without = translated("ar")
    unsure, never = translated("bild", fallback=1)
    assert unsure == plain
    assert (never.passes, never.drafted) == (without.passes, 0)
    assert 0 < never.draft_passes <= never.passes and without.draft_passes == 0
    _, always = translated("bild", fallback=0, rollback=100)
    assert always.accepted == always.drafted > 0
    assert always.ends_drafted == always.finished
    assert always.passes < without.passes
    assert always.draft_passes == always.drafted


def test_demo_compares_methods_with_trees_and_small_models(redraft: Run) -> None:
    methods = ["ssbd", "aasd", "bild"]
    chosen = [word for method in methods for word in ("--method", method)]
    done = redraft("demo", *chosen, "--sentences", "1", "--to", "de", "--engine", "threads=1", "--json")
    assert done.status == 0, done.err
    found = {row["method"]: row for row in map(json.loads, done.out.splitlines())}
    assert [*found] == methods
    assert found["aasd"]["draft_acceptance"] is not None and found["bild"]["draft_passes"] > 0


def test_demo_refuses_small_model_that_is_not_there(redraft: Run) -> None:
    check_refusal(
        redraft("demo", "--method", "bild", "--model", "demo-tiny"),
        ["'bild'", "'demo-tiny'", "name it with --draft-model"],
    )
