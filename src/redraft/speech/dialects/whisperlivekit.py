"""The protocol of WhisperLiveKit with ``mode=full``, its default.

The server first sends ``config``, which states whether it takes raw samples or a file's bytes.  Each later message
contains the committed ``lines``, words whose speaker is not known yet in ``buffer_diarization``, and the text that may
still change in ``buffer_transcription``.  A line lasts until the speaker pauses or changes, which may take minutes, so
each of its sentences becomes an utterance.

Lines have no names: the server forgets the oldest words, and splits and joins lines when it recognises a speaker late.
Only the words are the same from message to message, so `redraft.speech.committed` finds those that are new.
"""

from __future__ import annotations

import re
import struct
from typing import Any

from redraft.captions.events import FLAG, TEXT, Field, is_text, is_whole
from redraft.captions.sentence import sentence_ends
from redraft.captions.words import WORD, joined
from redraft.errors import InputError
from redraft.speech.audio import RATE, Samples
from redraft.speech.committed import Committed, Span, squeezed, unsqueezed
from redraft.speech.dialect import Dialect, ServerHypothesis, parsed, pcm

SUMMARY = "WhisperLiveKit: ws://HOST:8000"
PATH = "/asr"

_SILENCE = -2
#: A time as Python writes it: days come before the hours, and in negative times only hours or days are negative.
_TIME = re.compile(r"(?:(-?\d+) days?, )?(-?\d+):(\d\d):(\d\d(?:\.\d+)?)")


def _is_line(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and (value.get("speaker") is None or is_whole(value["speaker"]))
        and (value.get("text") is None or is_text(value["text"]))
        and all(isinstance(value.get(name), str) and _TIME.fullmatch(value[name]) for name in ("start", "end"))
    )


_FIELDS: dict[str, Field] = {
    "type": TEXT,
    "useAudioWorklet": FLAG,
    "lines": (
        lambda value: isinstance(value, list) and all(map(_is_line, value)),
        "a list of lines with text, start and end, such as 0:00:03, and a whole number as the speaker",
    ),
    "buffer_transcription": TEXT,
    "buffer_diarization": TEXT,
    "error": TEXT,
}


class WhisperLiveKit(Dialect):
    """State of one connection; see `redraft.speech.dialect.Dialect`."""

    goodbye = b""
    listens = False

    def __init__(self) -> None:
        self._header = b""
        self._committed = Committed()
        #: Whether the server distinguishes speakers; otherwise every line has speaker 1.
        self._diarizes = False
        self._speaker: str | None = None

    def audio(self, samples: Samples) -> bytes:
        """Return signed 16-bit samples, after the header of an endless WAV file if the server wants a file."""
        header, self._header = self._header, b""
        return header + pcm(samples)

    def read(self, message: str | bytes) -> list[ServerHypothesis]:
        """Return the sentences that have ended, and the current one."""
        found = parsed(message, _FIELDS, ())
        kind = found.get("type")
        if kind == "config":
            self.listens = True
            self._header = b"" if found.get("useAudioWorklet") else _WAV
            return []
        if kind == "ready_to_stop":
            self.over = True
            return []
        if found.get("error"):
            raise InputError(f"the server reports: {found['error']}")
        if kind is not None or "lines" not in found:
            raise InputError("lines must be given, or type must be config or ready_to_stop")
        return self._sentences(found)

    def _sentences(self, found: dict[str, Any]) -> list[ServerHypothesis]:
        lines, committed = found["lines"], self._committed
        spans = [_span(line) for line in lines if line.get("speaker") != _SILENCE and line.get("text")]
        self._diarizes = self._diarizes or any((span.speaker or 0) > 1 for span in spans)
        waiting, known = found.get("buffer_diarization", ""), squeezed("".join(span.text for span in spans))
        # Some releases also have these words at the end of the lines.
        repeated = known.endswith(squeezed(waiting))
        lost = committed.update(spans, "" if repeated else waiting)
        ended = [ServerHypothesis(lost.strip(), True, speaker=self._speaker)] if lost.strip() else []
        limit = committed.begin + len(known) - (len(squeezed(waiting)) if repeated else 0)
        silent = bool(lines) and lines[-1].get("speaker") == _SILENCE and not waiting
        rest, start = "", None
        for span, place, end in committed.spans:
            end = min(end, limit)
            if committed.done >= end:
                continue
            text = span.text[: unsqueezed(span.text, end - place)]
            self._speaker = str(span.speaker) if self._diarizes and span.speaker else None
            done = unsqueezed(text, committed.done - place)
            for stop in [done + stop for stop in _ends(text[done:])]:
                ended.append(self._ended(text[done:stop], place + len(squeezed(text[:stop]))))
                done = stop
            rest = text[done:]
            if rest.strip() and (end < limit or silent):  # the line has ended
                ended.append(self._ended(rest, end))
                rest = ""
            start = committed.time(committed.done, begins=True) if rest.strip() else None
        waiting = waiting[unsqueezed(waiting, committed.done - limit) :]  # speakers can become unknown again
        tail = found.get("buffer_transcription", "")
        now = joined(rest, waiting + tail).strip()
        # Words whose speaker is unknown do not count: before them, words may be left out until the next message.
        count = len(WORD.findall(rest)) - _goes_on(rest, waiting + tail)
        return [*ended, ServerHypothesis(now, start=start, speaker=self._speaker, committed=count)] if now else ended

    def _ended(self, text: str, end: int) -> ServerHypothesis:
        """Return the next words as a final hypothesis; they end at a place of the committed ones."""
        committed = self._committed
        start, committed.done = committed.time(committed.done, begins=True), end
        return ServerHypothesis(text.strip(), True, start, committed.time(end), self._speaker)


def _span(line: dict[str, Any]) -> Span:
    speaker = line.get("speaker")
    known = speaker if speaker is not None and speaker > 0 else None
    return Span(line["text"], _seconds(line["start"]), _seconds(line["end"]), known, "." in line["start"])


def _seconds(time: str) -> float:
    found = _TIME.fullmatch(time)
    days, hours, minutes, seconds = found.groups("0") if found else ("0",) * 4
    return max(0.0, int(days) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + float(seconds))


def _goes_on(known: str, tail: str) -> bool:
    """Whether the last of the committed words may go on in the text behind it, as a number does behind its point."""
    found = WORD.match(known[-1:] + tail[:1])
    return bool(known) and found is not None and found.end() == 2


def _ends(text: str) -> list[int]:
    """Return where sentences end; of a mark at the end of the text, more text may show that the sentence goes on."""
    text = text.rstrip()
    decimal = len(text) if re.search(r"\d\.$", text) else None
    return [end for end in sentence_ends(f"{text} X") if end <= len(text) and end != decimal]


#: Header of a WAV file of 16-bit mono samples with unknown length.
_WAV = struct.pack(
    "<4sI4s4sIHHIIHH4sI",
    b"RIFF", 0xFFFFFFFF, b"WAVE", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16, b"data", 0xFFFFFFFF,
)  # fmt: skip


dialect = WhisperLiveKit
