"""Draft translations by another model, for the post-editing table."""

from __future__ import annotations

from contextlib import closing

from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_model
from redraft.captions.events import Caption, Update
from redraft.translator import Translator
from redraft_bench.eval.stream import Stream


def translations(model: str, stream: Stream, to: str, options: LlamaOptions) -> list[str]:
    """Translate each segment of a stream as a whole, greedily."""
    with closing(open_model(model, options)) as backend, Translator(backend, [to], method="ar") as translator:
        found = []
        for segment in stream.segments:
            events = translator.translate(Update(segment.utterance, 0, segment.source, final=True))
            found.append(next((event.text for event in events if isinstance(event, Caption)), ""))
    return found
