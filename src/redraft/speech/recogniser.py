"""The interface of recognisers, and the conversion of their hypotheses to updates of a transcript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from redraft.captions.ending import lowered
from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item, finished, received
from redraft.errors import RedraftError, first_sentence
from redraft.speech.audio import RATE, Samples
from redraft.speech.sentences import SentenceCutter


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A recogniser's text of an utterance so far; the next hypothesis may revise any of it.

    Attributes:
        text: the words; may be empty.
        start: start of the utterance in seconds from the start of the audio.
        end: end of the recognised audio, as ``start``.
        final: whether the utterance has ended; the next hypothesis then belongs to another one.
        speaker: who is speaking; None if unknown.
        committed: number of words, from the first on, that the recogniser will not change; None if unknown.
        language: BCP 47 tag of the language that is spoken, one of those that the recogniser was opened for; None if
            the recogniser does not know it.
    """

    text: str
    start: float
    end: float
    final: bool = False
    speaker: str | None = None
    committed: int | None = None
    language: str | None = None


#: A hypothesis, or a failure that did not end the recognition.
Recognised: TypeAlias = Hypothesis | Failure


class Recogniser(Protocol):
    """Recognises one stream of audio.

    Any exception may be raised: `transcribe` keeps what was recognised before, and reports a failure.  One that accepts
    audio before it has recognised it also has ``recognised``, the seconds of audio recognised so far; one that may wait
    for others has ``hurry()``, which is called from another thread once the end of the audio was asked for.
    """

    def hear(self, samples: Samples) -> Iterable[Recognised]:
        """Return what a block of mono audio at 16 kHz adds, in order; empty if nothing has changed."""

    def finish(self) -> Iterable[Recognised]:
        """End the audio; return the utterance that is still open, as final."""

    def close(self) -> None:
        """Release resources, if there are any."""
        return


@dataclass(slots=True)
class Names:
    """Assigns names and numbers to hypotheses: utterances are "1", "2", ..."""

    _utterance: int = 1
    _last: Update | None = None
    _mixed: bool = False

    def update(self, hypothesis: Hypothesis) -> Update | None:
        """Return the update for a hypothesis, at the end of the recognised audio; None if nothing has changed."""
        text, self._mixed = lowered(received(hypothesis.text), mixed=self._mixed)
        last = self._last
        if last is None and not text:
            return None  # noise without words is not an utterance
        same = last is not None and (text, hypothesis.committed) == (last.text, last.committed)
        if same and not hypothesis.final:
            return None
        self._last = made = Update(
            str(self._utterance),
            0 if last is None else last.seq + 1,
            text,
            hypothesis.final,
            round(max(0.0, hypothesis.end), 3),
            hypothesis.speaker,
            hypothesis.committed,
            language=hypothesis.language,
            start=round(max(0.0, hypothesis.start), 3) if last is None else last.start,
        )
        if hypothesis.final:
            self._utterance, self._last = self._utterance + 1, None
        return made

    def finish(self) -> Iterator[Update]:
        """Yield the last hypothesis of an open utterance as final."""
        if self._last is not None:
            yield finished(self._last)
            self._utterance, self._last = self._utterance + 1, None

    def items(self, recognised: Iterable[Recognised]) -> Iterator[Item]:
        """Yield updates and failures, in order."""
        for each in recognised:
            if isinstance(each, Failure):
                yield each
            elif (update := self.update(each)) is not None:
                yield update


def transcribe(
    blocks: Iterable[Samples | Failure], recogniser: Recogniser, sentences: SentenceCutter | None = None
) -> Iterator[Item]:
    """Yield the growing transcript of audio; the recogniser is always closed at the end.

    Failures among the blocks are passed on.  Audio that cannot be read to its end and a recogniser that crashes each
    become a failure, after everything recognised before.  After a crash no more audio is read.

    Args:
        sentences: cuts the text; None leaves it as it is.
    """
    names, samples, audio, over = Names(), 0, iter(blocks), False
    problem: Failure | None = None

    def cut(items: Iterator[Item]) -> Iterator[Item]:
        return items if sentences is None else sentences.items(items)

    try:
        while not over:
            try:
                block = next(audio, None)
            except RedraftError as error:
                block, problem = None, Failure(str(error))
            if isinstance(block, Failure):
                yield block
                continue
            try:
                if block is None:
                    over = True
                    yield from cut(names.items(recogniser.finish()))
                    continue
                samples += len(block)
                yield from cut(names.items(recogniser.hear(block)))
                if sentences is not None:
                    yield from sentences.passed(getattr(recogniser, "recognised", samples / RATE))
            except Exception as error:
                death = f"the recogniser stopped after {samples / RATE:.1f} s of audio: {reason(error)}"
                over, problem = True, problem or Failure(death)
        yield from cut(names.finish())
        yield from sentences.finish() if sentences else ()
        if problem is None and not samples:
            problem = Failure("the audio is empty: nothing was recorded in it")
        if problem is not None:
            yield problem
    finally:
        recogniser.close()


def reason(error: Exception) -> str:
    """Return what a recogniser has failed with: our own sentence, or the type and the first sentence of a library's."""
    return str(error) if isinstance(error, RedraftError) else f"{type(error).__name__}: {first_sentence(error)}"
