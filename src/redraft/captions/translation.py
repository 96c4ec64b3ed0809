"""A stream of updates, translated into a language, without I/O, engine or clock.

A `Translation` is a function: from a `State` and an `Update` to events and the next `State`.  It is a generator, which
a driver (`redraft.decoding.drive`) runs together with those of other languages and streams.  Nothing changes while a
pass runs: a driver keeps both results, or, if a pass fails or the update is abandoned, neither.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce

from redraft.captions.align import seam
from redraft.captions.answer import OutputReader, echoes
from redraft.captions.ending import LONG_PAUSE, Since, is_committed
from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.finals import Flaw, Way, flaw_of, is_better, repeats, stops_short
from redraft.captions.sentence import as_sentence
from redraft.captions.settings import PLAIN, Settings, Vocabulary, Writing
from redraft.captions.stabilise import stabilise, whole_words
from redraft.captions.state import Decoded, Ids, State
from redraft.captions.words import has_words
from redraft.decoding.decode import decode
from redraft.decoding.ends import longest_output, out_of_loops
from redraft.decoding.followers import Certainty, Weighing
from redraft.decoding.method import Setup
from redraft.decoding.methods.beam import Beam
from redraft.decoding.rules import Exact
from redraft.decoding.search import DOUBTFUL
from redraft.decoding.types import (
    NOTHING_BARRED,
    Asking,
    Barred,
    Declined,
    Drafter,
    Output,
    Prompt,
    Rule,
    Spare,
    common_prefix,
    counted,
)
from redraft.errors import OptionError

#: ``encode(source, context, language)`` returns a prompt; ``context`` holds earlier (source, translation) pairs, oldest
#: first.  ``language`` is that of the source, None if only one is spoken.  The prompt is empty if a source needs no
#: translation, because it is in the target language.  Raises `OptionError` for a language that the model does not have.
Encode = Callable[[str, Sequence[tuple[str, str]], str | None], Prompt]
#: What an update gives: its events, failures first, and the next state.
Answered = tuple[list[Event], State]

#: Commas, at the end of a sentence that stops short.
_COMMAS = (",", "，", "、")
#: Error message for a final text with words but no output.
EMPTY = (
    "the translation is empty although the text has words: the model ended it at once; "
    "send the utterance with more words, or use another model"
)
#: Error message for a translation that is the text.
REPEATED = "the model repeats the text instead of translating it: use another model, or another prompt (--prompt)"


@dataclass(frozen=True, slots=True)
class _Decoding:
    """How a text is decoded.

    Attributes:
        whole: whether the output is decoded to its end; final texts always are.
        way: how a final text is decoded.
    """

    text: str
    final: bool = False
    whole: bool = False
    way: Way = Way.METHOD


@dataclass(frozen=True, slots=True)
class Translation:
    """How a stream is translated into a language; it keeps nothing between two updates."""

    language: str
    encode: Encode
    vocabulary: Vocabulary
    settings: Settings
    writing: Writing = PLAIN

    def translate(self, state: State, update: Update) -> Asking[Answered]:
        """Translate one update: yields requests for scores, returns the events and the next state.

        If it leaves another utterance (`State.left_by`), have the `rest` of that first: nothing of it is shown later.
        """
        capitals, text = state.capitals.lowered(update.text)
        state, update = replace(state, capitals=capitals), replace(update, text=text)
        if state.update is None or update.utterance != state.update.utterance:
            state = _begun(state)
        else:
            state = replace(state, is_slow=_is_slow(state, update))
        draft, shown = ((), ()) if state.decoded.output.cut else (state.draft, state.shown)
        ending = state.ending.after(text, committed=update.committed, goes_on=update.goes_on)
        state = replace(state, update=update, ending=ending)
        events, state = yield from self._answered(state, update)
        if state.ending.left and update.final:
            end = seam(state.output, (), draft)
            rest = self._begun(draft[end:], state.output), self._begun(shown[end:], state.output)
            state = replace(state, behind=rest)
        elif state.ending.left:  # the rest of it is that of the next sentence
            state = replace(state, draft=draft, shown=shown)
        return events, replace(state, update=None if update.final else update)

    def rest(self, state: State) -> Asking[Answered]:
        """Show all of the translation of an unfinished utterance, and decode what is missing of it.

        Run this at the end of a stream, before the next utterance, and when no update has come for a while: there may
        be no further output to agree with.  Returns no events if everything is shown.
        """
        if state.update is None or not state.hides:
            return [], state
        return (yield from self._answered(state, state.update, is_rest=True))

    def failed(self, state: State, update: Update) -> State:
        """Return the state after an update whose translation failed, or the rest before it.

        A final update ends its utterance all the same, and one of another utterance the one before.
        """
        if state.update is None or (state.update.utterance == update.utterance and not update.final):
            return state
        return replace(_cleared(state), update=None)

    def remember(self, state: State, source: str, translation: str, language: str | None = None) -> State:
        """Add a sentence and its translation to the context of later prompts.

        A translation that is the sentence itself is left out: after one example of it, chat models repeat all others.
        """
        if not (self.settings.context and has_words(source) and translation) or echoes(translation, source):
            return state
        sentence = as_sentence(source, self.vocabulary.final_mark), translation, language
        return replace(state, earlier=(*state.earlier, sentence)[-self.settings.context :])

    def _begun(self, ids: Sequence[int], like: Ids) -> Ids:
        """Return the ids of the same text at the beginning of an output."""
        tokenize, token_bytes = self.vocabulary.tokenize, self.vocabulary.token_bytes
        text = b"".join(map(token_bytes, ids)).decode(errors="ignore").strip()
        return as_output(text, like, tokenize, token_bytes)

    def _answered(self, state: State, update: Update, *, is_rest: bool = False) -> Asking[Answered]:
        text = as_sentence(update.text, self.vocabulary.final_mark) if update.final else update.text
        prompt, problem = self._asked(state, text, update.language)
        shows_all, fits, as_it_is = False, not problem, not (problem or prompt.ids)
        if as_it_is:
            state = _cleared(state)
        elif fits:
            state, shows_all = yield from self._decoded(state, update, prompt, text, is_rest)
            problem = _runaway(state.decoded) if state.decoded.output.cut else ""
        failures: list[Event] = []
        if problem and (update.final or not state.reported):
            failures.append(self._failure(update, problem))
            state = replace(state, reported=True)
        # A source without a prompt gets no caption, but a final update still ends its utterance with the last caption.
        if not (fits or update.final):
            return failures, state
        caption, state = self._caption(state, update, shows_all=shows_all, as_it_is=as_it_is)
        if not caption.final:
            return [*failures, caption], state
        if not caption.text and has_words(text):
            return failures or [self._failure(update, _unanswered(state.decoded))], state
        problem = REPEATED if repeats(caption.text, text) else self.writing.problem(caption.text)
        if problem and not (as_it_is or state.misspelt):
            failures.append(self._failure(update, problem))
            state = replace(state, misspelt=True)  # once in a stream
        if fits and state.decoded.output.finished:
            state = self.remember(state, update.text, caption.text, update.language)
        return [*failures, caption], state

    def _decoded(
        self, state: State, update: Update, prompt: Prompt, text: str, is_rest: bool
    ) -> Asking[tuple[State, bool]]:
        """Decode the text if that may change anything; return whether all of the output is shown, too."""
        before, final = state.decoded, update.final
        changed = prompt != before.prompt
        if is_rest:
            pauses = True
        elif changed:
            pauses, state = False, replace(state, since=Since(update.time, 0))
        else:
            state = replace(state, since=state.since.again(update.time))
            pauses = state.since.is_settled(update.time)
            if before.confirmed is not None and is_committed(update.text, update.committed):
                state = replace(state, decoded=replace(before, confirmed=max(before.confirmed, before.certain)))
        how = _Decoding(text, final, whole=final or pauses)
        # An unchanged source needs no pass, unless its output was stopped, or candidates are to be compared with it.
        if changed or (final and self.settings.searches) or (how.whole and before.output.stopped):
            own = yield from self._decode(state, prompt, how)
            state = (yield from self._chosen(state, own, how)) if final else own
        if final:
            state = yield from self._repaired(state, how)
        return state, pauses or (changed and state.is_slow)

    def _asked(self, state: State, text: str, language: str | None) -> tuple[Prompt, str]:
        """Return the prompt, and why it cannot be used; empty if it can."""
        try:
            prompt = self._prompt_for(state, text, language)
        except OptionError as error:
            return Prompt(), str(error)
        length = len(prompt.encoder) or len(prompt.ids)
        fits = max(length, len(prompt.ids) + 1) <= self.vocabulary.context_length
        return prompt, "" if fits else (
            f"the source is too long: its prompt has {length} tokens and the context length is "
            f"{self.vocabulary.context_length}; end the utterance earlier or raise the context length"
        )

    def _prompt_for(self, state: State, text: str, language: str | None) -> Prompt:
        """Return the prompt with the newest earlier sentences in its language that leave room for a translation.

        It is empty for texts without words: models answer a lone mark with words of their own.
        """
        if not has_words(text):
            return Prompt()
        length = self.vocabulary.context_length
        room = min(self.settings.max_tokens, length // 2)
        earlier = [(source, translation) for source, translation, theirs in state.earlier if theirs == language]
        for dropped in range(len(earlier)):
            prompt = self.encode(text, earlier[dropped:], language)
            if max(len(prompt.ids), len(prompt.encoder)) + room <= length:
                return prompt
        return self.encode(text, (), language)

    # Candidates for final texts

    def _chosen(self, start: State, own: State, how: _Decoding) -> Asking[State]:
        """Return the state with the best translation of a final text.

        Args:
            start: the state before the final text.
            own: the state with the method's own output for it.
        """
        search, first, likelihood = self.settings.search, own.decoded, own.decoded.output.likelihood
        if search is None or likelihood is None:
            return own
        mark = self.vocabulary.final_mark
        flaw = flaw_of(first, start.decoded, first, mark)
        length = len(first.output.tokens)
        seconds = search.seconds * (DOUBTFUL if likelihood.given_up > search.doubt else 1)
        # A search has a pass for each token, and one to begin with; what no bias has changed is the exact output.
        ways = []
        if (width := min(search.hypotheses, self.vocabulary.hypotheses)) > 1:
            ways.append((Way.BEAM, Spare(seconds, length + 2, width), 0.0))
        if likelihood.given_up:
            ways.append((Way.EXACT, Spare(seconds, length - likelihood.first + 2), search.margin))
        best = own
        for way, spare, margin in ways:
            needed = flaw is Flaw.STILL and way is Way.EXACT
            if not (seconds or needed):
                continue
            draft = first.output.tokens if way is Way.EXACT else start.draft
            begun = replace(start, draft=draft, tally=best.tally)
            asking = self._decode_again(begun, first.prompt, replace(how, way=way))
            try:
                found, _asked = yield from counted(asking, None if needed else spare)
            except Declined:
                continue
            theirs = flaw_of(found.decoded, start.decoded, first, mark)
            wins = is_better(found.decoded, best.decoded, (theirs, flaw), margin)
            best, flaw = (found, theirs) if wins else (replace(best, tally=found.tally), flaw)
        return best

    def _decode_again(
        self, state: State, prompt: Prompt, how: _Decoding, barred: Barred = NOTHING_BARRED
    ) -> Asking[State]:
        """Decode a further candidate."""
        tally = replace(state.tally, reopened=state.tally.reopened + 1)
        return (yield from self._decode(replace(state, tally=tally), prompt, how, barred))

    def _repaired(self, state: State, how: _Decoding) -> Asking[State]:
        """Decode a final text again if the model has answered it with nothing, or with less than a sentence."""
        if not has_words(state.decoded.written) and state.earlier:
            # without earlier sentences, which may have been taken for the text
            language = state.update.language if state.update else None
            state = yield from self._decode(state, self.encode(how.text, (), language), how)
        first, prompt, mark = state.decoded, state.decoded.prompt, self.vocabulary.final_mark
        if not has_words(first.written):
            # Small models end the translation of a short text at once, or after a mark or a space, often with a
            # probability of less than half.
            barred = {0: self._ends.union(first.output.tokens[:1])}
            state = yield from self._decode_again(state, prompt, how, barred)
            return state if has_words(state.decoded.text) else replace(state, decoded=first)
        if not stops_short(state.decoded, mark):
            return state
        state = replace(state, draft=first.output.tokens)
        place = len(first.output.tokens)
        attempts = [{place: self._ends}]
        if first.text.endswith(_COMMAS):  # a full stop in its place is nearer than what might follow
            attempts.insert(0, {place - 1: self._ends | {first.output.tokens[-1]}})
        for barred in attempts:
            state = yield from self._decode_again(state, prompt, how, barred)
            if state.decoded.output.finished and not stops_short(state.decoded, mark):
                return state
        return replace(state, decoded=first)

    @property
    def _ends(self) -> frozenset[int]:
        """Ids that end an output."""
        return self.vocabulary.end_tokens | self.vocabulary.breaks.ends

    # One decoding

    def _decode(self, state: State, prompt: Prompt, how: _Decoding, barred: Barred = NOTHING_BARRED) -> Asking[State]:
        vocabulary, settings = self.vocabulary, self.settings
        reader = OutputReader(how.text, vocabulary.breaks, vocabulary.token_bytes, self.writing.labels)
        memory = {kind: copy(each) for kind, each in state.memory.items()}
        limit = min(settings.max_tokens, vocabulary.context_length - len(prompt.ids), longest_output(prompt))

        def attempt(draft: Ids, barred: Barred) -> Asking[tuple[Output, Certainty | None]]:
            drafter, rule = self._parts(how, memory)
            certainty = self._certainty(state, how)
            weighing = Weighing()
            output = yield from decode(
                prompt,
                drafter,
                rule,
                previous=draft,
                shown=common_prefix(state.shown, draft),
                barred=barred,
                end_tokens=vocabulary.end_tokens,
                line_end=reader.end,
                limit=limit,
                stop_loops=True,
                follow=certainty.follow if certainty else weighing.follow if how.final else None,
            )
            weighed = drafter if isinstance(drafter, Beam) else weighing
            likelihood = weighed.of(len(output.tokens), finished=output.finished)
            return replace(output, likelihood=likelihood), certainty

        output, certainty = yield from out_of_loops(attempt, state.draft, barred)
        outputs, confirmed, certain, agree = state.outputs, None, 0, settings.display.agree
        if certainty:
            # An output that was cut is no evidence for another one, nor for itself.
            confirmed, certain = certainty.count, certainty.certain
            if output.cut:
                confirmed = certain = certainty.agreed
            others = outputs[:-1] if prompt == state.decoded.prompt else outputs
            outputs = outputs if output.cut else (*others, output.tokens)[1 - agree :]
        return replace(
            state,
            decoded=Decoded(prompt, reader, output, confirmed, certain),
            outputs=outputs,
            memory=memory,
            tally=state.tally.plus(output) if how.way is Way.METHOD else state.tally.searched(output),
        )

    def _certainty(self, state: State, how: _Decoding) -> Certainty | None:
        """Return what decides how much of an output is shown, and where it ends; None if all of it is shown."""
        display, stop = self.settings.display, 0.0 if how.whole else self.settings.stop
        if how.final or display.agree == 1:
            return None
        # What the outputs before this one agree on; nothing if there are too few.
        enough = len(state.outputs) == display.agree - 1
        known = reduce(lambda one, other: one[: common_prefix(one, other)], state.outputs) if enough else ()
        return Certainty(known, display.first_sight, stop, state.ending.trust)

    def _parts(self, how: _Decoding, memory: dict[type, object]) -> tuple[Drafter, Rule]:
        """Return drafter and rule for one decoding."""
        vocabulary, settings = self.vocabulary, self.settings
        setup = Setup(settings.options, vocabulary.end_tokens, vocabulary.pad_token, memory, vocabulary.breaks.ends)
        drafter, rule = settings.method.build(setup)
        if how.way is Way.BEAM and settings.search:
            width = min(settings.search.hypotheses, vocabulary.hypotheses)
            beam = Beam(width, vocabulary.end_tokens, vocabulary.breaks.ends, rule)
            return beam, beam
        return drafter, Exact() if how.way is Way.EXACT else rule

    # What is shown

    def _caption(self, state: State, update: Update, *, shows_all: bool, as_it_is: bool) -> tuple[Caption, State]:
        decoded, tokens, pieces = state.decoded, state.output, state.decoded.pieces
        confirmed = None if shows_all else decoded.confirmed
        standing = unchanged = common_prefix(state.shown, tokens)
        if standing < len(state.shown):  # no part of a word that has changed
            standing = whole_words(pieces, standing)
        view = stabilise(
            pieces,
            self.settings.display,
            final=update.final,
            stopped=decoded.output.stopped,
            confirmed=confirmed,
            standing=standing,
        )
        shown, hidden = map(self.writing.convert, (view.shown, view.hidden))
        if as_it_is:
            shown = " ".join(update.text.split())
        seen, kept = view.shown_length, view.draft_length
        if decoded.output.cut:  # only what others agree with is a draft: a bias would keep its endless end
            seen = kept = max(unchanged, min(confirmed or 0, seen))
        draft = tokens[:kept]
        # A token that ends the line would end the next output too, where drafts are accepted as they are.
        if draft[-1:] and draft[-1] in self.vocabulary.breaks.within:
            draft = draft[:-1]
        state = replace(state, decoded=replace(decoded, confirmed=confirmed), shown=tokens[:seen], draft=draft)
        caption = Caption(
            update.utterance,
            update.seq,
            self.language,
            shown,
            hidden,
            update.final,
            update.time,
            update.text,
            cut=decoded.output.cut,
            speaker=update.speaker,
            source_language=update.language,
            start=update.start,
        )
        return caption, state

    # Failures

    def _failure(self, update: Update, message: str) -> Failure:
        return Failure(message, None, update.utterance, update.seq, self.language)


def _runaway(decoded: Decoded) -> str:
    tokens = len(decoded.output.tokens)
    if decoded.output.loop is not None:
        return f"the translation was cut after {tokens} tokens, since from there on the model repeats itself"
    if tokens >= longest_output(decoded.prompt):
        return f"the translation was cut at {tokens} tokens, since the model did not end it"
    return (
        f"the translation was cut at {tokens} tokens, the most that are allowed: "
        "end the utterance earlier, or raise the maximum tokens or the context length"
    )


def _unanswered(decoded: Decoded) -> str:
    """Return the error message for a final text with words but no translation."""
    if not decoded.written:
        return EMPTY
    return (
        f"the model wrote no translation, but {reprlib.repr(decoded.written)}: use another model, or turn its thoughts "
        "off in a prompt of your own (--prompt)"
    )


def _cleared(state: State) -> State:
    """Return a state without source and output."""
    return replace(state, decoded=Decoded(), draft=(), shown=(), outputs=(), since=Since(None, 0))


def _begun(state: State) -> State:
    """Return the state at the beginning of another utterance."""
    ending, (draft, shown) = state.ending.begun(), state.behind
    state = replace(_cleared(state), ending=ending, behind=((), ()), is_slow=False, reported=False)
    if not ending.words:
        return state
    return replace(state, draft=draft, shown=shown, outputs=(draft,) if draft else ())


def _is_slow(state: State, update: Update) -> bool:
    """Whether updates were passed over, and the source before is so old that words should not wait for another one."""
    since = state.since.time
    if state.update is None or since is None or update.time is None:
        return state.is_slow
    return update.seq - state.update.seq > 1 and update.time - since >= LONG_PAUSE


def as_output(
    text: str, like: Sequence[int], tokenize: Callable[[str], Sequence[int]], token_bytes: Callable[[int], bytes]
) -> Ids:
    """Return the ids of a text at the beginning of an output, after a space if the output ``like`` begins with one."""
    ids = tokenize(text) if text else ()
    spaced = [token_bytes(each[0]).startswith(b" ") for each in (like, ids) if each]
    return tuple(tokenize(f" {text}") if spaced == [True, False] else ids)
