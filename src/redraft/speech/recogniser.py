"""What a recogniser is, and how what it hears becomes updates of a transcript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item, finished, printable
from redraft.errors import RedraftError, first_sentence
from redraft.speech.audio import RATE, Samples


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """All that a recogniser has understood of an utterance so far; the next one may revise any of it.

    Attributes:
        text: the words; none yet is an empty text.
        start: when the utterance began, in seconds from the start of the audio.
        end: up to when it has been heard.
        final: whether the utterance has ended, so that the next hypothesis is of another one.
    """

    text: str
    start: float
    end: float
    final: bool = False


#: A hypothesis, or a sentence about something that went wrong and did not end the recognition.
Heard: TypeAlias = Hypothesis | Failure


class Recogniser(Protocol):
    """Recognises one stream of audio.

    A recogniser may raise whatever it likes: `transcribe` keeps what was recognised before, and says so.
    """

    def hear(self, samples: Samples) -> Iterable[Heard]:
        """What a block of mono audio at 16 kHz adds, in order; nothing where nothing has changed."""

    def finish(self) -> Iterable[Heard]:
        """No more audio will come: what is still open, ended."""

    def close(self) -> None:
        """Free what the recogniser holds."""


@dataclass(slots=True)
class Names:
    """Gives hypotheses the names and numbers of updates: utterances are "1", "2", ..."""

    _utterance: int = 1
    _last: Update | None = None

    def update(self, heard: Hypothesis) -> Update | None:
        """The update for a hypothesis; None where it says nothing new.

        The first update of an utterance has the time at which that began, where its subtitle begins, and later ones
        the time up to which it was heard.
        """
        text, last = printable(heard.text).strip(), self._last
        if last is None and not text:
            return None  # a noise is no utterance
        if last is not None and not heard.final and text == last.text:
            return None
        when = heard.end if last is not None or heard.final else heard.start
        seq = 0 if last is None else last.seq + 1
        made = Update(str(self._utterance), seq, text, heard.final, round(max(0.0, when), 3))
        self._last = made
        if heard.final:
            self._utterance, self._last = self._utterance + 1, None
        return made

    def finish(self) -> Iterator[Update]:
        """The utterance that is still open, ended with what was heard of it last."""
        if self._last is not None:
            yield finished(self._last)
            self._utterance, self._last = self._utterance + 1, None

    def items(self, heard: Iterable[Heard]) -> Iterator[Item]:
        """Updates and failures, in order."""
        for each in heard:
            if isinstance(each, Failure):
                yield each
            elif (update := self.update(each)) is not None:
                yield update


def transcribe(blocks: Iterable[Samples | Failure], recogniser: Recogniser) -> Iterator[Item]:
    """The transcript of audio as it grows; the recogniser is closed at the end, whatever happens.

    Failures among the blocks are passed on.
    What goes wrong becomes a failure, after all that had been recognised: audio that cannot be read to its end, and a
    recogniser that dies, after which no more audio is read.
    """
    names, samples, audio = Names(), 0, iter(blocks)
    problem: Failure | None = None
    try:
        while problem is None:
            try:
                block = next(audio)
            except StopIteration:
                break
            except RedraftError as error:
                problem = Failure(str(error))
                break
            if isinstance(block, Failure):
                yield block
                continue
            samples += len(block)
            try:
                yield from names.items(recogniser.hear(block))
            except Exception as error:
                yield from names.finish()
                yield _death(error, samples)
                return
        try:
            yield from names.items(recogniser.finish())
        except Exception as error:
            problem = problem or _death(error, samples)
        yield from names.finish()
        if problem is None and not samples:
            problem = Failure("the audio is empty: nothing was recorded in it")
        if problem is not None:
            yield problem
    finally:
        recogniser.close()


def _death(error: Exception, samples: int) -> Failure:
    what = str(error) if isinstance(error, RedraftError) else f"{type(error).__name__}: {first_sentence(error)}"
    return Failure(f"the recogniser stopped after {samples / RATE:.1f} s of audio: {what}")
