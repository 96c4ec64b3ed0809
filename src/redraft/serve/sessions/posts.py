"""Captions by POST, as caption services take them: what their numbers mean, and the texts in a body.

A sender numbers its captions, and repeats one under the same number if it got no answer.  A sender that was restarted
begins at a low number again; its captions are known by texts that the earlier ones with these numbers did not have.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import count

from redraft.captions.events import Update
from redraft.captions.formats.read import finished, received

#: Seconds within which a caption with the same number and text is the same one.
_REPEATED = 60.0
#: Number of captions that are remembered.
_MOST = 100
#: The line before a text in YouTube's form: the time in UTC, perhaps with the place on the screen.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?Z?(?: +region:\S*)?")


def texts_of(body: str) -> list[str]:
    """Return the texts in a body: several, or none, if it has YouTube's lines with times, otherwise all of it."""
    texts: list[list[str]] = []
    for line in body.splitlines():
        if _TIME.fullmatch(line.strip()):
            texts.append([])
        elif texts:
            texts[-1].append(line)
        elif line.strip():
            return [received(body)]
    if not texts:
        return [""]
    return [text for lines in texts if (text := received("\n".join(lines)))]


class Posts:
    """Turns the captions of one session into updates, with the time at which they come.

    Attributes:
        newest: number of the newest caption; -1 before the first.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.newest = -1
        self._clock, self._opened = clock, clock()
        #: Number -> text and time of recent captions.
        self._known: dict[int, tuple[str, float]] = {}
        #: The caption that still grows.
        self._growing: Update | None = None
        self._names, self._seqs = count(), count()

    def updates(self, number: int, body: str, *, final: bool, speaker: str | None = None) -> list[Update]:
        """Return the updates for a caption, which are none if it is known, or a later one has replaced it.

        Args:
            number: greater than earlier ones, unless the caption is repeated, late, or of a sender that begins again.
            final: false while its text still grows.
        """
        late = number < self.newest and number not in self._known and number > min(self._known)
        found: list[Update] = []
        if not late and number <= self.newest:
            text, when = self._known.get(number, (None, 0.0))
            if text == body and self._clock() - when <= _REPEATED:
                return []
            if self._growing is not None:  # the sender has begun again, so this one will not grow any more
                found.append(finished(self._growing))
            self._growing, self.newest = None, -1
            self._known.clear()
        self._known[number] = body, self._clock()
        if len(self._known) > _MOST:
            self._known.pop(next(iter(self._known)))
        texts = texts_of(body)
        if late:
            return [self._update(text, speaker) for text in texts] if final else []
        self.newest = number
        for left, text in zip(reversed(range(len(texts))), texts, strict=True):
            name = self._growing.utterance if self._growing else None
            found.append(self._update(text, speaker, final=final or left > 0, name=name))
            self._growing = None if found[-1].final else found[-1]
        return found

    def _update(self, text: str, speaker: str | None, *, final: bool = True, name: str | None = None) -> Update:
        name = f"post-{next(self._names)}" if name is None else name
        return Update(name, next(self._seqs), text, final, round(self._clock() - self._opened, 3), speaker)
