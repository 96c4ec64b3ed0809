"""Displays replayed over recorded outputs show what a live translation shows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import displays
from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_backend
from redraft.captions.events import Caption
from redraft.captions.reading import Layout
from redraft.captions.stabilise import Mask
from redraft.decoding.backend import Backend
from redraft.translator import Translator
from redraft_bench.eval.sets import reveal
from redraft_bench.eval.stream import Segment, Stream

SENTENCES = (
    "Good evening, everyone, and thank you for coming to this talk about the sea.",
    "I saw her duck under the table before the old man could say a word.",
    "Nobody knows how many ships lie on the ground of the harbour.",
)
STREAM = Stream(
    "sentences",
    tuple(Segment(reveal(str(n), text, 2), {"de": text, "ja": text}) for n, text in enumerate(SENTENCES)),
)


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = open_backend("demo-tiny", LlamaOptions(512, slots=2, threads=1))
    yield opened
    opened.close()


@pytest.mark.parametrize("language", ["de", "ja"])
@pytest.mark.parametrize("mask", [Mask(), Mask(3), Mask(margin=0.0), Mask(margin=0.05)], ids=str)
def test_a_replay_shows_what_is_shown_live(backend: Backend, tmp_path: Path, language: str, mask: Mask) -> None:
    file = tmp_path / "outputs.jsonl"
    displays._decode(backend, STREAM, language, 0.2, file)
    replayed = [step.text for record in displays._shown(backend, STREAM, file, mask) for step in record.steps]
    live = []
    for segment in STREAM.segments:
        with Translator(backend, [language], options={"beta": 0.2}, mask=mask, source="raw") as translator:
            for update in segment.updates:
                live += [event.text for event in translator.translate(update) if isinstance(event, Caption)]
    assert replayed == live and len(set(live)) > len(SENTENCES)


def test_decoding_goes_on_where_it_was_cut_off(backend: Backend, tmp_path: Path) -> None:
    file = tmp_path / "outputs.jsonl"
    displays._decode(backend, STREAM, "de", 0.2, file)
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole.splitlines(keepends=True)[0], encoding="utf-8")
    displays._decode(backend, STREAM, "de", 0.2, file)
    assert file.read_text(encoding="utf-8") == whole and whole.count("\n") == len(SENTENCES)


def test_lines_of_reading_mode_never_change(backend: Backend, tmp_path: Path) -> None:
    file = tmp_path / "outputs.jsonl"
    displays._decode(backend, STREAM, "de", 0.2, file)
    shown = [*displays._shown(backend, STREAM, file, Mask())]
    for record in displays._read(shown, Layout(20, 1.0, 2.0), "de"):
        texts = [step.text for step in record.steps]
        assert all(later.startswith(text) for text, later in pairwise(texts))
        assert texts[-1].split() == shown[record.segment].steps[-1].text.split()
