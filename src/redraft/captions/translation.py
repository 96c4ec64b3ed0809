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
from redraft.captions.ending import LONG_PAUSE, NEVER, Since, is_committed, lowered
from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.finals import Flaw, Way, flaw_of, is_better, repeats, stops_short
from redraft.captions.sentence import as_sentence
from redraft.captions.stabilise import stabilise, whole_words
from redraft.captions.state import PLAIN, Decoded, Ids, Settings, State, Vocabulary, Writing
from redraft.captions.words import has_words
from redraft.decoding.backend import Backend
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
    Output,
    Prompt,
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
#: Error message for a final text with words but no translation, with what the model wrote.
UNANSWERED = (
    "the model wrote no translation, but {}: send more words, use another model, or turn its thoughts off in your own "
    "prompt (--prompt)"
)
#: Error message for a translation that is the text.
REPEATED = "the model repeats the text instead of translating it: use another model, or another prompt (--prompt)"


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
        text, mixed = lowered(update.text, mixed=state.mixed)
        update = replace(update, text=text)
        if state.update is None or update.utterance != state.update.utterance:
            state = _begun(state)
        else:
            state = replace(state, is_slow=_is_slow(state, state.update, update))
        draft, shown = ((), ()) if state.decoded.output.cut else (state.draft, state.shown)
        ending = state.ending.after(text, committed=update.committed, goes_on=update.goes_on)
        state = replace(state, mixed=mixed, ending=ending, update=update)
        events, state = yield from self._answered(state, update)
        if ending.left and update.final:
            end = seam(state.output, (), draft)
            draft, shown = (self._begun(ids[end:], state.output) for ids in (draft, shown))
        if ending.left:  # the rest of it is that of the next sentence
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
        if not (self.settings["context"] and has_words(source) and translation) or echoes(translation, source):
            return state
        sentence = as_sentence(source, self.vocabulary.final_mark), translation, language
        return replace(state, earlier=(*state.earlier, sentence)[-self.settings["context"] :])

    def _begun(self, ids: Sequence[int], like: Ids) -> Ids:
        """Return the ids of the same text at the beginning of an output."""
        text = b"".join(map(self.vocabulary.token_bytes, ids)).decode(errors="ignore").strip()
        return as_output(text, like, self.vocabulary)

    def _answered(self, state: State, update: Update, *, is_rest: bool = False) -> Asking[Answered]:
        def failure(problem: str) -> Failure:
            return Failure(problem, None, update.utterance, update.seq, self.language)

        text = as_sentence(update.text, self.vocabulary.final_mark) if update.final else update.text
        prompt, problem = self._asked(state, text, update.language)
        fits, as_it_is = not problem, not (problem or prompt.ids)
        if as_it_is:
            state = _cleared(state)
        elif fits:
            reader = OutputReader(text, self.vocabulary.breaks, self.vocabulary.token_bytes, self.writing.labels)
            state = yield from self._decoded(state, update, Decoded(prompt, reader), is_rest)
            problem = _runaway(state.decoded) if state.decoded.output.cut else ""
        failures: list[Event] = []
        if problem and (update.final or not state.reported):
            failures.append(failure(problem))
            state = replace(state, reported=True)
        # A source without a prompt gets no caption, but a final update still ends its utterance with the last caption.
        if not (fits or update.final):
            return failures, state
        caption, state = self._caption(state, update, as_it_is)
        if not caption.final:
            return [*failures, caption], state
        if not caption.text and has_words(text):
            return failures or [failure(UNANSWERED.format(reprlib.repr(state.decoded.written)))], state
        problem = REPEATED if repeats(caption.text, text) else self.writing.problem(caption.text)
        if problem and not (as_it_is or state.misspelt):
            failures.append(failure(problem))
            state = replace(state, misspelt=True)  # once in a stream
        if fits and state.decoded.output.finished:
            state = self.remember(state, update.text, caption.text, update.language)
        return [*failures, caption], state

    def _asked(self, state: State, text: str, language: str | None) -> tuple[Prompt, str]:
        """Return the prompt, and why it cannot be used; empty if it can.

        It has the newest earlier sentences in its language that leave room for a translation.  It is empty for texts
        without words: models answer a lone mark with words of their own.
        """
        length = self.vocabulary.context_length
        room = min(self.settings["max_tokens"], length // 2)
        earlier = [(source, translation) for source, translation, theirs in state.earlier if theirs == language]
        prompt = Prompt()
        try:
            for dropped in range(len(earlier) + 1) if has_words(text) else ():
                prompt = self.encode(text, earlier[dropped:], language)
                if max(len(prompt.ids), len(prompt.encoder)) + room <= length:
                    break
        except OptionError as error:
            return Prompt(), str(error)
        if max(len(prompt.encoder), len(prompt.ids) + 1) <= length:
            return prompt, ""
        return prompt, (
            f"the source is too long: its prompt has {len(prompt.encoder) or len(prompt.ids)} tokens and the context "
            f"length is {length}; end the utterance earlier or raise the context length"
        )

    def _decoded(self, state: State, update: Update, asked: Decoded, is_rest: bool) -> Asking[State]:
        """Decode a text if that may change anything; ``asked`` has its prompt and reader."""
        changed = asked.prompt != state.decoded.prompt
        if not is_rest:
            state = replace(state, since=Since(update.time, 0) if changed else state.since.again(update.time))
        pauses = is_rest or state.since.is_settled(update.time)
        whole, settings = update.final or pauses, self.settings
        compares = update.final and settings.searches and settings["search"]
        # An unchanged source needs no pass, unless its output was stopped, or candidates are to be compared with it.
        if changed or compares or (whole and state.decoded.output.stopped):
            own = yield from self._decode(state, asked, whole=whole)
            state = (yield from self._chosen(state, own)) if update.final else own
        if update.final:
            state = yield from self._repaired(state)
        confirmed = state.decoded.confirmed
        if pauses or (changed and state.is_slow):
            confirmed = None
        elif confirmed is not None and is_committed(update.text, update.committed):
            confirmed = state.decoded.certain
        return replace(state, decoded=replace(state.decoded, confirmed=confirmed))

    # Candidates for final texts

    def _chosen(self, start: State, own: State) -> Asking[State]:
        """Return the state with the best translation of a final text.

        Args:
            start: the state before the final text.
            own: the state with the method's own output for it.
        """
        settings, first, likelihood = self.settings, own.decoded, own.decoded.output.likelihood
        if not settings.searches or likelihood is None:
            return own
        mark = self.vocabulary.final_mark
        flaw = flaw_of(first, start.decoded, first, mark)
        length = len(first.output.tokens)
        seconds = settings["search"] / 1000 * (DOUBTFUL if likelihood.given_up > settings["doubt"] else 1)
        # A search has a pass for each token, and one to begin with; what no bias has changed is the exact output.
        ways = []
        if (width := min(settings["hypotheses"], self.vocabulary.hypotheses)) > 1:
            ways.append((Way.BEAM, Spare(seconds, length + 2, width), 0.0))
        if likelihood.given_up:
            ways.append((Way.EXACT, Spare(seconds, length - likelihood.first + 2), settings["margin"]))
        best = own
        for way, spare, margin in ways:
            needed = flaw is Flaw.STILL and way is Way.EXACT
            if not (seconds or needed):
                continue
            draft = first.output.tokens if way is Way.EXACT else start.draft
            asking = self._decode(replace(start, draft=draft, tally=best.tally), first, way=way)
            try:
                found, _asked = yield from counted(asking, None if needed else spare)
            except Declined:
                continue
            theirs = flaw_of(found.decoded, start.decoded, first, mark)
            wins = is_better(found.decoded, best.decoded, (theirs, flaw), margin)
            best, flaw = (found, theirs) if wins else (replace(best, tally=found.tally), flaw)
        return best

    def _repaired(self, state: State) -> Asking[State]:
        """Decode a final text again if the model has answered it with nothing, or with less than a sentence."""
        first, mark = state.decoded, self.vocabulary.final_mark
        if not has_words(first.written) and state.earlier:
            # without earlier sentences, which may have been taken for the text
            prompt = self.encode(first.source, (), state.update.language if state.update else None)
            state = yield from self._decode(state, replace(first, prompt=prompt))
            first = state.decoded
        ends, output = self.vocabulary.end_tokens | self.vocabulary.breaks.ends, first.output.tokens
        if not has_words(first.written):
            # Small models end the translation of a short text at once, or after a mark or a space, often with a
            # probability of less than half.
            state = yield from self._decode(state, first, barred={0: ends.union(output[:1])})
            return state if has_words(state.decoded.text) else replace(state, decoded=first)
        if not stops_short(first, mark):
            return state
        state = replace(state, draft=output)
        attempts = [{len(output): ends}]
        if first.text.endswith(_COMMAS):  # a full stop in its place is nearer than what might follow
            attempts.insert(0, {len(output) - 1: ends | {output[-1]}})
        for barred in attempts:
            state = yield from self._decode(state, first, barred=barred)
            if state.decoded.output.finished and not stops_short(state.decoded, mark):
                return state
        return replace(state, decoded=first)

    # One decoding

    def _decode(
        self,
        state: State,
        asked: Decoded,
        *,
        whole: bool = True,
        way: Way = Way.METHOD,
        barred: Barred = NOTHING_BARRED,
    ) -> Asking[State]:
        """Decode a text once.

        Args:
            asked: its prompt and reader.
            whole: whether the output is decoded to its end.
            way: how a final text is decoded.
            barred: what must not stand at some positions; another candidate, as with another ``way``.
        """
        vocabulary, settings, prompt = self.vocabulary, self.settings, asked.prompt
        ends, display = vocabulary.breaks.ends, settings.display
        memory = {kind: copy(each) for kind, each in state.memory.items()}
        setup = Setup(settings.options, vocabulary.end_tokens, vocabulary.pad_token, memory, ends)
        final = state.update is not None and state.update.final
        shows_all = final or display.agree == 1
        # What the outputs before this one agree on; nothing if there are too few.
        stop = 0.0 if whole else float(settings.options.get("stop", 0.0))
        enough = 0 < len(state.outputs) == display.agree - 1
        known = reduce(lambda one, other: one[: common_prefix(one, other)], state.outputs) if enough else ()

        def attempt(draft: Ids, barred: Barred) -> Asking[tuple[Output, Certainty | None]]:
            drafter, rule = settings.method.build(setup)
            certainty: Certainty | None = None
            weighing: Weighing | Beam = (followed := Weighing())
            if way is Way.BEAM:
                width = min(settings["hypotheses"], vocabulary.hypotheses)
                drafter = rule = weighing = Beam(width, vocabulary.end_tokens, ends, rule)
            elif way is Way.EXACT:
                rule = Exact()
            if not shows_all:
                certainty = Certainty(known, display.first_sight, stop, state.ending.trust)
            output = yield from decode(
                prompt,
                drafter,
                rule,
                previous=draft,
                shown=common_prefix(state.shown, draft),
                barred=barred,
                end_tokens=vocabulary.end_tokens,
                line_end=asked.reader.end,
                limit=min(settings["max_tokens"], vocabulary.context_length - len(prompt.ids), longest_output(prompt)),
                stop_loops=True,
                follow=certainty.follow if certainty else followed.follow if final else None,
            )
            likelihood = weighing.of(len(output.tokens), finished=output.finished)
            return replace(output, likelihood=likelihood), certainty

        output, certainty = yield from out_of_loops(attempt, state.draft, barred)
        outputs, confirmed, certain = state.outputs, None, 0
        if certainty:
            # An output that was cut is no evidence for another one, nor for itself.
            confirmed, certain = certainty.count, certainty.certain
            if output.cut:
                confirmed = certain = certainty.agreed
            others = outputs[:-1] if prompt == state.decoded.prompt else outputs
            outputs = outputs if output.cut else (*others, output.tokens)[1 - display.agree :]
        tally = state.tally.plus(output) if way is Way.METHOD else state.tally.searched(output)
        reopened = tally.reopened + (way is not Way.METHOD or bool(barred))
        return replace(
            state,
            decoded=replace(asked, output=output, confirmed=confirmed, certain=certain),
            outputs=outputs,
            memory=memory,
            tally=replace(tally, reopened=reopened),
        )

    # What is shown

    def _caption(self, state: State, update: Update, as_it_is: bool) -> tuple[Caption, State]:
        decoded, tokens, pieces = state.decoded, state.output, state.decoded.pieces
        standing = unchanged = common_prefix(state.shown, tokens)
        if standing < len(state.shown):  # no part of a word that has changed
            standing = whole_words(pieces, standing)
        view = stabilise(
            pieces,
            self.settings.display,
            final=update.final,
            stopped=decoded.output.stopped,
            confirmed=decoded.confirmed,
            standing=standing,
        )
        shown, hidden = map(self.writing.convert, (view.shown, view.hidden))
        if as_it_is:
            shown = " ".join(update.text.split())
        seen, kept = view.shown_length, view.draft_length
        if decoded.output.cut:  # only what others agree with is a draft: a bias would keep its endless end
            seen = kept = max(unchanged, min(decoded.confirmed or 0, seen))
        draft = tokens[:kept]
        # A token that ends the line would end the next output too, where drafts are accepted as they are.
        if draft and draft[-1] in self.vocabulary.breaks.within:
            draft = draft[:-1]
        cut, spoken = decoded.output.cut, update.language
        caption = Caption.of(
            update, self.language, shown, unstable=hidden, source=update.text, cut=cut, source_language=spoken
        )
        return caption, replace(state, shown=tokens[:seen], draft=draft)


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


def _cleared(state: State) -> State:
    """Return a state without source and output."""
    return replace(state, decoded=Decoded(), draft=(), shown=(), outputs=(), since=NEVER)


def _begun(state: State) -> State:
    """Return the state at the beginning of another utterance."""
    ending = state.ending.begun()
    begun = replace(_cleared(state), ending=ending, is_slow=False, reported=False)
    if state.update or not ending.words:
        return begun
    return replace(begun, draft=state.draft, shown=state.shown, outputs=(state.draft,) if state.draft else ())


def _is_slow(state: State, before: Update, update: Update) -> bool:
    """Whether updates were passed over, and the source before is so old that words should not wait for another one."""
    if state.since.time is None or update.time is None:
        return state.is_slow
    return update.seq - before.seq > 1 and update.time - state.since.time >= LONG_PAUSE


def as_output(text: str, like: Sequence[int], model: Vocabulary | Backend) -> Ids:
    """Return the ids of a text at the beginning of an output, after a space if the output ``like`` begins with one."""
    ids = model.tokenize(text) if text else ()
    spaced = [model.token_bytes(each[0]).startswith(b" ") for each in (like, ids) if each]
    return tuple(model.tokenize(f" {text}") if spaced == [True, False] else ids)
