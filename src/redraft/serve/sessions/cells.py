"""What a session has: one record per caption.

A `Cell` is one utterance in one language.  What anybody is sent of a caption, now or later, is a function of its cell:
the owner, viewers, other servers and files cannot disagree.

What the owner decides, to pause, hide, correct or name, has a number; the highest one counts.  So the owner can declare
all decisions on every connection, in any order, to a server that knows them, some of them, or none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from redraft import protocol
from redraft.captions.events import Caption
from redraft.protocol import Frame

#: Utterance and target language of a caption.
Key: TypeAlias = tuple[str, str]

#: What an utterance, a caption or a named speaker takes besides its texts, in characters.
OVERHEAD = 100


def key_of(caption: Caption) -> Key:
    """Return what identifies a caption."""
    return caption.utterance, caption.language


def counted(decision: int | None, latest: int, *, wins: bool) -> int:
    """Return the number of a decision; 0 if it came before the latest one on the same subject.

    Args:
        decision: its number; None for a program that counts none, whose decisions are always the latest.
        wins: whether it counts if both have the same number.
    """
    if decision is None:
        return min(latest + 1, protocol.MOST_DECISIONS)
    return decision if decision > latest or (decision == latest and wins) else 0


@dataclass(slots=True, eq=False)
class Cell:
    """One utterance in one language.

    Attributes:
        partial: the newest partial caption, until the end.
        final: the final caption, as it was translated.
        error: what is sent in place of a final caption that could not be made.
        lag_ms: lag of the newest caption in milliseconds.
        made: when it was made, in seconds since 1970; 0 if that is unknown.
        correction: the text that replaces that of the final caption.
        corrected: number of the correction; 0 if there is none.
        names: speakers that the owner has named, with the number of the decision; the same mapping for all cells.
        hidden: whether viewers must not see it, final or not.
        decided: number of the decision to hide or show it; 0 if there is none.
        held: whether it ended while captions were paused, which have not been released yet.
        unacknowledged: whether its end must be sent to the owner again.
    """

    names: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    partial: Caption | None = None
    final: Caption | None = None
    error: protocol.Error | None = None
    lag_ms: float = 0.0
    made: float = 0.0
    correction: str = ""
    corrected: int = 0
    hidden: bool = False
    decided: int = 0
    held: bool = False
    unacknowledged: bool = False

    @property
    def ended(self) -> bool:
        """Whether the utterance has ended in this language."""
        return self.final is not None or self.error is not None

    @property
    def caption(self) -> Caption | None:
        """The final caption with its correction and its speaker's name; None before the end, and without one."""
        final = self._named(self.final)
        return replace(final, text=self.correction) if final and self.corrected else final

    def _named(self, caption: Caption | None) -> Caption | None:
        found = self.names.get(caption.speaker or "") if caption else None
        return replace(caption, speaker=found[0]) if caption and found else caption

    @property
    def size(self) -> int:
        """Number of characters that it keeps."""
        final = self.final
        return len(self.correction) + (OVERHEAD + len(final.text) + len(final.source) if final else 0)

    @property
    def visible(self) -> bool:
        """Whether viewers and readers may see its end."""
        return self.ended and not self.hidden and not self.held

    def frame(self, *, aged: bool = False) -> Frame | None:
        """Return the message with its newest caption, or the error in its place; None before the first.

        Args:
            aged: whether to include its age, for viewers who come late.
        """
        age = round(1000 * max(0.0, time.time() - self.made), 1) if aged else None
        if self.error is not None:
            return self.error.frame
        if (caption := self.caption) is not None:
            made, corrected = self.made, self.corrected or None
            return protocol.frame_of(caption, lag_ms=self.lag_ms, made=made, age_ms=age, corrected=corrected)
        partial = self._named(self.partial)
        return None if partial is None else protocol.frame_of(partial, lag_ms=self.lag_ms, age_ms=age)

    def decision(self, key: Key) -> Frame:
        """Return the message that it is hidden, or shown again."""
        decision = self.decided or None
        return protocol.Hide(utterance=key[0], language=key[1], hidden=self.hidden, decision=decision).frame


@dataclass(slots=True, eq=False)
class Utterance:
    """An utterance.

    Attributes:
        place: its place among those that have ended in some language; None before it has.
        cells: target language -> cell.
        size: number of characters that it keeps, as its transcript has counted them.
    """

    name: str
    place: int | None = None
    cells: dict[str, Cell] = field(default_factory=dict)
    size: int = 0

    def keyed(self) -> Iterator[tuple[Key, Cell]]:
        """Yield its cells by key."""
        for language, cell in list(self.cells.items()):  # threads export while captions are added
            yield (self.name, language), cell


class History(Iterator[Frame]):
    """The messages about the captions so far for one viewer, each made when it is sent, from its cell as it is then.

    Hidden ones are among them: a viewer that was disconnected may still show what has been hidden meanwhile.

    Args:
        ended: the utterances that have ended in some language; more may follow.
        wants: whether the viewer wants captions in a language.
    """

    def __init__(self, ended: Sequence[Utterance], wants: Callable[[str], bool]) -> None:
        self._ended, self._wants = ended, wants
        #: Places of the utterances that are left.
        self._left = range(len(ended))
        #: The utterance whose turn it is, and its languages that are left.
        self._current, self._languages = Utterance(""), list[str]()

    def covers(self, utterance: Utterance, language: str) -> bool:
        """Whether it will still send what viewers may see of an utterance that has ended in a language."""
        left = utterance.place in self._left or (utterance is self._current and language in self._languages)
        return left and utterance.cells[language].ended

    def __next__(self) -> Frame:
        """Return the next message."""
        while (message := self._message()) is None:
            if not self._left:
                raise StopIteration
            self._current, self._left = self._ended[self._left[0]], self._left[1:]
            self._languages = [each for each in self._current.cells if self._wants(each)]
        return message

    def _message(self) -> Frame | None:
        """Return the next message about the utterance whose turn it is; None if there is no more."""
        while self._languages:
            key = self._current.name, self._languages.pop(0)
            cell = self._current.cells[key[1]]
            if cell.hidden:
                return cell.decision(key)
            if cell.visible and (frame := cell.frame(aged=True)) is not None:
                return frame
        return None
