"""Input and output of a session: transcript updates, captions, failures.

These are plain data without I/O; `redraft.captions.formats` reads and writes them.
"""

from __future__ import annotations

import math
import re
import reprlib
from dataclasses import asdict, dataclass, field
from typing import Any, TypeGuard

from redraft.errors import InputError

_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


def is_text(value: object) -> bool:
    """Whether a value is a string without surrogates, which JSON escapes can produce and UTF-8 cannot encode."""
    return isinstance(value, str) and not _HALF_A_PAIR.search(value)


def is_whole(value: object) -> bool:
    """Whether a value is an integer and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_seconds(value: object) -> bool:
    """Whether a value is a finite number of at least 0."""
    try:
        return is_number(value) and 0 <= float(value) < math.inf
    except OverflowError:  # an integer too large for a float
        return False


@dataclass(frozen=True, slots=True)
class Update:
    """A recogniser's hypothesis: the whole text of an utterance so far, which may revise earlier words.

    Attributes:
        utterance: name of the utterance; a new name starts a new one.
        seq: number of the update, ascending within an utterance.
        text: the whole text so far, not an increment.
        final: whether this is the last update of the utterance.
        time: when it was spoken or received, in seconds from the start of the stream; None if unknown.

    Raises:
        InputError: a field has an invalid value.
    """

    utterance: str
    seq: int
    text: str
    final: bool = False
    time: float | None = None

    def __post_init__(self) -> None:
        checks = (
            ("utterance", is_text(self.utterance) and self.utterance != "", "a non-empty string"),
            ("seq", is_whole(self.seq) and self.seq >= 0, "a whole number of 0 or more"),
            ("text", is_text(self.text), "a string of whole characters"),
            ("final", isinstance(self.final, bool), "True or False"),
            ("time", self.time is None or is_seconds(self.time), "a finite number of seconds, 0 or more, or None"),
        )
        for name, allowed, words in checks:
            if not allowed:
                raise InputError(f"{name} must be {words}, not {reprlib.repr(getattr(self, name))}")


@dataclass(slots=True)
class Order:
    """Checks that the updates of a stream come in order; remembers the names of all utterances."""

    _last: dict[str, tuple[int, bool]] = field(default_factory=dict)

    def __contains__(self, utterance: str) -> bool:
        """Whether there was an update of an utterance."""
        return utterance in self._last

    def repeats(self, update: Update) -> bool:
        """Whether an update repeats the newest one of its utterance."""
        return self._last.get(update.utterance) == (update.seq, update.final)

    def accept(self, update: Update) -> None:
        """Record the next update.

        Raises:
            InputError: it is out of order.
        """
        last, final = self._last.get(update.utterance, (-1, False))
        name = reprlib.repr(update.utterance)
        if final:
            raise InputError(f"utterance {name} is final already: a new utterance needs a new name")
        if update.seq <= last:
            found = reprlib.repr(update.seq)
            raise InputError(
                f"seq of utterance {name} must be greater than its last one, {reprlib.repr(last)}, not {found}"
            )
        self._last[update.utterance] = update.seq, update.final


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
    """

    utterance: str
    seq: int
    language: str
    text: str
    unstable: str = ""
    final: bool = False
    time: float | None = None
    source: str = ""
    cut: bool = False


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
    if isinstance(event, Failure):
        return {"type": "error", **{name: value for name, value in asdict(event).items() if value is not None}}
    fields = asdict(event)
    kind = "final" if fields.pop("final") else "partial"
    left_out = {"unstable"} if kind == "final" else set()
    left_out |= {name for name, value in (("time", event.time is None), ("cut", not event.cut)) if value}
    return {"type": kind, **{name: value for name, value in fields.items() if name not in left_out}}
