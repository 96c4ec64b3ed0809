"""What recognisers do, and how their hypotheses become updates of a transcript."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeAlias

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

    def later(self, seconds: float) -> Hypothesis:
        """Return it with times that are so many seconds later."""
        return replace(self, start=round(self.start + seconds, 3), end=round(self.end + seconds, 3))


#: A hypothesis; a failure that did not end the recognition; or a number: nothing more is recognised in so many seconds
#: of audio.
Recognised: TypeAlias = Hypothesis | Failure | float
#: Recognises one stream of audio: takes blocks of mono samples at 16 kHz, and yields what they add, in order, with the
#: utterance that is still open at their end as final.  When it asks for a block, it has recognised those before, or may
#: take longer for them if it yields numbers.  Any exception may be raised: `transcribe` keeps what was recognised
#: before, and reports a failure.  Closing the generator releases what it holds.
Recogniser: TypeAlias = Callable[[Iterator[Samples]], Generator[Recognised, None, None]]


class Transcript:
    """Makes updates of what is recognised; utterances are "1", "2", ...

    Args:
        sentences: cuts their text; None leaves it as it is.
    """

    def __init__(self, sentences: SentenceCutter | None = None) -> None:
        self._sentences, self._mixed = sentences, False
        self._utterance = 1
        self._last: Update | None = None

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

    def items(self, recognised: Iterable[Recognised]) -> Iterator[Item]:
        """Yield updates and failures, in order."""
        for each in recognised:
            if isinstance(each, Failure):
                yield each
            elif isinstance(each, Hypothesis):
                if (update := self.update(each)) is not None:
                    yield from self._cut(update)
            elif self._sentences is not None:
                yield from self._sentences.passed(each)

    def finish(self) -> Iterator[Item]:
        """Yield the last text of what has not ended as final."""
        if self._last is not None:
            yield from self._cut(finished(self._last))
            self._utterance, self._last = self._utterance + 1, None
        yield from self._sentences.finish() if self._sentences else ()

    def _cut(self, update: Update) -> Iterable[Item]:
        return [update] if self._sentences is None else self._sentences.update(update)


def transcribe(
    blocks: Iterable[Samples | Failure], recogniser: Recogniser, sentences: SentenceCutter | None = None
) -> Iterator[Item]:
    """Yield the growing transcript of audio; the recogniser is always closed at the end.

    Failures among the blocks are passed on.  Audio that cannot be read to its end and a recogniser that crashes each
    become a failure, after everything recognised before.  After a crash no more audio is read.

    Args:
        sentences: cuts the text; None leaves it as it is.
    """
    transcript, samples, told = Transcript(sentences), 0, list[Failure]()
    problems: list[Failure] = []

    def heard() -> Iterator[Samples]:
        nonlocal samples
        try:
            for block in blocks:
                if isinstance(block, Failure):
                    told.append(block)
                else:
                    samples += len(block)
                    yield block
        except RedraftError as error:
            problems.append(Failure(str(error)))

    with closing(recogniser(heard())) as recognised:
        try:
            for each in recognised:
                yield from told
                told.clear()
                yield from transcript.items([each])
        except Exception as error:
            problems.append(Failure(f"the recogniser stopped after {samples / RATE:.1f} s of audio: {reason(error)}"))
        yield from told
        yield from transcript.finish()
        if not samples:
            problems.append(Failure("the audio is empty: nothing was recorded in it"))
        yield from problems[:1]


def reason(error: Exception) -> str:
    """Return what a recogniser has failed with: our own sentence, or the type and the first sentence of a library's."""
    return str(error) if isinstance(error, RedraftError) else f"{type(error).__name__}: {first_sentence(error)}"
