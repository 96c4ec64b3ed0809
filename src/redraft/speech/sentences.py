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

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
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

#: A word at whose end speakers pause, by its mark.
_PUNCTUATED = re.compile(r"\S[.,;:!?](?:\s|$)|[。、，！？…।؟،۔።။၊៕།༎]")


@dataclass(slots=True)
class _Word:
    """A word that is being spoken.

    Attributes:
        bare: it without case and punctuation.
        since: since when it and those before it are unchanged.
        begin: where it begins in the text that was seen last.
        end: where it ends there.
        sure: whether the recogniser has committed it.
        mark: since when a sentence ends behind it; None if none does.
    """

    bare: str
    since: Since
    begin: int = 0
    end: int = 0
    sure: bool = False
    mark: Since | None = None


@dataclass(slots=True)
class _Sentence:
    """The sentence that is being spoken, and what follows it in its utterance.

    Attributes:
        start: its start in seconds.
        last: the newest update of its utterance.
        before: its text in utterances that have ended.
        name: its name as an utterance; empty until there is an update of it.
        seq: number of its next update.
        words: words of `text`.
        cut: the beginning of the utterance's text that is in sentences which have ended; None if none has.
        behind: words behind that, in the last text that had some.
        place: where the last text continues behind the cut.
    """

    start: float | None
    last: Update
    before: str = ""
    name: str = ""
    seq: int = 0
    words: list[_Word] = field(default_factory=list)
    cut: str | None = None
    behind: list[str] = field(default_factory=list)
    place: int = 0

    @property
    def text(self) -> str:
        """Its text, and what follows it."""
        return joined(self.before, self.last.text.strip()[self.place :].lstrip())

    @property
    def committed(self) -> int | None:
        """How many words of `text` the recogniser has committed; None if it does not say."""
        if self.last.committed is None:
            return None
        gone = len(WORD.findall(self.last.text.strip()[: self.place]))
        return len(WORD.findall(self.before)) + max(0, self.last.committed - gone)

    def take(self, update: Update, since: float | None) -> None:
        """Take the next update of the utterance; new words were spoken from ``since`` on, or at its time."""
        if self.cut and not bare_words(self.last.text) and (words := bare_words(update.text)):
            # Words after an empty text are new ones, unless most are those that were there.
            cut = bare_words(self.cut)
            is_begun = common_prefix(cut, words) == min(len(cut), len(words))
            if not is_begun and 2 * in_common([*cut, *self.behind], words) <= len(cut) + len(self.behind):
                self.cut, self.behind = "", []
        self.last, whole = update, update.text.strip()
        if self.cut is not None:
            self.place = _boundary(self.cut, self.behind, whole)
            if behind := bare_words(whole[self.place :]):  # else the recogniser may bring back what is missing
                self.behind = behind
                if len(bare_words(whole[: self.place])) >= len(bare_words(self.cut)):  # nor is that forgotten
                    self.cut = whole[: self.place]
        self._see(self.text, since)

    def _see(self, text: str, since: float | None) -> None:
        found = [match for match in WORD.finditer(text) if bare(match[0])]
        sure = sum(bool(bare(word)) for word in WORD.findall(text)[: self.committed or 0])
        same = common_prefix([word.bare for word in self.words], [bare(match[0]) for match in found])
        time, new, kept = self.last.time, len(found) - same, self.words[:same]
        times = [time] * new
        if time is not None and since is not None:
            times = [since + (time - since) * (place + 1) / new for place in range(new)]
        for word in kept:
            word.since = word.since.again()
        self.words = kept + [_Word(bare(found[same + place][0]), Since(at)) for place, at in enumerate(times)]
        for place, (word, match) in enumerate(zip(self.words, found, strict=True)):
            (word.begin, word.end), word.sure = match.span(), place < sure

    def speech(self, text: str, first: int, last: int, *, settled: bool) -> Speech:
        """Return words of a text for `best_cut`; ``settled`` for words that no longer change anyway."""
        words, begins = self.words[first:last], [each.begin for each in self.words[first + 1 : last + 1]]
        times = [each.since.time or 0.0 for each in self.words[max(0, first - 1) : last]]
        return Speech(
            [each.bare for each in words],
            [text[each.begin : end] for each, end in zip(words, [*begins, len(text)], strict=False)],
            [after - before for before, after in pairwise(times if first else [times[0], *times])],
            [settled or each.sure or each.since.is_settled(self.last.time) for each in words],
        )

    def cut_off(self, end: int, words: int) -> None:
        """Go on behind ``end`` in `text`, which is behind this many of its words."""
        text, whole = self.text, self.last.text.strip()
        start = len(text) - len(whole[self.place :].lstrip())
        left = text[max(start, end) :].lstrip()
        self.before, self.cut = text[end:start].strip(), whole[: len(whole) - len(left)].rstrip()
        self.place, self.behind = len(self.cut), bare_words(left)
        del self.words[:words]


class SentenceCutter:
    """Turns the updates of one recogniser into updates of sentences.

    Args:
        whole: whether utterances are kept as they are, with their names, unless they are too long.  What is cut off
            those goes on as utterance "7.2", "7.3", ...
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        self._order = Order()
        #: The sentence of each utterance that has not ended; and one whose utterance has, and which may go on in the
        #: next one.
        self._open: dict[str, _Sentence] = {}
        self._waiting: _Sentence | None = None
        self._newest = ""
        self._punctuates = False
        #: Time of the latest end of an utterance.
        self._ended = 0.0
        #: Names in use, with the number of the last one that was made from each; "" for sentences.
        self._names: dict[str, int] = {}

    @property
    def since(self) -> float | None:
        """Start in seconds of the oldest sentence that has not ended; None if there is none, or it is unknown."""
        sentences = [*self._open.values(), *filter(None, [self._waiting])]
        return min((each.start for each in sentences if each.start is not None), default=None)

    def update(self, update: Update) -> Iterator[Item]:
        """Yield what an update of the recogniser makes: updates of sentences, or a failure if it is out of order."""
        try:
            self._order.accept(update)
        except InputError as error:
            yield Failure(str(error), None, update.utterance, update.seq)
            return
        self._punctuates = self._punctuates or _PUNCTUATED.search(update.text) is not None
        since = None
        if (sentence := self._open.get(update.utterance)) is None:
            since = self._start(update)
            sentence = yield from self._begin(update, since)
        sentence.take(update, since if update.final else None)
        if self._whole and sentence.cut is None:
            sentence.seq = update.seq
        yield from self._cut(sentence)
        if update.final:
            yield from self._end(sentence)
        elif sentence.text or sentence.name:
            yield self._made(sentence, sentence.text, update.time, committed=sentence.committed)

    def passed(self, time: float) -> Iterator[Update]:
        """Yield the end of a sentence that has waited too long for the next utterance; call this during silence.

        Args:
            time: seconds from the start of the audio.
        """
        if self._waiting is not None and _is_over(self._waiting, time):
            yield from self._close_waiting()

    def finish(self) -> Iterator[Item]:
        """End the stream: yield the end of every sentence."""
        for sentence in list(self._open.values()):
            yield from self.update(finished(sentence.last))
        yield from self._close_waiting()

    def _start(self, update: Update) -> float | None:
        """Return the start of an utterance, which is estimated if its only time is that of its end."""
        if update.start is not None or update.time is None or not update.final:
            return update.begun
        return min(update.time, max(self._ended, update.time - length(bare_words(update.text)) * SECONDS / WORDS))

    def _begin(self, update: Update, start: float | None) -> Generator[Update, None, _Sentence]:
        """Yield the end of the sentence that waits, unless it goes on; return the sentence of an utterance."""
        if (waiting := self._waiting) is not None:
            other = (waiting.last.speaker, waiting.last.language) != (update.speaker, update.language)
            if other or (start is not None and _is_over(waiting, start)):
                yield from self._close_waiting()
        if (waiting := self._waiting) is not None:
            sentence = replace(waiting, before=waiting.text, cut=None, behind=[], place=0)
        else:
            sentence = _Sentence(start, update, name=self._new_name(update.utterance) if self._whole else "")
        self._open[update.utterance] = sentence
        self._waiting, self._newest = None, update.utterance
        return sentence

    def _close_waiting(self) -> Iterator[Update]:
        if (waiting := self._waiting) is not None:
            self._waiting = None
            yield self._made(waiting, waiting.text, waiting.last.time, final=True)

    def _cut(self, sentence: _Sentence) -> Iterator[Update]:
        """Yield the last update of every sentence that has ended or is too long."""
        text, done, gone = sentence.text, 0, 0
        for end, words, seen in self._cuts(sentence, text):
            goes_on = words < len(sentence.words)
            over = _later(seen, sentence.start) if goes_on else sentence.last.time
            yield self._made(sentence, text[done:end].strip(), over, final=True, goes_on=goes_on)
            sentence.start, sentence.name, sentence.seq = over, "", 0
            done, gone = end, words
        if done:
            sentence.cut_off(done, gone)

    def _cuts(self, sentence: _Sentence, text: str) -> Iterator[tuple[int, int, float | None]]:
        """Yield where a text is cut: the place, the number of words before it, and since when they are unchanged."""
        first, final = 0, sentence.last.final
        for end, words in [] if self._whole else self._over(sentence, text):
            if words > first:
                yield from self._clauses(sentence, text, first, words, ended=True)
                yield end, words, sentence.words[words - 1].since.time
                first = words
        yield from self._clauses(sentence, text, first, len(sentence.words), ended=final)

    def _over(self, sentence: _Sentence, text: str) -> list[tuple[int, int]]:
        """Return the sentence ends up to the last one that is settled: the place, and the number of words before it."""
        update, words = sentence.last, sentence.words
        bounds = [each.end for each in words]
        ends = [(end, count) for end in sentence_ends(text) if (count := bisect_right(bounds, end))]
        if ends and update.final and ends[-1][1] == len(words):
            ends[-1] = len(text), len(words)  # with signs that are no words
        marked = {count for _, count in ends}
        for count, word in enumerate(words, 1):
            again = word.mark.again() if word.mark else Since(update.time)
            word.mark = again if count in marked else None
        over = 0
        for number, (end, count) in enumerate(ends, 1):
            mark = words[count - 1].mark
            stands = is_committed(text[:end], sentence.committed) or (mark and mark.is_settled(update.time))
            if update.final or (count < len(words) and stands):
                over = number
        return ends[:over]

    def _clauses(
        self, sentence: _Sentence, text: str, first: int, last: int, *, ended: bool
    ) -> Iterator[tuple[int, int, float | None]]:
        """Yield where words are cut because there are too many of them, as `_cuts`.

        Args:
            first: number of words before them.
            last: number of words up to the last of them.
            ended: whether they no longer change.
        """
        since = sentence.words[first - 1].since.time if first else sentence.start
        while self._is_long(sentence, first, near := min(last, first + _NEAR), since, ended=ended):
            count = best_cut(sentence.speech(text, first, near, settled=ended), WORDS, ended=ended)
            if count is None:
                return
            first += count
            before = sentence.words[first - 1]
            since = before.since.time
            yield _behind_marks(text, before.end), first, since

    def _is_long(self, sentence: _Sentence, first: int, last: int, since: float | None, *, ended: bool) -> bool:
        words, time = length([each.bare for each in sentence.words[first:last]]), sentence.last.time
        times = _KEPT if self._whole and not (first or sentence.cut is not None) else 1
        seconds = 0.0 if ended or since is None or time is None else time - since
        return words > times * WORDS or (seconds > times * SECONDS and words > 2 * SHORTEST)

    def _end(self, sentence: _Sentence) -> Iterator[Update]:
        """Yield the last update of the sentence at the end of an utterance; unless the next one may continue it."""
        text, time, utterance = sentence.text, sentence.last.time, sentence.last.utterance
        del self._open[utterance]
        self._ended = max(self._ended, time or 0.0)
        words = length([each.bare for each in sentence.words])
        seconds = 0.0 if time is None or sentence.start is None else time - sentence.start
        alone = not self._open and self._newest == utterance
        if self._punctuates and alone and 0 < words < WORDS and seconds < SECONDS and not self._whole:
            self._waiting = sentence
            yield self._made(sentence, text, time)
        elif text or sentence.name:
            yield self._made(sentence, text, time, final=True)

    def _made(
        self,
        sentence: _Sentence,
        text: str,
        time: float | None,
        *,
        final: bool = False,
        committed: int | None = None,
        goes_on: bool = False,
    ) -> Update:
        """Return the next update of a sentence, not before its start."""
        last, start = sentence.last, sentence.start
        sentence.name = sentence.name or self._new_name(last.utterance)
        about = last.speaker, committed, goes_on, last.language, start
        made = Update(sentence.name, sentence.seq, text, final, _later(time, start), *about)
        sentence.seq += 1
        return made

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
    for item in items:
        yield from [item] if isinstance(item, Failure) else sentences.update(item)
    yield from sentences.finish()


def _is_over(waiting: _Sentence, time: float) -> bool:
    paused = waiting.last.time
    return paused is not None and abs(time - paused) > LONG_PAUSE  # also of a clock that starts again


def _later(time: float | None, start: float | None) -> float | None:
    """Return a time, or the start of its sentence if a recogniser's times run backwards."""
    return time if time is None or start is None else max(time, start)


def _boundary(cut: str, behind: list[str], text: str) -> int:
    """Return where ``text`` continues behind the beginning of an earlier version of it, which had words behind that."""
    if not cut:
        return 0
    after = text[len(cut) : len(cut) + 1].strip()
    if text.startswith(cut) and not (bare(cut[-1]) and bare(after)):  # it ends where a word does
        return len(cut)
    ends = [0, *(match.end() for match in WORD.finditer(text) if bare(match[0]))]
    return _behind_marks(text, ends[seam(bare_words(cut), behind, bare_words(text))])


def _behind_marks(text: str, end: int) -> int:
    """Return where a word that ends at a place ends with the spaces and signs that belong to it.

    In Chinese, for example, signs are words of their own.
    """
    while 0 < end < len(text):
        sign = text[end]
        if sign in "\"'":
            belongs = not text[end - 1].isspace()
        else:
            belongs = sign.isspace() or (unicodedata.category(sign) in ("Po", "Pe", "Pf", "Pd") and sign not in "¿¡")
        if not belongs:
            break
        end += 1
    return end
