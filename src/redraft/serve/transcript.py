"""The final captions of a session, in the order of its utterances, as `redraft.captions.formats.write` writes them."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from redraft.captions.events import Caption
from redraft.captions.formats.write import JsonlWriter, SubtitleWriter, TextWriter, Writer

#: Form -> media type.
FORMS = {
    "srt": "application/x-subrip",
    "vtt": "text/vtt",
    "jsonl": "application/jsonl",
    "txt": "text/plain",
}


@dataclass(slots=True)
class Spoken:
    """An utterance: when it began, in seconds, and what came of it in each language; None where nothing could."""

    begun: float | None = None
    finals: dict[str, Caption | None] = field(default_factory=dict)


#: What identifies a caption: its utterance and its target language.
Key: TypeAlias = tuple[str, str]


class Transcript:
    """Grows by a final caption at a time; each comes once, whatever is added twice.

    The session's owner may correct a caption, hide it, or hold captions back.  Readers see what is not hidden or held.

    Args:
        targets: the target languages.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        self.targets = tuple(targets)
        self.closed = False
        #: Captions that readers are not to see, whether they have come yet or not.
        self.hidden: set[Key] = set()
        #: Captions that came while captions were paused, in their order.
        self._held: dict[Key, None] = {}
        self._rows: dict[str, Spoken] = {}
        self._begun: dict[str, float] = {}
        self._changed = asyncio.Event()

    def __contains__(self, key: Key) -> bool:
        """Whether an utterance has ended in a language: ``(utterance, target) in transcript``."""
        utterance, target = key
        return utterance in self._rows and target in self._rows[utterance].finals

    def get(self, key: Key) -> Caption | None:
        """The final caption of an utterance in a language; None if it failed or has not come yet."""
        utterance, target = key
        return self._rows[utterance].finals.get(target) if utterance in self._rows else None

    def shows(self, key: Key) -> bool:
        """Whether readers may see a caption."""
        return key not in self.hidden and key not in self._held

    @property
    def finals(self) -> Iterator[Caption]:
        """The captions that readers may see, in the order of the utterances."""
        return (caption for caption in self.kept if self.shows((caption.utterance, caption.language)))

    @property
    def kept(self) -> Iterator[Caption]:
        """All captions that are not hidden, in the order of the utterances."""
        for row in self._rows.values():
            for caption in row.finals.values():
                if caption is not None and (caption.utterance, caption.language) not in self.hidden:
                    yield caption

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

    def add(self, key: Key, caption: Caption | None, *, held: bool = False) -> None:
        """Add a final caption, or that there is none; the first one counts.

        Args:
            key: its utterance and language.
            caption: None if the utterance could not be translated.
            held: whether readers do not see it before `release`.
        """
        utterance, target = key
        if utterance not in self._rows:
            self._rows[utterance] = Spoken(self._begun.pop(utterance, None))
        self._rows[utterance].finals.setdefault(target, caption)
        if held:
            self._held[key] = None
        self._notify()

    def replace(self, caption: Caption) -> None:
        """Put a caption in the place of the one of the same utterance and language."""
        self._rows[caption.utterance].finals[caption.language] = caption

    def hide(self, key: Key, *, hidden: bool) -> None:
        """Hide a caption from readers, or show it again; it need not have come yet."""
        (self.hidden.add if hidden else self.hidden.discard)(key)
        self._notify()

    def release(self) -> list[Key]:
        """Let readers see what was held back, and return what that was."""
        released = list(self._held)
        self._held.clear()
        self._notify()
        return released

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
        for utterance, row in list(self._rows.items()):
            self._write(utterance, row, writer, targets)
        writer.close()
        return out.getvalue()

    async def live(self, form: str, targets: Sequence[str]) -> AsyncIterator[str]:
        """The same while it grows, in pieces; an utterance comes when it has ended in all of these languages.

        What has been read cannot be corrected or hidden any more.
        """
        out = io.StringIO()
        writer, written = _writer(form, out, targets), 0
        while True:
            rows, changed, closed = list(self._rows.items()), self._changed, self.closed
            while written < len(rows) and (closed or self._ready(*rows[written], targets)):
                self._write(*rows[written], writer, targets)
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

    def _ready(self, utterance: str, row: Spoken, targets: Sequence[str]) -> bool:
        return all(target in row.finals and (utterance, target) not in self._held for target in targets)

    def _write(self, utterance: str, row: Spoken, writer: Writer, targets: Sequence[str]) -> None:
        found = [row.finals.get(target) for target in targets if self.shows((utterance, target))]
        captions = [caption for caption in found if caption is not None]
        if captions and isinstance(writer, SubtitleWriter):
            # Subtitles begin with an utterance's first caption.
            writer.write(replace(captions[0], text="", final=False, time=row.begun))
        for caption in captions:
            writer.write(caption)


def _writer(form: str, out: io.StringIO, targets: Sequence[str]) -> Writer:
    if form == "jsonl":
        return JsonlWriter(out)
    if form == "txt":
        return TextWriter(out, targets)
    return SubtitleWriter(out, io.StringIO(), form, targets)
