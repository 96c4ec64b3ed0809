"""Translate a stream: the main entry point of the library.

Examples:
    >>> from redraft import Translator, Update
    >>> with Translator.open("demo", to=["de"]) as translator:
    ...     events = translator.translate(Update("1", 0, "I have a dog.", final=True))
"""

from __future__ import annotations

import os
import reprlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from weakref import WeakKeyDictionary

from redraft.backends.load import MakesPrompts, backends_of, open_models
from redraft.backends.options import NOTHING
from redraft.captions.events import Event, Failure, Order, Update
from redraft.captions.languages import Language, as_tags, closest, parse_language
from redraft.captions.prompt import Prompter, Request, choose_template, clean
from redraft.captions.script import foreign_tokens, spelling_rule, writes_own_script, writing_of
from redraft.captions.sentence import final_mark
from redraft.captions.spoken import AUTO, Spoken
from redraft.captions.state import START, Settings, State, Vocabulary
from redraft.captions.style import Style
from redraft.captions.translation import Answered, Encode, Translation
from redraft.decoding.backend import Backend, Capability
from redraft.decoding.drive import Watch, open_slots, run_together
from redraft.decoding.ends import LineBreaks
from redraft.decoding.method import Method, Value
from redraft.decoding.methods import get_method
from redraft.decoding.search import MOST
from redraft.decoding.selection import EVERYTHING, Selection
from redraft.decoding.types import DRAFT_MODEL, TARGET, Asking, Prompt
from redraft.errors import ContextOverflow, InputError, ModelError, OptionError, expect


class Translator:
    """Open one with ``Translator.open("demo", to=["de"])``; it translates one stream into one or several languages.

    `open` loads a model by name or path, and `translate` takes the updates of the stream. Use the constructor to share
    a loaded model.

    Several translators can share a backend; each takes one slot of its cache per target language. Calls from several
    threads wait for each other. Translators that share a backend must not translate at the same time, because a pass
    overwrites the rows of the previous one.

    Attributes:
        backend: the target model.
        backends: all models by name (`redraft.decoding.types.TARGET`, `DRAFT_MODEL`).
        method: the decoding method.
        translations: language -> how it is translated, in the order of ``to``.
        states: language -> what it remembers: ids of the latest prompt and output, and counts.
        slots: for each language, its slot in the cache of every model; empty once closed.
        spoken: finds the language of each update, if the style names several.
        seconds: time spent translating.

    Args:
        backend: a loaded model with enough free slots.
        to: target languages, as BCP 47 tags or English names.
        method: decoding method, or its name.
        options: options of the method by name.
        style: prompt style.
        small: the draft model, for methods that need one; must share the vocabulary of ``backend``.
        watch: called for every pass; lanes are numbered like the languages in ``to``.

    Raises:
        OptionError: an option is unknown or out of range.
        ModelError: the model has no usable prompt template.
        CapabilityError: the backend has too few slots or lacks what the method needs, or the draft model is missing or
            has another vocabulary.
    """

    def __init__(
        self,
        backend: Backend,
        to: Sequence[str],
        *,
        method: str | Method = "redraft",
        options: Mapping[str, Value] | None = None,
        style: Style = Style(),
        small: Backend | None = None,
        watch: Watch | None = None,
    ) -> None:
        chosen = get_method(method)
        expect(style, Style, "style", 'Style("en")')
        settings = Settings(chosen, options or {})
        languages = {each.standard: each for each in map(parse_language, as_tags(to))}
        style.check_targets([*languages])
        encoders = {
            tag: prompt_encoder(backend, style, language, settings["context"]) for tag, language in languages.items()
        }
        self.spoken = Spoken(style.sources, source_languages(backend, style))
        if not encoders:
            raise OptionError("at least one target language is needed")
        self.backend, self.method, self.seconds = backend, chosen, 0.0
        self._name = backend.metadata.get("general.name", "unnamed")
        self._languages = f"{' and '.join(style.sources) or AUTO} to {', '.join(encoders)}"
        self._watch, self._lock, self._order = watch, threading.Lock(), Order()
        with ExitStack() as closing:
            self.backends = backends_of(chosen, settings.options, backend, small, closing)
            vocabulary = vocabulary_of(self.backends)
            self.translations = {
                tag: Translation(tag, encode, vocabulary, settings, writing_of(languages[tag]))
                for tag, encode in encoders.items()
            }
            self.states = dict.fromkeys(self.translations, START)
            self.slots = open_slots(self.backends, len(encoders), closing)
            self._closing = closing.pop_all()

    @classmethod
    def open(
        cls,
        model: str | os.PathLike[str] = "demo",
        *,
        to: Sequence[str],
        method: str | Method = "redraft",
        options: Mapping[str, Value] | None = None,
        style: Style = Style(),
        engine: Mapping[str, Value] = NOTHING,
        draft_model: str | os.PathLike[str] | None = None,
    ) -> Translator:
        """Load a model by name or path and translate with it; `close` frees it. Other arguments as for the class.

        Args:
            engine: options of the engine by name (`redraft.backends.options`), such as ``{"threads": 2}``.
            draft_model: name or path of the draft model, for methods that need one; None uses the one that ships for
                ``model``.
        """
        chosen = get_method(method)
        small = None if draft_model is None else os.fspath(draft_model)
        with ExitStack() as owned:
            (models,) = open_models([chosen], os.fspath(model), small, engine, max(1, len(as_tags(to))), owned)
            drafting = models.get(DRAFT_MODEL)
            made = cls(models[TARGET], to, method=chosen, options=options, style=style, small=drafting)
            owned.push(made._closing)
            made._closing, made._name = owned.pop_all(), os.fspath(model)
        return made

    def translate(self, update: Update) -> list[Event]:
        """Translate one update into every language.

        Problems are returned as a `Failure`, including updates that are not newer than the last one of their utterance,
        or follow its final one.

        Raises:
            InputError: ``update`` is not an `Update`.
        """
        if not isinstance(update, Update):
            raise InputError(f"translate takes an Update, not {reprlib.repr(update)}")
        with self._lock:
            try:
                if not self.slots:
                    raise InputError("the translator is closed")
                update = self._order.accept(self.spoken.named(update))
            except InputError as error:
                return [Failure(str(error), None, update.utterance, update.seq)]
            before = self._rest(update) if any(each.left_by(update) for each in self.states.values()) else []
            askings = [each.translate(self.states[tag], update) for tag, each in self.translations.items()]
            return [*before, *self._run(askings, update, update)]

    def rest(self) -> list[Event]:
        """Show all of the translations of an unfinished utterance.

        Call this when no update has come for a while, and at the end of a stream whose last update is not final.
        """
        with self._lock:
            return self._rest() if self.slots else []

    def _rest(self, before: Update | None = None) -> list[Event]:
        unfinished = next((each.update for each in self.states.values() if each.update and each.hides), None)
        if unfinished is None:
            return []
        askings = [each.rest(self.states[tag]) for tag, each in self.translations.items()]
        return self._run(askings, unfinished, before or unfinished)

    def _run(self, askings: Sequence[Asking[Answered]], of: Update, update: Update) -> list[Event]:
        """Run the languages together, and keep what they return; if a pass fails, nothing of it.

        Args:
            of: what a failure names.
            update: the newest update, with which its utterance or the one before may end.
        """
        started = time.perf_counter()
        try:
            answers = run_together([*zip(askings, self.slots, strict=True)], self.backends, self._watch)
        except (ContextOverflow, ModelError) as error:
            self.states = {tag: self.translations[tag].failed(old, update) for tag, old in self.states.items()}
            return [Failure(str(error), None, of.utterance, of.seq)]
        finally:
            self.seconds += time.perf_counter() - started
        self.states = {tag: state for tag, (_, state) in zip(self.states, answers, strict=True)}
        return [event for events, _ in answers for event in events]

    def state(self, language: str) -> State:
        """Return what a target language in ``to`` remembers: ids of the latest prompt and output, and counts.

        Raises:
            OptionError: the language is not in ``to``.
        """
        tag = language if language in self.states else parse_language(language, "language").standard
        if tag not in self.states:
            raise OptionError(f"must be one of {', '.join(self.translations)}, not {language!r}", "language")
        return self.states[tag]

    def close(self) -> None:
        """Release the slots, and free models loaded by `open`; waits for a call in progress."""
        with self._lock:
            self._closing.close()
            self.slots = []

    def abandon(self) -> None:
        """Let `close` free nothing, because a pass that does not end uses the models."""
        self._closing.pop_all()

    def __repr__(self) -> str:
        return f"<Translator: {self._name}, {self._languages}, {self.method.name}>"

    def __enter__(self) -> Translator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def vocabulary_of(backends: Mapping[str, Backend]) -> Vocabulary:
    """Return what a session needs to know about its models; `TARGET` is among their names."""
    target = backends[TARGET]
    # All models process the same ids, so the shortest context applies.
    room = min(each.context_length for each in backends.values())
    return Vocabulary(
        target.end_tokens,
        target.token_bytes,
        target.tokenize,
        room,
        target.pad_token,
        final_mark(target.metadata),
        line_breaks(target),
        MOST if Capability.HYPOTHESES in target.capabilities else 0,
    )


#: Sessions share these, since reading a vocabulary takes 10 ms and more.
_BREAKS: WeakKeyDictionary[Backend, LineBreaks] = WeakKeyDictionary()


def line_breaks(backend: Backend) -> LineBreaks:
    """Return the tokens with a line break; sources are single lines (`clean`), and so are translations."""
    if backend not in _BREAKS:
        _BREAKS[backend] = LineBreaks.of(map(backend.token_bytes, range(backend.vocabulary_size)))
    return _BREAKS[backend]


def source_languages(backend: Backend, style: Style) -> tuple[str, ...]:
    """Return the tags of the languages from which a model translates; empty if it declares none."""
    if isinstance(backend, MakesPrompts):
        return ()
    return choose_template(backend.metadata, style.template, style.prompt).sources


def prompt_encoder(backend: Backend, style: Style, target: Language, context: int = 0) -> Encode:
    """Return the function that makes a stream's prompts: from a source, earlier sentences and its language to ids.

    Args:
        context: number of earlier sentences that prompts may have.

    Raises:
        OptionError: the model does not support a language, or something in ``style``.
        ModelError: the model has no usable prompt template.
    """
    asked = {"template": style.template, "prompt": style.prompt, "glossary": style.glossary, "context": context}
    for field, value in asked.items():
        if value and isinstance(backend, MakesPrompts):
            raise OptionError(": an encoder-decoder model accepts only the text, so leave it out", field)
    script, terms = own_script(backend, target), style.terms(target)

    @cache
    def encoder(tag: str) -> Callable[[str, Sequence[tuple[str, str]]], Prompt]:
        """Return what makes the prompts of a language."""
        source = parse_language(tag, "source language")
        if len(style.sources) != 1 and closest(source, [target]):
            return lambda text, earlier: Prompt()
        if isinstance(backend, MakesPrompts):
            return lambda text, earlier: backend.encoder_prompt(text, source, target)
        prompter = Prompter(backend.metadata, source, target, style.template, style.prompt)

        def encode(text: str, earlier: Sequence[tuple[str, str]]) -> Prompt:
            ids = prompter.encode(Request(text, tuple(earlier), terms), backend.encode)
            return Prompt(ids, tuple(backend.tokenize(clean(text))), selection=script(text))

        return encode

    def encode(text: str, earlier: Sequence[tuple[str, str]], language: str | None = None) -> Prompt:
        return encoder(language or style.source_language)(text, earlier)

    # Fails now if the model does not support a language or, in its prompt, a glossary or context.  Of any language, two
    # are tried, since one may be the target.
    for tag in style.sources or source_languages(backend, style)[:2] or ("en", "de"):
        encode("test", (("test", "test"),) if context else (), tag)
    return encode


#: Backend -> target language -> foreign tokens; sessions share them, since reading a vocabulary takes 10 ms.
_FOREIGN: WeakKeyDictionary[Backend, dict[str, Selection]] = WeakKeyDictionary()


def own_script(backend: Backend, target: Language) -> Callable[[str], Selection]:
    """Return the rule for foreign words in translations into a language (`redraft.captions.script`).

    No token is foreign for models that do not write their own script only.
    """
    found = _FOREIGN.setdefault(backend, {})
    if target.canonical not in found:
        tokens = map(backend.token_bytes, range(backend.vocabulary_size))
        restricted = writes_own_script(backend.metadata)
        found[target.canonical] = foreign_tokens(tokens, target) if restricted else EVERYTHING
    return spelling_rule(target, found[target.canonical], backend.tokenize)
