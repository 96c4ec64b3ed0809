"""Choose the part of a growing source that is translated.

The end of an unfinished text is a recogniser's guess: it is often revised, and has a full stop that is taken back.  A
translation of it is closed, wrong at the end, and a poor draft for the next one.  There are three policies:

- ``raw``: everything is translated as it comes.
- ``hold:K``: the last K words are held back, and punctuation at the end is left out.
- ``stable``: new words are held back until two texts in a row agree on them or on a word behind them, and punctuation
  at the end is left out.  Texts are compared word by word without case and punctuation, aligned where words were
  inserted or removed.  Where a recogniser revises less than every tenth text, everything is translated as it comes.

Except with ``raw``, a text that differs only in case and punctuation is not translated again.  A final text is always
translated whole, and no word is held back for longer than `LONGEST`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import Match, SequenceMatcher

from redraft.captions.words import WORD, bare
from redraft.errors import OptionError

RAW, STABLE = "raw", "stable"
#: The default policy.
DEFAULT_SOURCE = STABLE
#: Longest time in seconds for which a word is held back; without times, the number of updates.
LONGEST, LONGEST_UPDATES = 2.0, 4
#: Maximum K of ``hold:K``.
MOST_HELD = 20

#: With ``stable``, words are held back if at least one of this many texts revises the one before it.
_SELDOM = 10
_HOLD = re.compile(r"hold:(\d{1,2})")
#: Punctuation that is left out at the end.
_END = re.compile(r"[\s.,;:!?…‥。、，！？；：．｡।॥؟،۔։።–—-]+$")


def check_policy(policy: object, name: str = "source") -> str:
    """Return a policy.

    Args:
        policy: the value to check.
        name: the field that has it.

    Raises:
        OptionError: it is not one.
    """
    if isinstance(policy, str):
        held = _HOLD.fullmatch(policy)
        if policy in (RAW, STABLE) or (held and int(held[1]) <= MOST_HELD):
            return policy
    raise OptionError(f"{name} must be stable, raw, or hold:K with K from 0 to {MOST_HELD}, not {policy!r}")


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of an utterance.

    Attributes:
        text: the text.
        time: its time in seconds.
        words: its words without case and punctuation.
        ends: the place in the text where each word ends.
        count: number of words that are translated.
        since: time since which no more words are translated, and number of texts.
    """

    text: str = ""
    time: float | None = None
    words: tuple[str, ...] = ()
    ends: tuple[int, ...] = ()
    count: int = 0
    since: tuple[float | None, int] = (None, 0)

    @classmethod
    def of(cls, text: str, time: float | None) -> _Text:
        """Find the words of a text."""
        found = [(word, match.end()) for match in WORD.finditer(text) if (word := bare(match[0]))]
        return cls(text, time, tuple(word for word, _ in found), tuple(end for _, end in found))


class Source:
    """The source of one utterance after the other.

    Args:
        policy: what is held back.

    Raises:
        OptionError: the policy is unknown.
    """

    def __init__(self, policy: str = DEFAULT_SOURCE) -> None:
        self._policy = check_policy(policy)
        #: Number of texts that revised the one before, and number of all that could.
        self._revised = self._texts = 0
        self.begin()

    def begin(self) -> None:
        """Begin another utterance."""
        self._last = _Text()
        #: The last result, and its words.
        self._part: tuple[str, tuple[str, ...]] = "", ()

    @property
    def held(self) -> bool:
        """Whether words of the last text are held back."""
        return self._last.count < len(self._last.words)

    def part(self, text: str, time: float | None = None, *, final: bool = False) -> str:
        """Return the part of an utterance's text that is to be translated.

        Args:
            text: all of the utterance so far.
            time: its time in seconds; None if unknown.
            final: whether the text is final.
        """
        last = self._last
        if self._policy == RAW or (text == last.text and time is not None and time == last.time and not final):
            return text if self._policy == RAW else self._part[0]  # sent twice, which confirms nothing
        new = _Text.of(text, time)
        same = SequenceMatcher(None, last.words, new.words, autojunk=False).get_matching_blocks()
        if last.words:
            self._texts += 1
            self._revised += _is_revised(last, new, same)
        if final:
            self._last = replace(new, count=len(new.words))
            return text
        if self._policy == STABLE and self._revised * _SELDOM <= self._texts:
            self._last = replace(new, count=len(new.words), since=(time, 1))
            return self._changed(text)
        self._last = self._shortened(last, new, same)
        return self._changed(_beginning(self._last))

    def whole(self) -> str:
        """Return all words of the last text, because no other one has come for a while."""
        return self._changed(_beginning(replace(self._last, count=len(self._last.words))))

    def release(self) -> None:
        """Record that all words of the last text were translated."""
        self._last = replace(self._last, count=len(self._last.words))

    def _changed(self, part: str) -> str:
        """Return a part or, if the last one has the same words, that one."""
        words = _Text.of(part, None).words
        if words != self._part[1]:
            self._part = part, words
        return self._part[0]

    def _shortened(self, last: _Text, new: _Text, same: Sequence[Match]) -> _Text:
        """Return the new text with the number of its words that are to be translated."""
        # What was translated stays, as far as it is still there.
        ends = [each.b + min(each.size, last.count - each.a) for each in same if each.size and each.a < last.count]
        if self._policy == STABLE:
            ends += [each.b + each.size for each in same if each.size]
        else:
            ends.append(len(new.words) - int(self._policy.removeprefix("hold:")))
        count = max(0, *ends, 0)
        moved = not last.words or count > last.count or count == len(new.words)
        since, texts = (new.time, 1) if moved else (last.since[0], last.since[1] + 1)
        waited = None if since is None or new.time is None else new.time - since
        late = texts >= LONGEST_UPDATES if waited is None else waited >= LONGEST
        return replace(new, count=len(new.words) if late else count, since=(since, texts))


def _beginning(text: _Text) -> str:
    """Return the words of a text that are to be translated, without punctuation at the end."""
    return _END.sub("", text.text[: text.ends[text.count - 1]]) if text.count else ""


def _is_revised(last: _Text, new: _Text, same: Sequence[Match]) -> bool:
    """Whether a text changes a word of the one before, or takes a full stop at its end back."""
    if sum(each.size for each in same) < len(last.words):
        return True
    end = new.ends[next(each.b + each.size for each in reversed(same) if each.size) - 1]
    return end < new.ends[-1] and _is_closed(last.text, last.ends[-1]) and not _is_closed(new.text, end)


def _is_closed(text: str, end: int) -> bool:
    """Whether a sentence ends with the word that ends at ``end``; in Chinese, marks are behind it."""
    return any(character in ".!?…。！？" for character in text[end - 1 : end + 1])
