"""Input and output of a session: transcript updates, which of them wait, captions, and failures.

These are plain data without I/O; `redraft.captions.formats` reads and writes them.

Commands, the engine and alignatt-mt queue updates; `Newest` alone says which of them wait.
"""

from __future__ import annotations

import json
import re
import reprlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias, TypeVar

from redraft.errors import InputError

SURROGATES = re.compile("[\ud800-\udfff]")
#: C0 and C1 controls, and Unicode's line and paragraph separators.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

#: Maximum length of a text sent to a server, in characters.
LONGEST_TEXT = 20_000


def is_text(value: object) -> bool:
    """Whether a value is a string without surrogates, which JSON escapes can produce and UTF-8 cannot encode."""
    return isinstance(value, str) and not SURROGATES.search(value)


def is_whole(value: object) -> bool:
    """Whether a value is an integer and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_seconds(value: object) -> bool:
    """Whether a value is a finite number of at least 0, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max


def shown(value: object) -> str:
    """Return a value as ASCII JSON, truncated for an error message."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, default=repr)
    return text if len(text) <= 40 else f"{text[:37]}..."


#: A check of a field's value, and the allowed values in words.
Field: TypeAlias = tuple[Callable[[Any], bool], str]

TEXT: Field = (is_text, "a string of whole characters")
FLAG: Field = (lambda value: isinstance(value, bool), "true or false")


def _or_null(field: Field) -> Field:
    return (lambda value: value is None or field[0](value)), f"{field[1]}, or null"


def _is_short(value: object) -> bool:
    return isinstance(value, str) and is_text(value) and 0 < len(value) <= 100


TIME = _or_null((is_seconds, "a finite number of seconds, 0 or more"))
_COUNT: Field = (lambda value: is_whole(value) and value >= 0, "a whole number of 0 or more")
_LINE: Field = (
    lambda value: _is_short(value) and not CONTROLS.search(value),
    "a name of 1 to 100 characters on one line",
)


def _rules(field: Field, **bounds: object) -> dict[str, object]:
    """Return a field's metadata: its check, and the bounds of servers, as arguments of pydantic's `Field`.

    So every field is declared once, for the library, JSON Lines and the server's messages.
    """
    return {"check": field[0], "words": field[1], **bounds}


_UTTERANCE = _rules((lambda value: is_text(value) and value != "", "a non-empty string"), min_length=1, max_length=100)
_SEQ = _rules(_COUNT, ge=0)
_TIME = _rules(TIME, ge=0, allow_inf_nan=False)
_STAYS = "how many words, from the first on, the recogniser will not change"
_COMMITTED = _rules(_or_null(_COUNT), ge=0, le=2**53, description=_STAYS)
_SPEAKER = _rules(_or_null(_LINE), one_line=True, min_length=1, max_length=100, description="who is speaking")
_TAG = "BCP 47 tag of the language that is spoken"
_SPOKEN = _rules(_or_null((_is_short, "a BCP 47 tag")), min_length=1, max_length=100, description=_TAG)


@dataclass(frozen=True, slots=True)
class Update:
    """A recogniser's hypothesis: the whole text of an utterance so far, which may revise earlier words.

    Attributes:
        utterance: name of the utterance; a new name starts a new one.  Those of a stream follow each other: one that
            goes on behind the beginning of another is translated from the beginning again.
        seq: number of the update, ascending within an utterance.
        text: the whole text so far, not an increment.
        final: whether this is the last update of the utterance.
        time: when it was spoken or received, in seconds from the start of the stream; None if unknown.
        speaker: who is speaking, a name of 1 to 100 characters; None if unknown.
        committed: number of words, from the first on, that the recogniser will not change (`redraft.captions.words`);
            None if unknown.
        goes_on: whether words were cut off from the end of this text and start the next utterance.
        language: BCP 47 tag of the language that is spoken, one of the stream's source languages; None if unknown.
        start: when the utterance began, on the clock of ``time``; None if unknown, then its first update counts.

    Raises:
        InputError: a field has an invalid value.
    """

    utterance: str = field(metadata=_UTTERANCE)
    seq: int = field(metadata={**_SEQ, "le": 2**53, "description": "grows within an utterance"})
    text: str = field(metadata=_rules(TEXT, one_line=True, max_length=LONGEST_TEXT))
    final: bool = field(
        default=False, metadata=_rules(FLAG, description="whether this is the last update of the utterance")
    )
    time: float | None = field(default=None, metadata={**_TIME, "description": "seconds from the start of the stream"})
    speaker: str | None = field(default=None, metadata=_SPEAKER)
    committed: int | None = field(default=None, metadata=_COMMITTED)
    goes_on: bool = field(
        default=False,
        metadata=_rules(FLAG, description="whether it was cut off before words with which the next utterance begins"),
    )
    language: str | None = field(default=None, metadata=_SPOKEN)
    start: float | None = field(
        default=None,
        metadata={**_TIME, "description": "when the utterance began; if absent, the `time` of its first update"},
    )

    @property
    def begun(self) -> float | None:
        """When the utterance began, as far as this update knows."""
        return self.time if self.start is None else self.start

    def __post_init__(self) -> None:
        for name, check, words in _CHECKS:
            if not check(value := getattr(self, name)):
                raise InputError(f"{name} must be {words}, not {shown(value)}")

    def overtakes(self, earlier: Update) -> bool:
        """Whether an earlier update that waits need not be translated: it is of the same utterance and not final."""
        return self.utterance == earlier.utterance and not earlier.final


_CHECKS = tuple((each.name, each.metadata["check"], each.metadata["words"]) for each in fields(Update))


@dataclass(slots=True)
class Order:
    """Checks that the updates of a stream come in order; remembers all utterances, and when open ones began."""

    #: Utterance -> `seq` of its newest update, whether that is final, and `start` if it is not.
    _last: dict[str, tuple[int, bool, float | None]] = field(default_factory=dict)

    def __contains__(self, utterance: str) -> bool:
        """Whether there was an update of an utterance."""
        return utterance in self._last

    def repeats(self, update: Update) -> bool:
        """Whether an update repeats the newest one of its utterance."""
        return self._last.get(update.utterance, ())[:2] == (update.seq, update.final)

    def accept(self, update: Update) -> Update:
        """Record the next update; return it with the start of its utterance, as far as that is known.

        Raises:
            InputError: it is out of order.
        """
        last, final, start = self._last.get(update.utterance, (-1, False, None))
        if final or update.seq <= last:
            name, least, found = map(reprlib.repr, (update.utterance, last, update.seq))
            if final:
                raise InputError(f"utterance {name} is final already: a new utterance needs a new name")
            raise InputError(f"seq of utterance {name} must be greater than its last one, {least}, not {found}")
        start = update.begun if start is None else start
        self._last[update.utterance] = update.seq, update.final, None if update.final else start
        return update if update.start == start else replace(update, start=start)  # which checks all fields again


@dataclass(frozen=True, slots=True)
class Caption:
    """A translation of an update into one language.

    Attributes:
        utterance: name of the utterance.
        seq: number of the update.
        language: BCP 47 tag of the target language, as given by the user.
        text: the text to show.
        unstable: the rest of the translation, hidden by a mask; ``text + unstable`` is the whole translation.  Empty if
            final.
        final: whether this is the last caption of the utterance in its language.
        time: time of the update.
        source: text of the update.
        cut: whether the translation was cut off at a limit or a repetition.
        speaker: who is speaking; None if unknown.
        source_language: BCP 47 tag of the language of ``source``; None if the stream has one source language, and the
            update does not name it.
        start: when the utterance began, on the clock of ``time``; None if unknown.
    """

    utterance: str = field(metadata=_UTTERANCE)
    seq: int = field(metadata={**_SEQ, "description": "`seq` of the update that it answers"})
    language: str = field(metadata={"min_length": 1, "max_length": 100})
    text: str = field(metadata={"max_length": 100_000, "description": "text to show"})
    unstable: str = field(default="", metadata={"description": "the rest of the translation, hidden by the mask"})
    final: bool = False
    time: float | None = field(default=None, metadata=_TIME)
    source: str = field(default="", metadata={"max_length": 100_000})
    cut: bool = field(
        default=False, metadata={"description": "true if the model did not finish it, so that it was cut"}
    )
    speaker: str | None = field(default=None, metadata=_SPEAKER)
    source_language: str | None = field(default=None, metadata=_SPOKEN)
    start: float | None = field(default=None, metadata={**_TIME, "description": "when the utterance began"})

    @classmethod
    def of(cls, update: Update | Caption, language: str, text: str, **more: Any) -> Caption:
        """Return a caption of an update, or of that of another caption, with further fields."""
        same = {name: getattr(update, name) for name in ("utterance", "seq", "final", "time", "speaker", "start")}
        return cls(language=language, text=text, **same, **more)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that does not end the stream.

    Attributes:
        message: one sentence that names the field and the allowed values.
        line: number of the input line, from 1, if known.
        utterance: name of the utterance, if known.
        seq: number of the update, if known.
        language: target language, if known.
    """

    message: str
    line: int | None = None
    utterance: str | None = None
    seq: int | None = None
    language: str | None = None


Event = Caption | Failure


def as_object(event: Event) -> dict[str, Any]:
    """Return an event as a JSON object, for JSON Lines and for the server's messages.

    ``type`` is "partial", "final" or "error"; the event's fields follow, without empty ones.
    """
    found = {name: value for name in event.__dataclass_fields__ if (value := getattr(event, name)) is not None}
    if isinstance(event, Failure):
        return {"type": "error", **found}
    found = {"type": "final" if found.pop("final") else "partial", **found}
    if event.final:
        del found["unstable"]
    if not event.cut:
        del found["cut"]
    return found


T = TypeVar("T")


class Newest(OrderedDict[Hashable, T]):
    """Items that wait, the first to come first.  The partial one of an utterance has its name as the key."""

    def put(self, item: T, utterance: Hashable, *, final: bool) -> T | None:
        """Add an item at the end; return the partial one of its utterance, which it replaces, or None."""
        older = self.pop(utterance, None)
        self[object() if final else utterance] = item
        return older

    def take(self) -> T:
        """Remove and return the first item.  Raises `KeyError` if nothing waits."""
        return self.popitem(last=False)[1]
