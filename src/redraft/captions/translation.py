"""A stream of updates, translated into a language, without I/O, engine or clock.

A `Translation` takes an `Update` and returns a generator; a driver (`redraft.decoding.drive`) runs it, together with
those of other languages and streams, and returns the events.  Between updates it keeps the ids of the previous output,
never its text.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from redraft.captions.answer import OutputReader
from redraft.captions.capitals import Capitals
from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.hold_back import LONGEST, LONGEST_UPDATES, HoldBack
from redraft.captions.markup import echoes
from redraft.captions.sentence import as_sentence, ends_sentence
from redraft.captions.settings import PLAIN, Settings, Vocabulary, Writing
from redraft.captions.stabilise import stabilise, whole_words
from redraft.captions.words import bare_words, behind, has_words
from redraft.decoding.beam import BIASED, Beam, beam_width
from redraft.decoding.decode import decode
from redraft.decoding.display import Confirmed
from redraft.decoding.loops import longest_output, out_of_loops
from redraft.decoding.method import Setup
from redraft.decoding.rules.biased import KEEPS_ALL
from redraft.decoding.rules.exact import Exact
from redraft.decoding.types import (
    NOTHING_BARRED,
    Asking,
    Barred,
    Draft,
    Drafter,
    Output,
    Prompt,
    Rule,
    Tally,
    biases_of,
    common_prefix,
)

#: ``encode(source, context)`` returns a prompt; ``context`` holds earlier (source, translation) pairs, oldest first.
Encode = Callable[[str, Sequence[tuple[str, str]]], Prompt]


#: Commas, at the end of a sentence that stops short.
_COMMAS = (",", "，", "、")
#: Error message for a final text with words but no output.
EMPTY = (
    "the translation is empty although the text has words: the model ended it at once; "
    "send the utterance with more words, or use another model"
)


#: Error message for a translation that is the text.
REPEATED = "the model repeats the text instead of translating it: use another model, or another prompt (--prompt)"
#: Fewest words without a capital of a text that is not taken for names and numbers if its translation is the same.
LEAST_REPEATED = 4


class Translation:
    """One target language of a stream: its previous output, earlier sentences and counts."""

    def __init__(
        self, language: str, encode: Encode, vocabulary: Vocabulary, settings: Settings, writing: Writing = PLAIN
    ) -> None:
        self.language, self.tally = language, Tally()
        self._encode, self._vocabulary, self._settings, self._writing = encode, vocabulary, settings, writing
        self._earlier: list[tuple[str, str]] = []
        self._memory: dict[type, object] = {}
        self._hold_back, self._capitals = HoldBack(settings.hold_back), Capitals()
        self._update: Update | None = None
        #: Whether words would wait too long for the next translation: updates were passed over, for `LONGEST`.
        self._is_slow = False
        self._reported = self._misspelt = False
        #: Ids of what the last output had behind the final one, for the next utterance: a draft, and what was shown.
        self._behind: tuple[tuple[int, ...], tuple[int, ...]] = (), ()
        self._forget()

    def _forget(self) -> None:
        self._prompt = Prompt()
        self._reader = self._read("")
        self._last = Output((), True)
        self._limit = 0
        self._draft: tuple[int, ...] = ()
        self._shown: tuple[int, ...] = ()
        #: The last outputs for different sources, as many as must agree with the next one.
        self._outputs: tuple[tuple[int, ...], ...] = ()
        #: Number of tokens of the latest output on which outputs agree; None if all of it may be shown.
        self._confirmed: int | None = None
        #: Time of the update whose source was decoded last, and number of updates since.
        self._since: tuple[float | None, int] = (None, 0)

    @property
    def prompt(self) -> tuple[int, ...]:
        """Ids of the latest prompt."""
        return self._prompt.ids

    @property
    def output(self) -> tuple[int, ...]:
        """Ids of the latest output."""
        return self._last.tokens

    @property
    def finished(self) -> bool:
        """Whether the model ended the latest output."""
        return self._last.finished

    @property
    def _is_endless(self) -> bool:
        """Whether the latest output was cut at the limit; one cut as a loop is shorter."""
        return not self._last.finished and len(self._last.tokens) >= self._limit

    def translate(self, update: Update) -> Asking[list[Event]]:
        """Translate one update: yields requests for scores, returns the events, failures first.

        If the utterance before was not final, the words of it that were held back come first.
        """
        update = replace(update, text=self._capitals.lowered(update.text))
        before: list[Event] = []
        if self._update is not None and update.utterance == self._update.utterance:
            passed_over, since = update.seq - self._update.seq > 1, self._since[0]
            if since is not None and update.time is not None:
                self._is_slow = passed_over and update.time - since >= LONGEST
        else:
            before = yield from self.rest()
            self._reported = False
            self._forget()
            if self._hold_back.begin(update.text):
                self._draft, self._shown = self._behind
                self._outputs = (self._draft,) if self._draft else ()
            self._behind = (), ()
        self._update = update
        draft, shown = (self._draft, self._shown) if self._last.finished else ((), ())
        part = self._hold_back.part(update.text, update.time, final=update.final)
        events = yield from self._translate(update, part)
        if self._hold_back.cut and update.final:
            end = behind(self._last.tokens, draft)
            self._behind = self._begun(draft[end:]), self._begun(shown[end:])
        elif self._hold_back.cut:
            self._draft, self._shown = draft, shown  # the rest of it is that of the next sentence
        return [*before, *events]

    def _begun(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return the ids of the same text at the beginning of an output."""
        tokenize, token_bytes = self._vocabulary.tokenize, self._vocabulary.token_bytes
        text = b"".join(map(token_bytes, ids)).decode(errors="ignore").strip()
        return as_output(text, self._last.tokens, tokenize, token_bytes)

    def rest(self) -> Asking[list[Event]]:
        """Translate the words of the latest update that were held back, and show all of its translation.

        Call this at the end of a stream, and when no update has come for a while: there may be no further output to
        agree with.  Returns nothing if nothing was held back or hidden.
        """
        if self._update is None or not (self._hold_back.held or self._hides):
            return []
        if self._hold_back.held:
            events = yield from self._translate(self._update, self._hold_back.whole(), waited=True)
            self._hold_back.release()
            return events
        return [self._caption(self._update, remember=False, waited=True)]

    @property
    def _hides(self) -> bool:
        """Whether tokens of the latest output wait for another one that agrees."""
        return self._confirmed is not None and len(self._shown) < len(self._last.tokens)

    def _translate(self, update: Update, part: str, *, waited: bool = False) -> Asking[list[Event]]:
        text = as_sentence(part, self._vocabulary.final_mark) if update.final else part
        prompt = self._prompt_for(text)
        length = len(prompt.encoder) or len(prompt.ids)
        fits = max(length, len(prompt.ids) + 1) <= self._vocabulary.context_length
        failures: list[Event] = []
        if not fits:
            failures.append(self._overflow(update, length))
        elif not prompt.ids:
            self._forget()
        elif prompt != self._prompt or (update.final and self._settings.final != BIASED):
            # An unchanged source needs no pass.
            before = self._reader, self._last
            yield from self._decode(prompt, text, update.final)
            if update.final and self._stands_still(*before):
                self.tally.reopened += 1
                yield from self._decode(prompt, text, True, unseen=True)
            waited = waited or self._is_slow
            self._since = update.time, 0
        else:
            self._since = self._since[0], self._since[1] + 1
            waited = waited or self._has_waited(update)
        if update.final and fits and has_words(text):
            yield from self._reopened(text)
        if not self._last.finished and (update.final or not self._reported):
            self._reported = True
            failures.append(self._runaway(update))
        # A source that is too long gets no caption, but a final update still ends its utterance with the last caption.
        if not (fits or update.final):
            return failures
        caption = self._caption(update, remember=fits, waited=waited)
        if caption.final and not caption.text and has_words(text):
            return failures or [self._failure(update, self._unanswered)]
        if caption.final and not self._misspelt and (problem := self._problem(caption.text, text)):
            self._misspelt = True  # once in a stream
            failures.append(self._failure(update, problem))
        return [*failures, caption]

    def _problem(self, translation: str, text: str) -> str:
        """Return what is wrong with a final translation as such; empty if nothing."""
        words = [word for word in text.split() if word[0].isalpha() and not word[0].isupper()]
        if len(words) >= LEAST_REPEATED and echoes(translation, text):
            return REPEATED
        return self._writing.problem(translation)

    def _has_waited(self, update: Update) -> bool:
        """Whether the source has stayed the same for so long that its translation need not wait for another one."""
        since, updates = self._since
        if since is None or update.time is None:
            return updates >= LONGEST_UPDATES
        return update.time - since >= LONGEST

    def _prompt_for(self, text: str) -> Prompt:
        """Return the prompt with the newest earlier sentences that leave room for a translation."""
        if not text.strip():
            return Prompt()
        length = self._vocabulary.context_length
        room = min(self._settings.max_tokens, length // 2)
        for dropped in range(len(self._earlier)):
            prompt = self._encode(text, self._earlier[dropped:])
            if max(len(prompt.ids), len(prompt.encoder)) + room <= length:
                return prompt
        return self._encode(text, ())

    def _reopened(self, text: str) -> Asking[None]:
        """Decode a final text again if the model has answered it with nothing, or with less than a sentence."""
        if not has_words(self._written) and self._earlier:
            # without earlier sentences, which may have been taken for the text
            yield from self._decode(self._encode(text, ()), text, True)
        if not has_words(self._written):
            # Small models end the translation of a short text at once, or after a mark or a space, often with a
            # probability of less than half.
            first, self.tally.reopened = self._last, self.tally.reopened + 1
            yield from self._decode(self._prompt, text, True, barred={0: self._ends.union(first.tokens[:1])})
            if not has_words(self._text):
                self._last = first
        elif self._stops_short(text):
            first, place = self._last, len(self._last.tokens)
            attempts = [{place: self._ends}]
            if self._text.endswith(_COMMAS):  # a full stop in its place is nearer than what might follow
                attempts.insert(0, {place - 1: self._ends | {first.tokens[-1]}})
            for barred in attempts:
                self.tally.reopened += 1
                yield from self._decode(self._prompt, text, True, barred=barred)
                if self._last.finished and not self._stops_short(text):
                    return
            self._last = first

    def _stands_still(self, reader: OutputReader, last: Output) -> bool:
        """Whether the source has more words than before and the same translation, only because people have seen that.

        Speech goes on, and an old full stop that is biased towards ends the new sentence too early.  A bias that keeps
        all that was shown (0.5 and above) is meant to.

        Args:
            reader: that of the source before.
            last: its output.
        """
        grew = 0 < len(bare_words(reader.source)) < len(bare_words(self._reader.source))
        if not grew or bare_words(_text(reader, last)) != (words := bare_words(self._text)) or not words:
            return False
        _, rule = self._parts_of_final(self._reader, self._draft, len(self._shown))
        seen, unseen = (biases_of(rule, Draft.previous(self._draft, shown)) for shown in (len(self._shown), 0))
        return seen != unseen and max(seen or (0.0,)) < KEEPS_ALL

    def _stops_short(self, text: str) -> bool:
        """Whether the latest output lacks the end of a sentence that the text has.

        Models that were trained on beginnings of sentences take some sentences for the beginning of one.
        """
        marked = self._vocabulary.final_mark and self._last.finished and ends_sentence(text)
        return bool(marked) and not ends_sentence(self._text)

    @property
    def _written(self) -> str:
        """All of the latest output."""
        return b"".join(map(self._vocabulary.token_bytes, self._last.tokens)).decode(errors="ignore").strip()

    @property
    def _unanswered(self) -> str:
        """Error message for a final text with words but no translation."""
        if not self._written:
            return EMPTY
        return f"the model wrote no translation, but {reprlib.repr(self._written)}; use another model"

    @property
    def _text(self) -> str:
        """The text of the latest output, without space around it."""
        return _text(self._reader, self._last)

    @property
    def _ends(self) -> frozenset[int]:
        """Ids that end an output."""
        return self._vocabulary.end_tokens | self._vocabulary.breaks.ends

    def _read(self, source: str) -> OutputReader:
        return OutputReader(source, self._vocabulary.breaks, self._vocabulary.token_bytes, self.language)

    def _decode(
        self, prompt: Prompt, text: str, final: bool, barred: Barred = NOTHING_BARRED, *, unseen: bool = False
    ) -> Asking[None]:
        """Decode a source; if ``unseen``, as though the reader had seen nothing of the last output."""
        vocabulary, settings = self._vocabulary, self._settings
        reader = self._read(text)
        limit = min(settings.max_tokens, vocabulary.context_length - len(prompt.ids), longest_output(prompt))
        watches = settings.display.agree > 1 and not final

        def attempt(draft: tuple[int, ...], barred: Barred) -> Asking[tuple[Output, Confirmed | None]]:
            shown = 0 if unseen else common_prefix(self._shown, draft)
            drafter, rule = self._parts_of_final(reader, draft, shown) if final else self._built()
            watched = Confirmed(rule, self._agreed, settings.display.lead) if watches else None
            output = yield from decode(
                prompt.ids,
                drafter,
                watched or rule,
                previous=draft,
                shown=shown,
                source_ids=prompt.source_ids,
                encoder=prompt.encoder,
                selection=prompt.selection,
                barred=barred,
                end_tokens=vocabulary.end_tokens,
                line_end=reader.end,
                limit=limit,
                stop_loops=True,
            )
            return output, watched

        # An output cut as a loop would be accepted whole and loop again, so a final update is decoded without it.
        draft = () if final and not self._last.finished else self._draft
        output, watched = yield from out_of_loops(attempt, draft, barred)
        self.tally.add(output)
        self._prompt, self._reader, self._last, self._limit = prompt, reader, output, limit
        self._confirmed = None if watched is None else watched.count
        if watches:
            self._outputs = (*self._outputs, output.tokens)[1 - settings.display.agree :]

    @property
    def _agreed(self) -> tuple[int, ...]:
        """What the outputs before the next one agree on; nothing if there are too few."""
        enough = len(self._outputs) == self._settings.display.agree - 1
        return reduce(_common, self._outputs) if enough else ()

    def _built(self) -> tuple[Drafter, Rule]:
        """Return the method's drafter and rule for one decoding."""
        vocabulary, settings = self._vocabulary, self._settings
        pad, trees = vocabulary.pad_token, vocabulary.trees
        return settings.method.build(Setup(settings.options, self._ends, pad, self._memory, settings.curve(), trees))

    def _parts_of_final(self, reader: OutputReader, draft: tuple[int, ...], shown: int) -> tuple[Drafter, Rule]:
        """Return drafter and rule for a final text."""
        drafter, rule = self._built()
        width = beam_width(self._settings.final)
        if width > 1:
            towards = biases_of(rule, Draft.previous(draft, shown)) or ()
            beam = Beam(width, self._vocabulary.end_tokens, self._vocabulary.breaks.ends, reader.end, towards)
            return beam, beam
        return drafter, Exact() if width else rule

    def _caption(self, update: Update, *, remember: bool, waited: bool = False) -> Caption:
        if waited:
            self._confirmed = None
        pieces = self._reader.pieces(self._last.tokens)
        standing = common_prefix(self._shown, self._last.tokens)
        if standing < len(self._shown):  # no part of a word that has changed
            standing = whole_words(pieces, standing)
        view = stabilise(
            pieces, self._settings.display, final=update.final, confirmed=self._confirmed, standing=standing
        )
        shown, hidden = map(self._writing.convert, (view.shown, view.hidden))
        self._shown = self._last.tokens[: view.shown_length]
        # An output that reached its limit is no draft, since biased acceptance would keep its endless tail.
        self._draft = () if self._is_endless else self._last.tokens[: view.draft_length]
        # A token that ends the line would end the next output too, where drafts are accepted as they are.
        if self._draft[-1:] and self._draft[-1] in self._vocabulary.breaks.within:
            self._draft = self._draft[:-1]
        if update.final:
            if remember and self._last.finished:
                self.remember(update.text, shown)
            self._update = None
        return Caption(
            update.utterance,
            update.seq,
            self.language,
            shown,
            hidden,
            update.final,
            update.time,
            update.text,
            cut=not self._last.finished,
            speaker=update.speaker,
        )

    def remember(self, source: str, translation: str) -> None:
        """Add a sentence and its translation to the context of later prompts.

        A translation that is the sentence itself is left out: after one example of it, chat models repeat all others.
        """
        if self._settings.context and source.strip() and translation and not echoes(translation, source):
            pair = as_sentence(source, self._vocabulary.final_mark), translation
            self._earlier = [*self._earlier, pair][-self._settings.context :]

    def _overflow(self, update: Update, length: int) -> Failure:
        room = self._vocabulary.context_length
        message = (
            f"the source is too long: its prompt has {length} tokens and the context length is {room}; "
            "end the utterance earlier or raise the context length"
        )
        return self._failure(update, message)

    def _runaway(self, update: Update) -> Failure:
        tokens = len(self._last.tokens)
        if not self._is_endless:
            message = f"the translation was cut after {tokens} tokens, since from there on the model repeats itself"
        elif self._limit < longest_output(self._prompt):
            message = (
                f"the translation was cut at {tokens} tokens, the most that are allowed: "
                "end the utterance earlier, or raise the maximum tokens or the context length"
            )
        else:
            message = f"the translation was cut at {tokens} tokens, since the model did not end it"
        return self._failure(update, message)

    def _failure(self, update: Update, message: str) -> Failure:
        return Failure(message, None, update.utterance, update.seq, self.language)


def _common(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return first[: common_prefix(first, second)]


def as_output(
    text: str,
    like: Sequence[int],
    tokenize: Callable[[str], Sequence[int]],
    token_bytes: Callable[[int], bytes],
) -> tuple[int, ...]:
    """Return the ids of a text at the beginning of an output, after a space if the output ``like`` begins with one."""
    ids = tokenize(text) if text else ()
    spaced = [token_bytes(each[0]).startswith(b" ") for each in (like, ids) if each]
    return tuple(tokenize(f" {text}") if spaced == [True, False] else ids)


def _text(reader: OutputReader, output: Output) -> str:
    return b"".join(reader.pieces(output.tokens)).decode(errors="ignore").strip()
