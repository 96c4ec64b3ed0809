"""The final captions of a session in order of utterances, exported by `redraft.captions.formats.write`.

The operator's folder has a JSON Lines file for each session.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from redraft.captions.events import Caption
from redraft.captions.formats.read import printable
from redraft.captions.formats.write import JsonlWriter, SubtitleWriter, TextWriter, Writer, by, spoken
from redraft.captions.languages import parse_language, same_of
from redraft.errors import OptionError
from redraft.protocol import Begin
from redraft.protocol.codes import Refused
from redraft.serve.sessions.visibility import Key, Visibility, key_of

log = logging.getLogger(__name__)

#: Format -> media type.
FORMS = {"srt": "application/x-subrip", "vtt": "text/vtt", "jsonl": "application/jsonl", "txt": "text/plain"}
#: Maximum number of transcripts, and of bytes of all of them, that are kept.
MOST, MOST_BYTES = 1000, 256_000_000
#: Number of utterances that `live` exports before others have a turn.
_SLICE = 50
#: Bytes of a caption besides its texts, about.
_CAPTION = 500
#: The final captions of an utterance by language; None where translation failed.
Row: TypeAlias = dict[str, Caption | None]


class Transcript:
    """Collects the final captions of a session; adding one twice has no effect.

    Args:
        visible: which captions readers may see.

    Attributes:
        edits: how often captions in it were corrected, hidden or shown again.
    """

    def __init__(self, targets: Sequence[str], visible: Visibility) -> None:
        self.targets, self.visible = tuple(targets), visible
        self.closed, self.edits = False, 0
        #: How often captions have been corrected, for those that have.
        self._corrections: dict[Key, int] = {}
        #: Utterances that have ended in a language.
        self._rows: dict[str, Row] = {}
        #: When captions were made, in seconds since 1970.
        self.made: dict[Key, float] = {}
        #: Utterance -> its start time in seconds, where that is known.
        self._begun: dict[str, float] = {}
        self._changed = asyncio.Event()

    def target(self, language: str) -> str:
        """Return the target language that is the same as one given by tag or name.

        Raises:
            Refused: there is none.
        """
        if (found := same_of(language, self.targets)) is None:
            raise Refused(
                "option", f"language must be one of {', '.join(self.targets)}, not {language[:100]!r}", "language"
            )
        return found

    def __contains__(self, key: Key) -> bool:
        """Whether an utterance has ended in a language: ``(utterance, target) in transcript``."""
        utterance, target = key
        return target in self._rows.get(utterance, ())

    def get(self, key: Key) -> Caption | None:
        """Return the final caption of an utterance in a language; None if it failed or has not arrived."""
        utterance, target = key
        return self._rows.get(utterance, {}).get(target)

    def corrected(self, key: Key) -> int:
        """Return how often a caption has been corrected."""
        return self._corrections.get(key, 0)

    @property
    def finals(self) -> Iterator[Caption]:
        """Yield the captions that readers may see, in order of utterances."""
        return (caption for caption in self.kept if self.visible.shows(key_of(caption)))

    @property
    def kept(self) -> Iterator[Caption]:
        """Yield all captions that are not hidden, including those held back, in order of utterances."""
        for row in list(self._rows.values()):  # threads export while captions are added
            for caption in list(row.values()):
                if caption is not None and key_of(caption) not in self.visible.hidden:
                    yield caption

    def begin(self, utterance: str, time: float | None) -> None:
        """Record the start time of an utterance in seconds; only the first call, before its end, has an effect."""
        if time is not None and utterance not in self._rows:
            self._begun.setdefault(utterance, time)

    def begun(self, utterance: str) -> float | None:
        """Return the start time of an utterance in seconds; None if it is unknown."""
        return self._begun.get(utterance)

    def add(self, key: Key, caption: Caption | None, *, corrected: int = 0) -> None:
        """Add a final caption; only the first one of an utterance and language counts.

        Args:
            caption: None if translation failed.
            corrected: how often it was corrected elsewhere.
        """
        utterance, target = key
        if corrected:
            self._corrections[key] = corrected
        self._rows.setdefault(utterance, {}).setdefault(target, caption)
        if caption is not None:
            self.visible.arrived(key)
        self.changed()

    def replace(self, caption: Caption) -> None:
        """Replace the caption of the same utterance and language."""
        self._rows[caption.utterance][caption.language] = caption
        self._corrections[key_of(caption)] = self.corrected(key_of(caption)) + 1
        self.edits += 1

    def hide(self, key: Key, *, hidden: bool) -> None:
        """Hide a caption from readers or show it again; it need not have arrived yet."""
        self.visible.hide(key, hidden)
        self.edits += 1
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
        """Export all captions that readers may see, in one of `FORMS`."""
        out = io.StringIO()
        writer = _writer(form, out, targets)
        for utterance, row in list(self._rows.items()):
            self._write(utterance, row, writer, targets)
        writer.close()
        return out.getvalue()

    def document(self, targets: Sequence[str], source_language: str, *, original: bool) -> str:
        """Export as plain text, one language after the other, each under its English name.

        Args:
            original: whether to put the text as spoken first.
        """
        parts: dict[str, dict[str, str]] = {"": {}} if original else {}
        parts |= {target: {} for target in targets}
        for caption in self.finals:
            if caption.language in targets:
                parts[caption.language][caption.utterance] = spoken(caption)
                if original:
                    parts[""].setdefault(caption.utterance, by(caption.speaker, printable(caption.source).strip()))
        titles = {"": f"Original ({_name(source_language)})", **{target: _name(target) for target in targets}}
        return "\n".join("\n".join([titles[key], "", *lines.values(), ""]) for key, lines in parts.items() if lines)

    async def live(self, form: str, targets: Sequence[str]) -> AsyncIterator[str]:
        """Yield the export in pieces as utterances end in all these languages; later corrections do not change them."""
        out = io.StringIO()
        writer, written = _writer(form, out, targets), 0
        while True:
            rows, changed, closed = list(self._rows.items()), self._changed, self.closed
            end = min(written + _SLICE, len(rows))
            while written < end and (closed or self._ended(*rows[written], targets)):
                self._write(*rows[written], writer, targets)
                written += 1
            more = written == end < len(rows)
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

    def _ended(self, utterance: str, row: Row, targets: Sequence[str]) -> bool:
        return all(target in row and not self.visible.holds((utterance, target)) for target in targets)

    def _write(self, utterance: str, row: Row, writer: Writer, targets: Sequence[str]) -> None:
        found = [row.get(target) for target in targets if self.visible.shows((utterance, target))]
        captions = [caption for caption in found if caption is not None]
        if captions and isinstance(writer, SubtitleWriter):
            # A subtitle starts with its utterance's first caption.
            writer.write(replace(captions[0], text="", final=False, time=self._begun.get(utterance)))
        for caption in captions:
            writer.write(caption)


def _name(language: str) -> str:
    """Return the English name of a language; its tag if it is unknown."""
    try:
        return parse_language(language).name
    except OptionError:
        return language


def _writer(form: str, out: io.StringIO, targets: Sequence[str]) -> Writer:
    if form == "jsonl":
        return JsonlWriter(out)
    if form == "txt":
        return TextWriter(out, targets)
    return SubtitleWriter(out, io.StringIO(), form, targets)


class SessionFile:
    """The file of a session's final captions in ``folder``, perhaps from an earlier run; without a folder, no file.

    Errors do not keep captions from clients.

    Attributes:
        failing: whether captions could not be written, lately.
    """

    def __init__(self, folder: Path | None, name: str, transcript: Transcript) -> None:
        self.failing, self._transcript = False, transcript
        #: Whether lines in it must be replaced, besides those of captions that were edited.
        self._outdated, self._edits = False, 0
        self._path = folder and folder / f"{name}.jsonl"
        self._had: set[Key] | None = None

    def add(self, caption: Caption) -> None:
        """Append a final caption; one from before the session started is replaced by `rewrite`."""
        if self._path is None:
            return
        if self._had is None:
            self._had = set()
            try:
                self._had.update(_rows(text := _read(self._path)))
                if text and not text.endswith("\n"):  # a killed server left this line incomplete
                    with self._path.open("a", encoding="utf-8") as file:
                        file.write("\n")
            except OSError:
                log.exception("a transcript could not be read")
        if key_of(caption) in self._had:
            self._outdated = True
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(_line(caption))
            self.failing = False
        except OSError:
            self.failing = self._outdated = True  # the end of the session tries again
            log.exception("a caption could not be written to the folder of transcripts")

    def rewrite(self) -> None:
        """Rewrite the file if it is outdated; captions that only the file has are kept, before the others."""
        if self._path is None or not (self._outdated or self._edits != self._transcript.edits):
            return
        self._outdated, self._edits = False, self._transcript.edits
        fresh = self._path.with_suffix(".new")
        try:
            ours = {key_of(caption): _line(caption) for caption in self._transcript.kept}
            known = _rows(_read(self._path)).items()
            kept = (line for key, line in known if key not in ours and key not in self._transcript.visible.hidden)
            fresh.write_text("".join([*kept, *ours.values()]), encoding="utf-8")
            fresh.replace(self._path)
        except OSError:
            log.exception("a corrected transcript could not be written")


def _read(path: Path) -> str:
    """Return the text of a file, empty if there is none; a killed server may have stopped inside a character."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _rows(text: str) -> dict[Key, str]:
    """Return the lines of a transcript; an incomplete one from a killed server is left out."""
    rows: dict[Key, str] = {}
    for line in text.split("\n"):
        with suppress(ValueError, KeyError, TypeError):
            row = json.loads(line)
            rows[row["utterance"], row["language"]] = line + "\n"
    return rows


def _line(caption: Caption) -> str:
    out = io.StringIO()
    JsonlWriter(out).write(caption)
    return out.getvalue()


@dataclass(frozen=True, slots=True)
class Past:
    """A session that is over.

    Attributes:
        bytes: its approximate size in memory.
        until: when it is dropped, in seconds of the monotonic clock.
    """

    name: str
    begin: Begin
    transcript: Transcript
    bytes: int
    until: float


class PastSessions:
    """Transcripts of past sessions, kept for ``seconds``; beyond `MOST` and `MOST_BYTES` the oldest go."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._past: dict[str, Past] = {}
        self._bytes = 0

    def keep(self, name: str, begin: Begin, transcript: Transcript) -> None:
        """Keep the transcript of a session that is forgotten, if it has captions."""
        self.drop(name)
        size = sum(_CAPTION + len((each.text + each.source).encode()) for each in transcript.kept)
        if self._seconds and size:
            self._past[name] = Past(name, begin, transcript, size, self._clock() + self._seconds)
            self._bytes += size
        self.sweep()

    def drop(self, name: str) -> None:
        """Drop the transcript of a session, which may have started again."""
        if past := self._past.pop(name, None):
            self._bytes -= past.bytes

    def find(self, name: str) -> Past | None:
        """Return a past session by its public name."""
        return self._past.get(name)

    def in_room(self, room: str) -> Past | None:
        """Return the latest past session of a room."""
        return next((each for each in reversed(self._past.values()) if each.begin.room == room), None)

    def sweep(self) -> None:
        """Drop what has been kept long enough, or is too much."""
        now = self._clock()
        for past in list(self._past.values()):  # the oldest first
            if past.until > now and len(self._past) <= MOST and self._bytes <= MOST_BYTES:
                return
            self.drop(past.name)
