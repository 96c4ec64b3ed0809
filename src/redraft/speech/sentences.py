"""Cut a recogniser's text into sentences, whatever the pauses: updates in, updates out.

Recognisers end utterances at pauses, but a translation needs the sentence.  So an utterance without a sentence end
goes on in the next one if that follows soon, and an utterance with several sentences becomes several, each as soon as
its end has been stable for a while.  Recognisers that write no punctuation keep their utterances.

The new utterances are named "1", "2", ...  A sentence that has ended never changes again.  Joined in order, the final
texts of the sentences are the final texts of the utterances: no word is lost, doubled or moved.  There is one
exception: if the recogniser revises a sentence that has ended already, its words stay as they were, and the next
sentence begins where the revised text continues it best (`SETTLED` keeps this rare).  Utterances that overlap, as those
of two speakers, are never joined.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from redraft.captions.events import Failure, Order, Update
from redraft.captions.formats.read import Item, finished
from redraft.captions.sentence import sentence_ends
from redraft.captions.words import WORD, bare, distances, joined
from redraft.errors import InputError

#: Longest pause in seconds over which a sentence goes on.
PAUSE = 2.0
#: A sentence goes on in another utterance only below this length, in words and in seconds.
WORDS, SECONDS = 40, 20.0
#: Seconds for which the words up to a sentence end must be unchanged before the sentence is cut off; without times, the
#: number of updates.
SETTLED, SETTLED_UPDATES = 2.0, 4

_Words = tuple[str, ...]


@dataclass(slots=True)
class _Sentence:
    """The sentence that is being spoken.

    Attributes:
        start: its start in seconds.
        before: its text in utterances that have ended.
        paused: time of the end of the last of these.
        name: its name as an utterance; empty until there is an update of it.
        seq: number of its next update.
        speaker: who is speaking.
    """

    start: float | None
    before: str = ""
    paused: float | None = None
    name: str = ""
    seq: int = 0
    speaker: str | None = None


@dataclass(slots=True)
class _Utterance:
    """An utterance of the recogniser that has not ended.

    Attributes:
        sentence: its last sentence.
        last: its newest update.
        cut: the beginning of its text that is in sentences which have ended.
        ends: words of the sentence up to each sentence end -> time since they are unchanged, and number of updates.
    """

    sentence: _Sentence
    last: Update
    cut: str = ""
    ends: dict[_Words, tuple[float | None, int]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Text of the last sentence and what follows it."""
        return joined(self.sentence.before, self._own)

    @property
    def _own(self) -> str:
        whole = self.last.text.strip()
        return whole[_boundary(self.cut, whole) :].lstrip()

    def cut_off(self, end: int, words: int) -> None:
        """Begin the next sentence behind ``end`` in `text`, which is behind this many of its words."""
        text, own, whole = self.text, self._own, self.last.text.strip()
        start = len(text) - len(own)
        left = text[max(start, end) :].lstrip()
        since = next((time for each, (time, _) in self.ends.items() if len(each) == words), None)
        self.cut = whole[: len(whole) - len(left)].rstrip()
        self.sentence = _Sentence(since, text[end:start].strip(), speaker=self.last.speaker)
        self.ends = {each[words:]: seen for each, seen in self.ends.items() if len(each) > words}


class Sentences:
    """Turns the updates of one recogniser into updates of sentences."""

    def __init__(self) -> None:
        self._order = Order()
        self._open: dict[str, _Utterance] = {}
        #: A sentence whose utterance has ended, and which may go on in the next one.
        self._waiting: _Sentence | None = None
        self._newest = ""
        self._punctuates = False
        self._names = 0

    @property
    def since(self) -> float | None:
        """Start in seconds of the oldest sentence that has not ended; None if there is none, or it is unknown."""
        sentences = [*(each.sentence for each in self._open.values()), *filter(None, [self._waiting])]
        return min((each.start for each in sentences if each.start is not None), default=None)

    def update(self, update: Update) -> Iterator[Item]:
        """Yield what an update of the recogniser makes: updates of sentences, or a failure if it is out of order."""
        try:
            self._order.accept(update)
        except InputError as error:
            yield Failure(str(error), None, update.utterance, update.seq)
            return
        self._punctuates = self._punctuates or _is_punctuated(update.text)
        if update.utterance not in self._open:
            yield from self._begin(update)
        utterance = self._open[update.utterance]
        utterance.last, utterance.sentence.speaker = update, update.speaker
        yield from self._cut(utterance)
        if update.final:
            yield from self._end(utterance)
        elif utterance.text or utterance.sentence.name:
            yield from self._made(utterance.sentence, utterance.text, update.time)

    def items(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield what updates make; failures are passed on."""
        for item in items:
            if isinstance(item, Failure):
                yield item
            else:
                yield from self.update(item)

    def passed(self, time: float) -> Iterator[Update]:
        """Yield the end of a sentence that has waited too long for the next utterance; call this during silence.

        Args:
            time: seconds from the start of the audio.
        """
        if self._waiting is not None and _is_over(self._waiting, time):
            yield from self._close_waiting()

    def finish(self) -> Iterator[Item]:
        """End the stream: yield the end of every sentence."""
        for utterance in list(self._open.values()):
            yield from self.update(finished(utterance.last))
        yield from self._close_waiting()

    def _begin(self, update: Update) -> Iterator[Update]:
        waiting, time = self._waiting, update.time
        if waiting and (waiting.speaker != update.speaker or (time is not None and _is_over(waiting, time))):
            yield from self._close_waiting()
        self._open[update.utterance] = _Utterance(self._waiting or _Sentence(update.time), update)
        self._waiting, self._newest = None, update.utterance

    def _close_waiting(self) -> Iterator[Update]:
        if (waiting := self._waiting) is not None:
            self._waiting = None
            yield from self._made(waiting, waiting.before, waiting.paused, final=True)

    def _cut(self, utterance: _Utterance) -> Iterator[Update]:
        """Yield the last update of every sentence that has ended."""
        update, text = utterance.last, utterance.text
        ends = [(end, words) for end in sentence_ends(text) if (words := _words(text[:end]))]
        if ends and update.final and not _words(text[ends[-1][0] :]):
            ends[-1] = len(text), ends[-1][1]  # with signs that are no words
        utterance.ends = {words: _seen(utterance.ends.get(words), update.time) for _, words in ends}
        over = [
            place
            for place, (end, words) in enumerate(ends)
            if update.final or (_words(text[end:]) and _is_settled(utterance.ends[words], update.time))
        ]
        sentence, done, gone = utterance.sentence, 0, 0
        for end, words in ends[: over[-1] + 1 if over else 0]:
            if len(words) > gone:
                piece, since = text[done:end].strip(), utterance.ends[words][0]
                time = since if _words(text[end:]) else update.time
                yield from self._made(sentence, piece, time, final=True)
                sentence, done, gone = _Sentence(since, speaker=update.speaker), end, len(words)
        if done:
            utterance.cut_off(done, gone)

    def _end(self, utterance: _Utterance) -> Iterator[Update]:
        """Yield the last update of the sentence at the end of an utterance; unless the next one may continue it."""
        del self._open[utterance.last.utterance]
        sentence, text, time = utterance.sentence, utterance.text, utterance.last.time
        words = _words(text)
        seconds = 0.0 if time is None or sentence.start is None else time - sentence.start
        alone = not self._open and self._newest == utterance.last.utterance
        if words and self._punctuates and alone and len(words) < WORDS and seconds < SECONDS:
            sentence.before, sentence.paused, self._waiting = text, time, sentence
            yield from self._made(sentence, text, time)
        elif text or sentence.name:
            yield from self._made(sentence, text, time, final=True)

    def _made(self, sentence: _Sentence, text: str, time: float | None, *, final: bool = False) -> Iterator[Update]:
        """Yield an update of a sentence; the first one has the time of its start."""
        if not sentence.name:
            self._names += 1
            sentence.name = str(self._names)
            if sentence.start is not None and (time is None or sentence.start < time):
                if final:
                    yield Update(sentence.name, 0, text, time=sentence.start, speaker=sentence.speaker)
                    sentence.seq = 1
                else:
                    time = sentence.start
        yield Update(sentence.name, sentence.seq, text, final, time, sentence.speaker)
        sentence.seq += 1


def in_sentences(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the sentences of a whole transcript (`Sentences`)."""
    sentences = Sentences()
    yield from sentences.items(items)
    yield from sentences.finish()


def _is_over(waiting: _Sentence, time: float) -> bool:
    return waiting.paused is not None and time - waiting.paused > PAUSE


def _seen(before: tuple[float | None, int] | None, time: float | None) -> tuple[float | None, int]:
    return (time, 1) if before is None else (before[0], before[1] + 1)


def _is_settled(seen: tuple[float | None, int], time: float | None) -> bool:
    since, updates = seen
    return updates >= SETTLED_UPDATES if since is None or time is None else time - since >= SETTLED


def _words(text: str) -> _Words:
    """Return the words of a text without case and punctuation; signs alone are no words."""
    return tuple(word for each in WORD.findall(text) if (word := bare(each)))


def _is_punctuated(text: str) -> bool:
    """Whether a word ends with a comma or another mark at which speakers pause."""
    return any(len(word) > 1 and word[-1] in ".,;:!?" for word in text.split()) or any(
        mark in text for mark in "。、，！？…।؟،۔።"
    )


def _boundary(cut: str, text: str) -> int:
    """Return where ``text`` continues, given a beginning of an earlier version of it."""
    if not cut:
        return 0
    if text.startswith(cut) and (len(text) == len(cut) or not bare(text[len(cut)]) or not bare(cut[-1])):
        return len(cut)
    places = [match for match in WORD.finditer(text) if bare(match[0])]
    count = _most_similar(_words(cut), [bare(match[0]) for match in places])
    end = places[count - 1].end() if count else 0
    while end and end < len(text) and _closes(text, end):  # punctuation that is a word of its own, as in Chinese
        end += 1
    return end


def _closes(text: str, place: int) -> bool:
    """Whether the character at ``place`` belongs to the sentence before it rather than to the next one."""
    character = text[place]
    if character in "\"'":
        return not text[place - 1].isspace()
    return character.isspace() or (
        unicodedata.category(character) in ("Po", "Pe", "Pf", "Pd") and character not in "¿¡"
    )


def _most_similar(words: Sequence[str], text: Sequence[str]) -> int:
    """Return the length of the beginning of ``text`` with the smallest Levenshtein distance to ``words``.

    Of several, it is the one whose length is nearest.
    """
    same = next((place for place, (one, other) in enumerate(zip(words, text, strict=False)) if one != other), None)
    if same is None:
        return min(len(words), len(text))
    rest = words[same:]
    found = distances(rest, text[same : 2 * len(words) + 8])
    return same + min(range(len(found)), key=lambda place: (found[place], abs(place - len(rest))))
