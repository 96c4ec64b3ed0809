"""Cut a recogniser's text into sentences, whatever the pauses: updates in, updates out.

Recognisers end utterances at pauses, but a translation needs the sentence.  So an utterance without a sentence end
continues in the next one if that follows soon, and an utterance with several sentences becomes several, each as soon as
its end has been stable for a while or committed.  Recognisers that write no punctuation keep their utterances.

Minutes of speech are too long to translate at once, and to read.  So a text that is too long is cut without a sentence
end, where a clause may end (`redraft.captions.clauses`) and the words have been stable, even if utterances are
otherwise kept.

The new utterances are named "1", "2", ...  A sentence that has ended never changes again.  Joined in order, the final
texts of the sentences are the final texts of the utterances: no word is lost, doubled or moved.  There is one
exception: if the recogniser revises a sentence that has ended already, its words stay as they were, and the next
sentence begins behind what replaces them, which the words on both sides of that place decide (`align.seam`); waiting
for words to settle keeps this rare.  Utterances that
overlap, as those of two speakers, are never joined.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from redraft.captions.align import in_common, seam
from redraft.captions.clauses import SHORTEST, Speech, best_cut, length
from redraft.captions.ending import LONG_PAUSE, Since, is_committed
from redraft.captions.events import Failure, Order, Update
from redraft.captions.formats.read import Item, finished
from redraft.captions.sentence import sentence_ends
from redraft.captions.words import WORD, bare, bare_words, joined
from redraft.decoding.types import common_prefix
from redraft.errors import InputError

#: The longest sentence, in words and in seconds: a longer one does not go on in another utterance, and is cut where it
#: goes on in its own.
WORDS, SECONDS = 40, 20.0
#: How many times longer an utterance may be that is kept as it is.
_KEPT = 2
#: Words among which the next cut is looked for: more than decide on it, also where two characters count as one.
_NEAR = 8 * WORDS

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
        language: the language that is spoken.
        part_of: name of its utterance.
    """

    start: float | None
    before: str = ""
    paused: float | None = None
    name: str = ""
    seq: int = 0
    speaker: str | None = None
    language: str | None = None
    part_of: str = ""

    def next(self, start: float | None) -> _Sentence:
        """Return the sentence that follows in the same utterance."""
        return _Sentence(start, speaker=self.speaker, language=self.language, part_of=self.part_of)


@dataclass(slots=True)
class _Utterance:
    """An utterance of the recogniser that has not ended.

    Attributes:
        sentence: its last sentence.
        last: its newest update.
        cut: the beginning of its text that is in sentences which have ended; None if none has.
        behind: words behind that, in the last text that had some.
        place: where the last text continues behind the cut.
        ends: words of the sentence up to each sentence end -> since when they are unchanged, with the mark.
        since: when its words were spoken at the earliest, if its first update is its last one; its words then have
            estimated times.
        words: words of the sentence and what follows it.
        seen: for each of them, since when it and those before it are unchanged.
        places: where each of them begins and ends in the text that was seen last.
        sure: how many of them the recogniser has committed.
    """

    sentence: _Sentence
    last: Update
    cut: str | None = None
    behind: _Words = ()
    place: int = 0
    ends: dict[_Words, Since] = field(default_factory=dict)
    since: float | None = None
    words: _Words = ()
    seen: list[Since] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    sure: int = 0

    @property
    def text(self) -> str:
        """Text of the last sentence and what follows it."""
        return joined(self.sentence.before, self._own)

    @property
    def _own(self) -> str:
        return self.last.text.strip()[self.place :].lstrip()

    @property
    def committed(self) -> int | None:
        """How many words of `text` the recogniser has committed; None if it does not say."""
        if self.last.committed is None:
            return None
        gone = len(WORD.findall(self.last.text.strip()[: self.place]))
        return len(WORD.findall(self.sentence.before)) + max(0, self.last.committed - gone)

    @property
    def ahead(self) -> str:
        """What was cut off behind the end of the text; a server may split its lines later."""
        whole = self.last.text.strip()
        if not self.cut or not _is_begun(whole, self.cut):
            return ""
        return self.cut[_end_of(self.cut, len(_words(whole))) :].strip()

    def take(self, update: Update) -> None:
        """Take the next update; words after an empty text are new ones, unless most are those that were there."""
        if self.cut and not _words(self.last.text) and (words := _words(update.text)):
            old = (*_words(self.cut), *self.behind)
            if not _is_begun(update.text, self.cut) and 2 * in_common(old, words) <= len(old):
                self.cut, self.behind = "", ()
        self.last = update
        if self.cut is None:
            return
        whole = update.text.strip()
        self.place = _boundary(self.cut, self.behind, whole)
        begun, behind = whole[: self.place], _words(whole[self.place :])
        if behind:  # else the recogniser may bring back what is missing
            self.behind = behind
            if len(_words(begun)) >= len(_words(self.cut)):  # nor is what was cut off forgotten
                self.cut = begun

    def see(self, text: str) -> None:
        """Record the words of the newest text."""
        found = [(word, match.span()) for match in WORD.finditer(text) if (word := bare(match[0]))]
        words, time = tuple(word for word, _ in found), self.last.time
        self.sure = sum(bool(bare(word)) for word in WORD.findall(text)[: self.committed or 0])
        self.places = [place for _, place in found]
        same = common_prefix(self.words, words)
        new = len(words) - same
        times = [time] * new
        if time is not None and self.since is not None:
            times = [self.since + (time - self.since) * (place + 1) / new for place in range(new)]
        self.seen = [each.again() for each in self.seen[:same]] + [Since(each) for each in times]
        self.words = words

    def speech(self, text: str, first: int, last: int, *, settled: bool) -> Speech:
        """Return words of a text for `best_cut`; ``settled`` for words that no longer change anyway."""
        begins = [begin for begin, _ in self.places[first : last + 1]]
        ends = begins[1:] if last < len(self.places) else [*begins[1:], len(text)]
        times = [each.time or 0.0 for each in self.seen[max(0, first - 1) : last]]
        return Speech(
            self.words[first:last],
            [text[begin:end] for begin, end in zip(begins, ends, strict=False)],
            [after - before for before, after in pairwise(times if first else [times[0], *times])],
            [
                settled or place < self.sure or self.seen[place].is_settled(self.last.time)
                for place in range(first, last)
            ],
        )

    def cut_off(self, end: int, words: int, sentence: _Sentence) -> None:
        """Begin a sentence behind ``end`` in `text`, which is behind this many of its words."""
        text, own, whole = self.text, self._own, self.last.text.strip()
        start = len(text) - len(own)
        left = text[max(start, end) :].lstrip()
        self.cut = whole[: len(whole) - len(left)].rstrip()
        self.place, self.behind = len(self.cut), _words(left)
        self.sentence = sentence
        sentence.before = text[end:start].strip()
        self.ends = {each[words:]: seen for each, seen in self.ends.items() if len(each) > words}
        self.words, self.seen = self.words[words:], self.seen[words:]


class SentenceCutter:
    """Turns the updates of one recogniser into updates of sentences.

    Args:
        whole: whether utterances are kept as they are, with their names, unless they are too long.  What is cut off
            those goes on as utterance "7.2", "7.3", ...
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        self._order = Order()
        self._open: dict[str, _Utterance] = {}
        #: A sentence whose utterance has ended, and which may go on in the next one.
        self._waiting: _Sentence | None = None
        self._newest = ""
        #: Words that were cut off the last utterance, which then ended before them.
        self._ahead = ""
        self._punctuates = False
        #: Time of the latest end of an utterance.
        self._ended = 0.0
        #: Names in use, with the number of the last one that was made from each; "" for sentences.
        self._names: dict[str, int] = {}

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
        utterance.take(update)
        utterance.sentence.speaker, utterance.sentence.language = update.speaker, update.language
        if self._whole and utterance.cut is None:
            utterance.sentence.seq = update.seq
        yield from self._cut(utterance)
        if update.final:
            yield from self._end(utterance)
        elif utterance.text or utterance.sentence.name:
            yield from self._made(utterance.sentence, utterance.text, update.time, committed=utterance.committed)

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
        waiting, since = self._waiting, self._spoken_since(update)
        start = update.begun if since is None else since
        other = waiting and (waiting.speaker, waiting.language) != (update.speaker, update.language)
        if waiting and (other or (start is not None and _is_over(waiting, start))):
            yield from self._close_waiting()
        sentence = self._waiting or _Sentence(start, part_of=update.utterance)
        if self._whole:
            sentence.name = self._new_name(update.utterance)
        self._open[update.utterance] = utterance = _Utterance(sentence, update, since=since)
        if self._ahead and _is_begun(update.text, self._ahead):
            utterance.cut = self._ahead
        utterance.words = _words(sentence.before)
        utterance.seen = [Since(sentence.paused)] * len(utterance.words)
        self._waiting, self._newest = None, update.utterance

    def _spoken_since(self, update: Update) -> float | None:
        """Return the estimated start of an utterance whose only time is that of its end; None for others."""
        if not update.final or update.time is None or update.time <= self._ended:
            return None
        if update.start is not None:
            return min(update.start, update.time)
        return max(self._ended, update.time - length(_words(update.text)) * SECONDS / WORDS)

    def _close_waiting(self) -> Iterator[Update]:
        if (waiting := self._waiting) is not None:
            self._waiting = None
            yield from self._made(waiting, waiting.before, waiting.paused, final=True)

    def _cut(self, utterance: _Utterance) -> Iterator[Update]:
        """Yield the last update of every sentence that has ended or is too long."""
        text, time = utterance.text, utterance.last.time
        utterance.see(text)
        sentence, done, gone = utterance.sentence, 0, 0
        for end, words, seen in self._cuts(utterance, text):
            since, goes_on = _later(seen, sentence.start), words < len(utterance.words)
            over = since if goes_on else time
            yield from self._made(sentence, text[done:end].strip(), over, final=True, goes_on=goes_on)
            sentence, done, gone = sentence.next(over), end, words
        if done:
            utterance.cut_off(done, gone, sentence)

    def _cuts(self, utterance: _Utterance, text: str) -> Iterator[tuple[int, int, float | None]]:
        """Yield where a text is cut: the place, the number of words before it, and since when they are unchanged."""
        first, final = 0, utterance.last.final
        for end, words in [] if self._whole else self._over(utterance, text):
            if words > first:
                yield from self._clauses(utterance, text, first, words, ended=True)
                yield end, words, utterance.seen[words - 1].time
                first = words
        yield from self._clauses(utterance, text, first, len(utterance.words), ended=final)

    def _over(self, utterance: _Utterance, text: str) -> list[tuple[int, int]]:
        """Return the sentence ends up to the last one that is settled: the place, and the number of words before it."""
        update, places = utterance.last, [end for _, end in utterance.places]
        ends = [(end, words) for end in sentence_ends(text) if (words := bisect_right(places, end))]
        if ends and update.final and ends[-1][1] == len(places):
            ends[-1] = len(text), ends[-1][1]  # with signs that are no words
        keys = {words: utterance.words[:words] for _, words in ends}
        before, committed = utterance.ends, utterance.committed
        utterance.ends = {key: before[key].again() if key in before else Since(update.time) for key in keys.values()}
        over = 0
        for number, (end, words) in enumerate(ends, 1):
            stands = is_committed(text[:end], committed) or utterance.ends[keys[words]].is_settled(update.time)
            if update.final or (words < len(places) and stands):
                over = number
        return ends[:over]

    def _clauses(
        self, utterance: _Utterance, text: str, first: int, last: int, *, ended: bool
    ) -> Iterator[tuple[int, int, float | None]]:
        """Yield where words are cut because there are too many of them, as `_cuts`.

        Args:
            first: number of words before them.
            last: number of words up to the last of them.
            ended: whether they no longer change.
        """
        since = utterance.seen[first - 1].time if first else utterance.sentence.start
        while self._is_long(utterance, first, near := min(last, first + _NEAR), since, ended=ended):
            count = best_cut(utterance.speech(text, first, near, settled=ended), WORDS, ended=ended)
            if count is None:
                return
            first += count
            since = utterance.seen[first - 1].time
            yield _behind_marks(text, utterance.places[first - 1][1]), first, since

    def _is_long(self, utterance: _Utterance, first: int, last: int, since: float | None, *, ended: bool) -> bool:
        words, time = length(utterance.words[first:last]), utterance.last.time
        times = _KEPT if self._whole and not (first or utterance.cut is not None) else 1
        if ended or since is None or time is None:
            return words > times * WORDS
        return words > times * WORDS or (time - since > times * SECONDS and words > 2 * SHORTEST)

    def _end(self, utterance: _Utterance) -> Iterator[Update]:
        """Yield the last update of the sentence at the end of an utterance; unless the next one may continue it."""
        del self._open[utterance.last.utterance]
        self._ahead = utterance.ahead
        sentence, text, time = utterance.sentence, utterance.text, utterance.last.time
        self._ended = max(self._ended, time or 0.0)
        words = length(_words(text))
        seconds = 0.0 if time is None or sentence.start is None else time - sentence.start
        alone = not self._open and self._newest == utterance.last.utterance
        goes_on = self._punctuates and alone and words < WORDS and seconds < SECONDS
        if words and goes_on and not self._whole:
            sentence.before, sentence.paused, self._waiting = text, time, sentence
            yield from self._made(sentence, text, time)
        elif text or sentence.name:
            yield from self._made(sentence, text, time, final=True)

    def _made(
        self,
        sentence: _Sentence,
        text: str,
        time: float | None,
        *,
        final: bool = False,
        committed: int | None = None,
        goes_on: bool = False,
    ) -> Iterator[Update]:
        """Yield an update of a sentence, not before its start."""
        start, time = sentence.start, _later(time, sentence.start)
        if not sentence.name:
            sentence.name = self._new_name(sentence.part_of)
        about = sentence.speaker, committed, goes_on, sentence.language, start
        yield Update(sentence.name, sentence.seq, text, final, time, *about)
        sentence.seq += 1

    def _new_name(self, utterance: str) -> str:
        """Return the name of the next sentence: its number or, if utterances are kept, theirs with a number."""
        if not self._whole:
            self._names[""] = self._names.get("", 0) + 1
            return str(self._names[""])
        name = utterance
        while name in self._names or (name != utterance and name in self._order):
            self._names[utterance] = self._names.get(utterance, 1) + 1
            name = f"{utterance}.{self._names[utterance]}"
        self._names.setdefault(name, 1)
        return name


def in_sentences(items: Iterable[Item], *, whole: bool = False) -> Iterator[Item]:
    """Yield the sentences of a whole transcript (`SentenceCutter`)."""
    sentences = SentenceCutter(whole=whole)
    yield from sentences.items(items)
    yield from sentences.finish()


def _is_over(waiting: _Sentence, time: float) -> bool:
    return waiting.paused is not None and abs(time - waiting.paused) > LONG_PAUSE  # also of a clock that starts again


def _later(time: float | None, start: float | None) -> float | None:
    """Return a time, or the start of its sentence if a recogniser's times run backwards."""
    return time if time is None or start is None else max(time, start)


def _words(text: str) -> _Words:
    """Return the words of a text without case and punctuation; signs alone are no words."""
    return tuple(bare_words(text))


def _is_punctuated(text: str) -> bool:
    """Whether a word ends with a comma or another mark at which speakers pause."""
    return any(len(word) > 1 and word[-1] in ".,;:!?" for word in text.split()) or any(
        mark in text for mark in "。、，！？…।؟،۔።။၊។៕།༎"
    )


def _is_begun(text: str, other: str) -> bool:
    """Whether one of two texts begins with the words of the other one, and both have words."""
    words, others = _words(text), _words(other)
    count = min(len(words), len(others))
    return count > 0 and words[:count] == others[:count]


def _end_of(text: str, count: int) -> int:
    """Return where the first ``count`` words of a text end, with what belongs to them."""
    ends = [0, *(match.end() for match in WORD.finditer(text) if bare(match[0]))]
    return _behind_marks(text, ends[: count + 1][-1])


def _behind_marks(text: str, end: int) -> int:
    """Return where a word that ends at a place ends with what belongs to it."""
    while end and end < len(text) and _closes(text, end):  # punctuation that is a word of its own, as in Chinese
        end += 1
    return end


def _boundary(cut: str, behind: _Words, text: str) -> int:
    """Return where ``text`` continues behind the beginning of an earlier version of it, which had words behind that."""
    if not cut:
        return 0
    after = text[len(cut) : len(cut) + 1].strip()
    if text.startswith(cut) and not (bare(cut[-1]) and bare(after)):  # it ends where a word does
        return len(cut)
    return _end_of(text, seam(_words(cut), behind, _words(text)))


def _closes(text: str, place: int) -> bool:
    """Whether the character at ``place`` belongs to the sentence before it rather than to the next one."""
    character = text[place]
    if character in "\"'":
        return not text[place - 1].isspace()
    return character.isspace() or (
        unicodedata.category(character) in ("Po", "Pe", "Pf", "Pd") and character not in "¿¡"
    )
