"""The protocol of WhisperLiveKit with ``mode=full``, its default.

The server first sends ``config``, which states whether it takes raw samples or a file's bytes.  Each later message
contains all committed ``lines``, and the text that may still change in ``buffer_transcription``.  A line lasts until
the speaker pauses or changes, which may take minutes, so each of its sentences becomes an utterance.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from typing import Any

from redraft.captions.events import FLAG, TEXT, Field, is_text
from redraft.errors import InputError
from redraft.speech.audio import RATE, Samples
from redraft.speech.dialect import Dialect, ServerHypothesis, parsed, pcm

SUMMARY = "WhisperLiveKit: ws://HOST:8000"
PATH = "/asr"

_SILENCE = -2
_TIME = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")
#: A sentence with its end.  A full stop after a digit may be a decimal point until more text follows.
_SENTENCE = re.compile(r"\s*[^.!?…。！？]*(?:[.!?…](?=\S)[^.!?…。！？]*)*(?:(?<!\d)[.!?…]+(?=\s|$)|\.(?=\s)|[。！？]+)")


def _is_line(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and (value.get("text") is None or is_text(value["text"]))
        and all(isinstance(value.get(name), str) and _TIME.fullmatch(value[name]) for name in ("start", "end"))
    )


_FIELDS: dict[str, Field] = {
    "type": TEXT,
    "useAudioWorklet": FLAG,
    "lines": (
        lambda value: isinstance(value, list) and all(map(_is_line, value)),
        "a list of lines with text, start and end, such as 0:00:03",
    ),
    "buffer_transcription": TEXT,
    "buffer_diarization": TEXT,
    "error": TEXT,
}


class WhisperLiveKit:
    """State of one connection; see `redraft.speech.dialect.Dialect`."""

    greeting = ""
    goodbye = b""

    def __init__(self) -> None:
        self.listens = self.over = False
        self._header = b""
        #: Characters of each line that have ended; keyed by its start and the number of earlier lines with that start.
        self._ended: dict[tuple[str, int], int] = {}

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
        ended: list[ServerHypothesis] = []
        starts: Counter[str] = Counter()
        before, self._ended = self._ended, {}
        rest, start = "", None
        for number, line in enumerate(found["lines"]):
            key = line["start"], starts[line["start"]]
            starts[line["start"]] += 1
            if line.get("speaker") == _SILENCE or not line.get("text"):
                continue
            text, done = line["text"], before.get(key, 0)
            start, end = _seconds(line["start"]), _seconds(line["end"])
            while sentence := _SENTENCE.match(text, done):
                ended.append(ServerHypothesis(sentence[0].strip(), True, start, end))
                done = sentence.end()
            rest = text[done:]
            if number < len(found["lines"]) - 1:  # earlier lines have ended
                if rest.strip():
                    ended.append(ServerHypothesis(rest.strip(), True, start, end))
                done, rest = len(text), ""
            self._ended[key] = done
        tail = found.get("buffer_diarization", "") + found.get("buffer_transcription", "")
        joint = " " if rest and tail and not (rest[-1].isspace() or tail[0].isspace()) else ""
        now = f"{rest}{joint}{tail}".strip()
        return [*ended, ServerHypothesis(now, start=start if rest.strip() else None)] if now else ended


def _seconds(time: str) -> float:
    hours, minutes, seconds = time.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


#: Header of a WAV file of 16-bit mono samples with unknown length.
_WAV = struct.pack(
    "<4sI4s4sIHHIIHH4sI",
    b"RIFF", 0xFFFFFFFF, b"WAVE", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16, b"data", 0xFFFFFFFF,
)  # fmt: skip


dialect: type[Dialect] = WhisperLiveKit
