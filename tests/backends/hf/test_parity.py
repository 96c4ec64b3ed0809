"""Every method gives the same ids in the same passes on transformers and on llama.cpp, with the demo models in floats.

The two backends round differently, by some 1e-5 in a logit.  The sentences are such that noise of a hundred times that
on every logit changes nothing.  What is sampled comes from small nuclei, since a draw from thousands of tokens often
lies that close to the bound between two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra hf")

from redraft import Translator, Update
from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import BRANCHES_OF_A_TREE, open_backend
from redraft.captions.events import Caption
from redraft.decoding.backend import Backend, Capability
from redraft.decoding.method import Value
from redraft.decoding.methods import all_methods, get_method
from redraft.decoding.types import Rows, Score, Tally
from redraft.errors import CapabilityError
from tests.captions.streams import showing

UPDATES = [
    Update("1", 0, "I have a new black dog"),
    Update("1", 1, "I have a new black cat that barks.", final=True),
    Update("2", 0, "In 2015 Tom met"),
    Update("2", 1, "In 2015 Tom met a man from Berlin, and in 2016 he met him again.", final=True),
]
LANGUAGES = ["de", "ja"]
ENGINE = {"context_length": 256, "threads": 1}

Options = dict[str, Value]

NUCLEUS: Options = {"top_p": 0.4, "top_k": 16}
#: What makes counts comparable: a nucleus in which no draw is a near tie, and one bias.
COMPARABLE: dict[str, Options] = {
    "sampling": NUCLEUS,
    "speculative-sampling": NUCLEUS,
    "redraft": {"beta": 0.2, "hidden_beta": 0.2, "search": 0},  # one of them searches by a beam
}
#: Further options under which a method does something else.
VARIANTS: list[tuple[str, Options]] = [
    ("ssbd", {"beta": 0.5}),
    ("jacobi", {"stopping": "paper"}),
    ("jacobi", {"start": "previous"}),
    ("gs-jacobi", {"stopping": "paper", "start": "source"}),
    ("hybrid-jacobi", {"parallel": 4}),
    ("bild", {"fallback": 0.3, "rollback": 6}),
    ("bild", {"temperature": 0.7, "seed": 1, **NUCLEUS}),
    ("aasd", {"verification": "exact"}),
    ("aasd", {"verification": "top-k", "width": 0}),
    ("ssbd-aasd", {"verification": "threshold"}),
    ("speculative-sampling", {"temperature": 0.5, "window": 3, **NUCLEUS}),
]
CASES = [(name, COMPARABLE.get(name, {})) for name in all_methods() if name != "bild-early-exit"] + VARIANTS


@dataclass(frozen=True)
class Pair:
    """A model and a small one of its vocabulary on one backend."""

    target: Backend
    small: Backend


def opened(paths: dict[str, Path], **more: Value) -> Iterator[Pair]:
    pair = Pair(
        *(
            open_backend(str(paths[name]), {**ENGINE, **more}, slots=2, branches=2 * BRANCHES_OF_A_TREE)
            for name in ("demo-tiny", "rough")
        )
    )
    yield pair
    pair.target.close()
    pair.small.close()


@pytest.fixture(scope="module")
def hf(folders: dict[str, Path]) -> Iterator[Pair]:
    yield from opened(folders)


@pytest.fixture(scope="module")
def llama(files: dict[str, Path]) -> Iterator[Pair]:
    yield from opened(files, gpu_layers=0, exact=True)


def runnable(capabilities: frozenset[Capability]) -> set[str]:
    """The methods that a backend can run."""
    found = set()
    for name, method in all_methods().items():
        try:
            method.require(capabilities)
        except CapabilityError:
            continue
        found.add(name)
    return found


def translated(pair: Pair, method: str, options: Options) -> tuple[list[object], dict[str, Tally]]:
    """Captions, prompts and outputs after every update, and the counts of each language."""
    small = pair.small if get_method(method).small_model else None
    found: list[object] = []
    values = {**options, **showing(), "max_tokens": 40}
    with Translator(pair.target, LANGUAGES, method=method, options=values, small=small) as translator:
        for update in UPDATES:
            captions = [event for event in translator.translate(update) if isinstance(event, Caption)]
            assert [caption.language for caption in captions] == LANGUAGES
            latest = [translator.state(language) for language in LANGUAGES]
            found += [(caption.text, each.prompt, each.output) for caption, each in zip(captions, latest, strict=True)]
        return found, {language: translator.state(language).tally for language in LANGUAGES}


def test_no_method_is_left_out(hf: Pair, llama: Pair) -> None:
    assert isinstance(hf.target, HfDecoder) and isinstance(llama.target, LlamaCpp)
    ours, theirs = runnable(hf.target.capabilities), runnable(llama.target.capabilities)
    assert ours == set(all_methods())
    assert theirs == ours - {"bild-early-exit"}
    assert {name for name, _options in CASES} == theirs


@pytest.mark.parametrize(("method", "options"), CASES, ids=lambda value: str(value))
def test_same_captions_ids_and_counts(hf: Pair, llama: Pair, method: str, options: Options) -> None:
    found, tallies = translated(hf, method, options)
    assert (found, tallies) == translated(llama, method, options)
    for tally in tallies.values():
        assert tally.passes and tally.tokens
        assert bool(tally.drafted) == (method not in {"ar", "sampling"})
        assert bool(tally.draft_passes) == get_method(method).small_model


def test_trees_with_branches_are_among_what_is_scored(hf: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    branching: list[bool] = []
    score = HfDecoder.score

    def watched(backend: HfDecoder, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        branching.extend(not request.draft.is_chain for _slot, request in requests)
        return score(backend, requests)

    monkeypatch.setattr(HfDecoder, "score", watched)
    _, tallies = translated(hf, "aasd", {})
    assert any(branching)
    assert all(tally.accepted for tally in tallies.values())
