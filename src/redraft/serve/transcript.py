"""The final captions of a session, in the order of its utterances, written in the forms of `redraft.streams.write`."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from redraft.events import Caption
from redraft.streams.write import JsonlWriter, SubtitleWriter, TextWriter, Writer

#: Form -> media type.
FORMS = {
    "srt": "application/x-subrip",
    "vtt": "text/vtt",
    "jsonl": "application/jsonl",
    "txt": "text/plain",
}


@dataclass(slots=True)
class Row:
    """An utterance: when it began, in seconds, and what came of it in each language; None where nothing could."""

    begun: float | None = None
    finals: dict[str, Caption | None] = field(default_factory=dict)


class Transcript:
    """Grows by a final caption at a time; each comes once, whatever is added twice.

    Args:
        targets: the target languages.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        self.targets = tuple(targets)
        self.closed = False
        self._rows: dict[str, Row] = {}
        self._begun: dict[str, float] = {}
        self._changed = asyncio.Event()

    def __contains__(self, key: tuple[str, str]) -> bool:
        """Whether an utterance has ended in a language: ``(utterance, target) in transcript``."""
        utterance, target = key
        return utterance in self._rows and target in self._rows[utterance].finals

    @property
    def finals(self) -> Iterator[tuple[Caption, float | None]]:
        """All captions with the times at which their utterances began, in the order of the utterances."""
        for row in self._rows.values():
            for caption in row.finals.values():
                if caption is not None:
                    yield caption, row.begun

    def ended(self, utterance: str) -> bool:
        """Whether an utterance has ended in every language."""
        return utterance in self._rows and self._rows[utterance].finals.keys() >= set(self.targets)

    def begin(self, utterance: str, time: float | None) -> None:
        """Note when an utterance began, in seconds; the first time that is told counts."""
        if time is not None and utterance not in self._rows:
            self._begun.setdefault(utterance, time)

    def begun(self, utterance: str) -> float | None:
        """When an utterance that has ended had begun, in seconds."""
        return self._rows[utterance].begun

    def add(self, utterance: str, target: str, caption: Caption | None) -> None:
        """Add a final caption, or that there is none; the first one counts."""
        if utterance not in self._rows:
            self._rows[utterance] = Row(self._begun.pop(utterance, None))
        self._rows[utterance].finals.setdefault(target, caption)
        self._notify()

    def close(self) -> None:
        """No more will come."""
        self.closed = True
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def text(self, form: str, targets: Sequence[str]) -> str:
        """All that there is now.

        Args:
            form: one of `FORMS`.
            targets: which languages.
        """
        out = io.StringIO()
        writer = _writer(form, out, targets)
        for row in list(self._rows.values()):
            _write(row, writer, targets)
        writer.close()
        return out.getvalue()

    async def live(self, form: str, targets: Sequence[str]) -> AsyncIterator[str]:
        """The same while it grows, in pieces; an utterance comes when it has ended in all of these languages."""
        out = io.StringIO()
        writer, written = _writer(form, out, targets), 0
        while True:
            rows, changed, closed = list(self._rows.values()), self._changed, self.closed
            while written < len(rows) and (closed or rows[written].finals.keys() >= set(targets)):
                _write(rows[written], writer, targets)
                written += 1
            if closed:
                writer.close()
            if piece := out.getvalue():
                out.seek(0)
                out.truncate()
                yield piece
            if closed:
                return
            await changed.wait()


def _writer(form: str, out: io.StringIO, targets: Sequence[str]) -> Writer:
    if form == "jsonl":
        return JsonlWriter(out)
    if form == "txt":
        return TextWriter(out, targets)
    return SubtitleWriter(out, io.StringIO(), form, targets)


def _write(row: Row, writer: Writer, targets: Sequence[str]) -> None:
    captions = [caption for target in targets if (caption := row.finals.get(target)) is not None]
    if captions and isinstance(writer, SubtitleWriter):
        # Subtitles begin with an utterance's first caption.
        writer.write(replace(captions[0], text="", final=False, time=row.begun))
    for caption in captions:
        writer.write(caption)
