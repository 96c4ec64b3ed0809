"""The final captions of a session in order of utterances, exported by `redraft.captions.formats.write`."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from redraft import protocol
from redraft.captions.events import Caption
from redraft.captions.formats.write import Output, Writer, open_writer, spoken
from redraft.captions.languages import known_language, same_of
from redraft.protocol.codes import Refused
from redraft.serve.sessions.cells import OVERHEAD, Cell, Key, Utterance

#: Number of utterances that `live` exports before others have a turn.
_SLICE = 50


#: Stands in place of utterances that were dropped.
_DROPPED = Utterance("")


class Transcript:
    """The utterances of a session, and what its owner has decided about them.

    Attributes:
        targets: the target languages.
        source: the language that is spoken, whose captions are what was recognised; empty if it is unknown.
        utterances: all of them by name.
        ended: those that have ended in some language, in the order in which they did.
        unended: those that have not, by name.
        partials: the cells with the newest partial captions.
        held: the cells that wait for a release.
        paused: whether captions are held back from viewers and readers.
        decided: number of the decision to pause or to release; 0 if there is none.
        names: speakers that the owner has named, with the number of the decision.
        closed: whether no more captions will come.
        changes: called when a final caption has come, or was corrected, hidden or shown again, with its key, or None
            when a speaker was named.
    """

    def __init__(self, targets: Sequence[str], source: str = "") -> None:
        self.targets, self.source = tuple(targets), source
        self.utterances: dict[str, Utterance] = {}
        self.ended: list[Utterance] = []
        self.unended: dict[str, Utterance] = {}
        self.partials: dict[Key, Cell] = {}
        self.held: dict[Key, Cell] = {}
        #: Place of the oldest that was not dropped.
        self._oldest = 0
        self.paused, self.decided = False, 0
        self.names: dict[str, tuple[str, int]] = {}
        self._size = 0
        self.closed = False
        self.changes: Callable[[Key | None], object] = lambda key: None
        self._changed = asyncio.Event()

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of its captions: the one that is spoken, unless it is a target, and the targets."""
        spoken = self.source and same_of(self.source, self.targets) is None
        return (self.source, *self.targets) if spoken else self.targets

    def language(self, name: str) -> str:
        """Return the language of captions that is the same as one given by tag or name.

        Raises:
            Refused: there is none.
        """
        if (found := same_of(name, self.languages)) is None:
            raise Refused(
                "option", f"language must be one of {', '.join(self.languages)}, not {name[:100]!r}", "language"
            )
        return found

    @property
    def size(self) -> int:
        """Number of characters that it keeps."""
        return self._size + OVERHEAD * len(self.names)

    def utterance(self, name: str) -> Utterance:
        """Return an utterance, added if it is new."""
        if name not in self.utterances:
            self.utterances[name] = self.unended[name] = Utterance(name)
            self.count(name)
        return self.utterances[name]

    def count(self, name: str) -> None:
        """Count the characters of an utterance again, since a text has changed."""
        utterance = self.utterances[name]
        size = OVERHEAD + len(name) + sum(cell.size for cell in utterance.cells.values())
        self._size += size - utterance.size
        utterance.size = size

    def cell(self, key: Key) -> Cell:
        """Return the cell of an utterance in a language, added if it is new."""
        return self.utterance(key[0]).cells.setdefault(key[1], Cell(names=self.names))

    def find(self, key: Key) -> Cell | None:
        """Return the cell of an utterance in a language; None if there is none."""
        utterance = self.utterances.get(key[0])
        return None if utterance is None else utterance.cells.get(key[1])

    def __contains__(self, key: Key) -> bool:
        """Whether an utterance has ended in a language: ``(utterance, target) in transcript``."""
        cell = self.find(key)
        return cell is not None and cell.ended

    @property
    def cells(self) -> Iterator[tuple[Key, Cell]]:
        """Yield the cells of the utterances that have ended in some language, in order."""
        for utterance in list(self.ended):
            yield from utterance.keyed()

    @property
    def finals(self) -> Iterator[Caption]:
        """Yield the captions that readers may see, in order of utterances."""
        return (cell.caption for _, cell in self.cells if cell.visible and cell.caption)

    @property
    def kept(self) -> Iterator[Caption]:
        """Yield all captions that are not hidden, including those held back, in order of utterances."""
        return (cell.caption for _, cell in self.cells if not cell.hidden and cell.caption)

    def partial(self, key: Key, caption: Caption, most: int) -> None:
        """Record a partial caption; of all, the newest ``most`` are kept."""
        cell = self.partials[key] = self.cell(key)
        cell.partial = caption
        if len(self.partials) > most:
            self.partials.pop(next(iter(self.partials))).partial = None

    def end(self, key: Key, caption: Caption | protocol.Error, corrected: int = 0, *, held: bool) -> Cell:
        """Record the end of an utterance in a language; the first one counts, and a caption more than an error.

        Args:
            caption: the final caption, or the error in its place.
            corrected: how often the caption was corrected elsewhere.
            held: whether it is held back until captions are released.
        """
        utterance, cell = self.utterance(key[0]), self.cell(key)
        if cell.final is not None or (cell.error is not None and not isinstance(caption, Caption)):
            return cell
        if utterance.place is None:
            utterance.place = len(self.ended)
            self.ended.append(utterance)
            self.unended.pop(key[0], None)
        if isinstance(caption, Caption):
            cell.final, cell.error, cell.held = caption, None, held
            if corrected > cell.corrected:
                cell.correction, cell.corrected = caption.text, corrected
        else:
            cell.error, cell.held = caption, held
        if held:
            self.held[key] = cell
        self.partials.pop(key, None)
        cell.partial = None
        self.edited(key)
        return cell

    def release(self) -> list[Key]:
        """Show what was held back, and return its keys."""
        held, self.held = self.held, {}
        for cell in held.values():
            cell.held = False
        self.changed()
        return list(held)

    def drop_oldest(self, *, acknowledged: bool) -> bool:
        """Drop the oldest utterance, of which nothing is held back or to come; return whether there is one.

        Args:
            acknowledged: whether its owner must have acknowledged it.
        """
        oldest = self.ended[self._oldest] if self._oldest < len(self.ended) else None
        cells = [oldest.cells.get(target, Cell()) for target in self.targets] if oldest else []
        if oldest is None or any(cell.held for cell in oldest.cells.values()):
            return False
        if not all(cell.ended and not (acknowledged and cell.unacknowledged) for cell in cells):
            return False
        self.ended[self._oldest] = _DROPPED
        self._oldest += 1
        del self.utterances[oldest.name]
        self._size -= oldest.size
        return True

    def edited(self, key: Key | None) -> None:
        """Record that a caption has ended, or was corrected, hidden or shown again; None for all of them."""
        if key is not None:
            self.count(key[0])
        self.changes(key)
        self.changed()

    def close(self) -> None:
        """End the transcript; `live` stops after the last caption."""
        self.closed = True
        self.changed()

    def changed(self) -> None:
        """Let `live` look for more that readers may see."""
        self._changed.set()
        self._changed = asyncio.Event()

    def text(self, form: str, targets: Sequence[str]) -> str:
        """Export all captions that readers may see, in one of `TRANSCRIPTS`."""
        out = io.StringIO()
        writer = open_writer(Output(form, out, io.StringIO(), targets))
        for utterance in list(self.ended):
            self._write(utterance, writer, targets)
        writer.close()
        return out.getvalue()

    def document(self, languages: Sequence[str]) -> str:
        """Export as plain text, one language after the other, each under its English name."""
        parts = []
        for language in languages:
            lines = [spoken(caption) for caption in self.finals if caption.language == language]
            known = known_language(language)
            if lines:
                parts.append("\n".join([known.name if known else language, "", *lines, ""]))
        return "\n".join(parts)

    async def live(self, form: str, targets: Sequence[str]) -> AsyncIterator[str]:
        """Yield the export in pieces as utterances end in all these languages; later corrections do not change them."""
        out = io.StringIO()
        writer, written = open_writer(Output(form, out, io.StringIO(), targets)), 0
        while True:
            changed, closed = self._changed, self.closed
            end = min(written + _SLICE, len(self.ended))
            while written < end and (closed or _complete(self.ended[written], targets)):
                self._write(self.ended[written], writer, targets)
                written += 1
            more = written == end < len(self.ended)
            closed = closed and not more
            if closed:
                writer.close()
            if piece := out.getvalue():
                out.seek(0)
                out.truncate()
                yield piece
            if closed:
                return
            await (asyncio.sleep(0) if more else changed.wait())

    def _write(self, utterance: Utterance, writer: Writer, targets: Sequence[str]) -> None:
        cells = [cell for target in targets if (cell := utterance.cells.get(target)) and cell.visible]
        captions = [caption for cell in cells if (caption := cell.caption) is not None]
        if captions:
            writer.write_together(captions)


def _complete(utterance: Utterance, targets: Sequence[str]) -> bool:
    """Whether an utterance has ended in all these languages, and none of them is held back."""
    cells = [utterance.cells.get(target) for target in targets]
    return all(cell is not None and cell.ended and not cell.held for cell in cells)
