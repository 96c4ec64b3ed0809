"""What goes into a session and what comes out: updates of a transcript, captions, failures.

Plain data without I/O; `redraft.streams` reads and writes these as lines, JSON Lines and subtitles.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Update:
    """One hypothesis of the recogniser: all of an utterance's text so far, which may revise what was said before.

    Attributes:
        utterance: names the utterance; a new name starts a new one.
        seq: counts the updates of an utterance and grows by at least 1.
        text: the whole text so far, not an increment.
        final: whether this is the last update of the utterance.
        time: when it was spoken or received, in seconds from the start of the stream; None if unknown.
    """

    utterance: str
    seq: int
    text: str
    final: bool = False
    time: float | None = None


@dataclass(frozen=True, slots=True)
class Caption:
    """A translation of an update into one language: a partial one until ``final``.

    Attributes:
        utterance, seq, final, time: those of the update it answers.
        language: BCP 47 tag of the target language, as the user gave it.
        text: what is to be shown.
        unstable: the rest of the translation, hidden by a mask; ``text + unstable`` is all of it.  Empty
            when final.
        source: the update's text.
    """

    utterance: str
    seq: int
    language: str
    text: str
    unstable: str = ""
    final: bool = False
    time: float | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that could not be done; the stream goes on after it.

    Attributes:
        message: one sentence that names the field and the allowed values.
        line: number of the input line, from 1, where that is known.
        utterance, seq, language: what it concerns, where that is known.
    """

    message: str
    line: int | None = None
    utterance: str | None = None
    seq: int | None = None
    language: str | None = None


Event = Caption | Failure
