"""The models, the operator's limits, and admission of sessions and one-shot requests to them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from redraft import deadlines
from redraft.backends.load import check_same_vocabulary
from redraft.captions.events import Caption, Failure, Update
from redraft.captions.formats.write import FORMATS, TRANSCRIPTS
from redraft.captions.languages import parse_language
from redraft.captions.metadata import SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY
from redraft.captions.prompt import prompt_file
from redraft.captions.script import writing_of
from redraft.captions.sentence import as_sentence, cut_text, join_text
from redraft.captions.spoken import AUTO, Spoken
from redraft.captions.state import START, Settings, State
from redraft.captions.style import Style
from redraft.captions.translation import Translation
from redraft.captions.words import has_words
from redraft.decoding.backend import Backend, Capability
from redraft.decoding.method import COMMON
from redraft.decoding.methods import get_method
from redraft.decoding.types import DRAFT_MODEL, TARGET, Asking, Prompt
from redraft.engine.chat import Answered, Chat, chat_of
from redraft.engine.engine import LATE, Engine, Engines, Stopped
from redraft.engine.lanes import Answer, Failed, Ids, Lane, Once, Task, Wish
from redraft.engine.scheduler import NoCapacity
from redraft.errors import CapabilityError, OptionError, RedraftError, Unavailable
from redraft.models import SHIPPED
from redraft.protocol import Offer, OfferedMethod, Wanted
from redraft.protocol.codes import Refused
from redraft.serve.access import ApiKeys
from redraft.serve.settings import ServeSettings
from redraft.speech.registry import resolve
from redraft.tasks import beside
from redraft.translator import prompt_encoder, source_languages, vocabulary_of

#: Most entries of a glossary for one language.
MOST_TERMS = 64
#: Maximum number of one-shot requests in progress; sentences of one request at a time.
_MOST, _AT_ONCE = 256, 8


class Service:
    """The models and what clients may ask of them.

    Args:
        backends: the target model and, if a method needs it, the draft model.
        settings: the operator's settings: methods, the default first, and limits.

    Raises:
        CapabilityError: a model lacks something that a method needs.
        OptionError: a method is unknown, or the prompt file cannot be read.
    """

    def __init__(self, backends: Mapping[str, Backend], settings: ServeSettings) -> None:
        self.backends, self.settings = backends, settings
        #: The methods that clients may choose, by name; the first is the default.
        self.methods = {name: get_method(name) for name in settings.methods}
        for method in self.methods.values():
            method.require(backends[TARGET].capabilities)
            if Capability.EARLY_EXIT in method.needs:
                raise CapabilityError(
                    f"method {method.name!r} needs a model of its own for every stream and cannot be served"
                )
        if DRAFT_MODEL in backends:
            check_same_vocabulary(backends[TARGET], backends[DRAFT_MODEL])
        self.vocabulary = vocabulary_of(backends)
        self._prompt = None if settings.prompt is None else prompt_file(settings.prompt)

    @property
    def languages(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Source and target languages that the model declares it was trained on; empty if it declares none."""
        metadata = self.backends[TARGET].metadata
        sources, targets = (metadata.get(key, "").split(",") for key in (SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY))
        return tuple(filter(None, map(str.strip, sources))), tuple(filter(None, map(str.strip, targets)))

    @cached_property
    def chat(self) -> Chat | None:
        """The model as a chat; None if it only translates.  Raises `ModelError` if its template cannot be used."""
        return chat_of(self.backends[TARGET], self.vocabulary)

    def spoken(self, wanted: Wanted) -> Spoken:
        """Return what finds the languages of a stream's updates; raises what `Spoken` raises."""
        style = self._style(wanted)
        return Spoken(style.sources, source_languages(self.backends[TARGET], style))

    def _style(self, wanted: Wanted) -> Style:
        more = wanted.glossary, wanted.also_spoken
        return Style(wanted.source_language, self.settings.template, self._prompt, *more)

    def translations(self, wanted: Wanted, *, exact: bool = False) -> list[Translation]:
        """Return how each target language is translated.

        Args:
            exact: whether a draft is accepted exactly, whatever the default method does.

        Raises:
            OptionError: a value is unknown, out of range or beyond the operator's limits.
            ModelError: the model's prompt format does not support the request.
        """
        self._check(wanted)
        style = self._style(wanted)
        style.check_targets(wanted.targets)
        languages = [parse_language(tag, "target") for tag in wanted.targets]
        method = get_method("ssbd") if exact else self.methods[wanted.method or self.settings.methods[0]]
        settings = Settings(method, {**wanted.options, "beta": 0.0} if exact else wanted.options)
        if len({each.canonical for each in languages}) < len(languages):
            raise OptionError("must be different languages", "targets")
        encoders = (prompt_encoder(self.backends[TARGET], style, each, settings["context"]) for each in languages)
        return [
            Translation(each.tag, encode, self.vocabulary, settings, writing_of(each))
            for each, encode in zip(languages, encoders, strict=True)
        ]

    def _check(self, wanted: Wanted) -> None:
        """Check a request against the operator's limits."""
        if wanted.method is not None and wanted.method not in self.methods:
            raise OptionError(f"must be one of {', '.join(self.methods)}, not {wanted.method!r}", "method")
        if (count := len(wanted.targets)) > self.settings.targets:
            raise OptionError(f"must have at most {self.settings.targets} languages, not {count}", "targets")
        if (count := max(map(len, wanted.glossary.values()), default=0)) > MOST_TERMS:
            raise OptionError(f"must have at most {MOST_TERMS} entries for a language, not {count}", "glossary")


def offer_of(service: Service, *, key: bool) -> Offer:
    """Return what clients may ask of the models."""
    allowed = service.settings
    sources, targets = service.languages
    return Offer(
        methods=allowed.methods,
        about={
            name: OfferedMethod.model_validate(
                {"summary": method.summary, "options": method.all_options}, from_attributes=True
            )
            for name, method in service.methods.items()
        },
        source_languages=sources,
        target_languages=targets,
        most_targets=allowed.targets,
        most_glossary=MOST_TERMS,
        key=key,
        model=service.backends[TARGET].metadata.get("general.name") or Path(allowed.model).name,
        recogniser=allowed.recogniser and offered_recogniser(allowed.recogniser, sources[0] if sources else "en"),
        sentences=allowed.sentences,
        transcript_seconds=max(allowed.keep_seconds, allowed.transcript_seconds),
        transcripts={name: FORMATS[name].title for name in TRANSCRIPTS},
        demo=allowed.model in SHIPPED,
    )


@cache
def offered_recogniser(spec: str, language: str) -> str:
    """Return a recogniser's name, and its model if that is a name rather than a path or an address."""
    with suppress(RedraftError):  # it may still recognise another language
        spec = resolve(spec, language)
    name, _, model = spec.partition(":")
    return name if {"/", "\\"} & {*model} or Path(model).exists() else spec


STOPPED = "the server cannot translate any more and must be started again"
VIEWERS_ONLY = "this server only serves viewers: send updates to another one"
DRAINING = "the server is being stopped: connect again in a moment"
#: Fields that the library names otherwise than the protocol.
_FIELDS = {"source language": "source_language", "target": "targets", "target language": "targets"}


class Admission:
    """The gate to the engines: checks capacity and API keys, and lets in lanes of streams and one-shot requests.

    One-shot requests, whole texts and chats, are no sessions.  They wait for their turn (`redraft.engine.lanes`), and
    are refused only if too many wait, or for too long.  A text is cut into sentences, since models translate a long
    text only in part; a sentence that fails, or is cut, fails the request.

    Args:
        service: the models and the operator's limits; None without engines.
        keys: the API keys; None if the server needs none.
    """

    def __init__(self, service: Service | None, engines: Engines, keys: ApiKeys | None = None) -> None:
        self.keys = keys
        self._service, self._engines = service, engines
        self.draining = False
        #: Address -> its one-shot requests in progress.
        self._by_address: Counter[str] = Counter()

    def check_working(self) -> None:
        """Raise `Refused` if the server serves only viewers, is stopping, or an engine has failed."""
        if not self._engines.all:
            raise Refused("missing", VIEWERS_ONLY)
        if self.draining:
            raise Refused("draining", DRAINING)
        if not self._engines.alive:
            raise Refused("engine", STOPPED)
        if all(engine.late for engine in self._engines.all):
            raise Refused("engine", LATE)

    def owner(self, key: str | None) -> str:
        """Return the owner of an API key; empty if none are needed.  Raises `Refused` if it is missing or unknown."""
        if self.keys is None:
            return ""
        if not key:
            raise Refused("key", "an API key is needed: send it as `key`, or as a bearer token", "key")
        owner = self.keys.owner(key)
        if owner is None:
            raise Refused(
                "key", "the API key is not known to this server: check it, or ask the operator for one", "key"
            )
        return owner

    @property
    def service(self) -> Service:
        """The models.  Raises `Refused` if the server serves only viewers."""
        if self._service is None:
            raise Refused("missing", VIEWERS_ONLY)
        return self._service

    async def spoken(self, wanted: Wanted) -> Spoken:
        """Return what finds the languages of a stream's updates.  Raises `Refused` as for `lanes`."""
        try:
            return await asyncio.to_thread(self.service.spoken, wanted)  # opens a detector if several are spoken
        except RedraftError as error:
            raise refused_option(error) from None

    async def lanes(self, wanted: Wanted, answered: Callable[[Answer], object]) -> tuple[Engine, dict[str, Lane]]:
        """Make the lanes of a stream on the least loaded engine; return the engine, and the lanes by language.

        Args:
            answered: called on the event loop with the answer to every update in every language.

        Raises:
            Refused: there is no capacity, or the request asks for something that is not allowed.
        """
        service, made = self.service, dict[str, Lane]()
        with self._engines.chosen(len(wanted.targets)) as engine:
            receive = engine.answers_to(answered)

            def make() -> None:
                translations = service.translations(wanted)  # first: invalid requests do not depend on capacity
                lanes = [Lane(each, receive) for each in translations]
                self._engines.admit(engine, lanes)
                made.update((lane.translation.language, lane) for lane in lanes)

            try:
                await engine.ask(make)
            except BaseException as error:  # the engine may have added the lanes, or may yet
                engine.post(lambda: engine.remove(made.values()))
                if isinstance(error, RedraftError):
                    raise refused_option(error) from None
                raise
            return engine, made

    # One-shot requests: whole texts and chats

    async def translate(
        self, wanted: Wanted, texts: Sequence[str], address: str, *, lines: bool = True, marks: bool = True
    ) -> list[dict[str, Answered]]:
        """Translate texts, each into every target language.

        Args:
            lines: whether a line break ends a sentence.
            marks: whether a mark such as a full stop does.

        Raises:
            Refused: a sentence fails or is cut, it is impossible, not allowed, or there is no capacity.
        """
        if wanted.also_spoken or wanted.source_language == AUTO:
            raise Refused("option", "a text has one source language, which must be named", "source_language")
        exact = wanted.method is None and wanted.options.keys() <= {*COMMON}
        turns = asyncio.Semaphore(_AT_ONCE)
        with self._admitted(address) as engine:
            try:
                made = await engine.ask(lambda: self.service.translations(wanted, exact=exact))
            except RedraftError as error:
                raise refused_option(error) from None
            ask, cut = partial(self._ask, engine), [cut_text(text, lines=lines, marks=marks) for text in texts]
            async with beside(*(_text(ask, each, it, turns, exact) for it in cut for each in made)) as tasks:
                found = iter(await asyncio.gather(*tasks))
        return [{each.language: next(found) for each in made} for _ in texts]

    async def chat(
        self, chat: Chat, make: Callable[[], Task], address: str, heard: Callable[[bytes], None] | None = None
    ) -> Answered:
        """Return the answer to a task of a chat; ``heard`` gets it while it is written, piece by piece.

        Raises:
            Refused: the request is impossible, or there is no capacity.
        """
        loop, seen = asyncio.get_running_loop(), 0

        def grown(ids: Ids) -> None:
            nonlocal seen
            piece, seen = chat.bytes_of(ids[seen:]), len(ids)
            if heard is not None:
                loop.call_soon_threadsafe(heard, piece)

        with self._admitted(address) as engine:
            found: Answered = await self._ask(engine, make, grown if heard else None)
        return found

    @contextmanager
    def _admitted(self, address: str) -> Iterator[Engine]:
        """Choose the engine with the least work.  Raises `Refused` if there are too many requests."""
        self.check_working()
        if self._by_address.total() >= _MOST:
            raise Refused("capacity", f"{_MOST} requests are waiting already: try again later")
        if self._by_address[address] >= (most := self.service.settings.sessions_per_address):
            raise Refused("limit", f"{most} requests from this address are waiting already")
        self._by_address[address] += 1
        try:
            with self._engines.chosen(1) as engine:
                yield engine
        finally:
            self._by_address[address] -= 1
            self._by_address += Counter()  # drops addresses without requests

    async def _ask(self, engine: Engine, make: Callable[[], Task], grown: Callable[[Ids], None] | None = None) -> Any:
        """Return the result of a task; it is dropped if the client goes.  Raises `Refused` if it fails."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def answered(result: Any) -> None:
            if not answer.done():
                answer.set_result(result)

        def done(result: Any) -> None:
            loop.call_soon_threadsafe(answered, result)

        request = Once(make, done, grown)
        engine.asked.add(answer)
        engine.post(lambda: engine.scheduler.ask(request))
        try:
            await asyncio.wait({answer}, timeout=deadlines.TURN)
            if not answer.done() and not request.begun:
                raise Refused("capacity", f"the server is busy: no turn came within {deadlines.TURN:g} seconds")
            result = await answer
        except Stopped as error:
            raise refused_option(error) from None
        finally:
            engine.asked.discard(answer)
            if not answer.done() or answer.cancelled():
                engine.post(lambda: engine.scheduler.drop(request))
        if isinstance(result, Exception):
            raise Refused("translation", str(result)) if isinstance(result, Failed) else refused_option(result)
        return result


def refused_option(error: Exception) -> Refused:
    """Return the refusal of a request that the models or the engine cannot do."""
    if isinstance(error, Stopped):
        return Refused("engine", STOPPED)
    if isinstance(error, Unavailable):
        return Refused("engine", str(error))
    if isinstance(error, NoCapacity):
        return Refused("capacity", str(error))
    if not isinstance(error, RedraftError):
        return Refused("engine", f"the request has failed: {type(error).__name__}")
    field = (isinstance(error, OptionError) and error.field) or ""
    return Refused("option", str(error), _FIELDS.get(field, field) or None)


async def _text(
    ask: Callable[[Callable[[], Task]], Awaitable[Any]],
    translation: Translation,
    sentences: Sequence[tuple[str, str]],
    turns: asyncio.Semaphore,
    exact: bool,
) -> Answered:
    """Translate the sentences of a text, one after another if earlier ones are the context of later ones.

    Raises:
        Refused: one of them failed.
    """
    in_order = asyncio.Semaphore(1 if translation.settings["context"] else _AT_ONCE)
    count, states = len(sentences), [START]

    async def one(place: int) -> Answered:
        sentence = sentences[place][0]
        if not sentence:
            return Answered("")
        async with in_order, turns:
            found, state = await ask(lambda: _task(translation, states[-1], sentence, exact))
            if isinstance(found, Failure):
                where = f"sentence {place + 1} of {count}: " if count > 1 else ""
                raise Refused("translation", f"{where}{found.message}")
            if translation.settings["context"]:
                states.append(state)
        return found

    async with beside(*map(one, range(count))) as tasks:
        found = await asyncio.gather(*tasks)
    return Answered(
        join_text((each.text, gap) for each, (_, gap) in zip(found, sentences, strict=True)),
        False,
        sum(each.read for each in found),
        sum(each.written for each in found),
        tuple(dict.fromkeys(remark for each in found for remark in each.remarks)),
    )


def _task(translation: Translation, state: State, sentence: str, exact: bool) -> Task:
    """Return what translates a sentence; the result is the translation, or a failure, and the next state.

    Args:
        exact: whether a draft changes nothing but the time.

    Raises:
        OptionError: the sentence is too long for the model.
    """
    text, most = as_sentence(sentence, translation.vocabulary.final_mark), translation.vocabulary.context_length
    prompt = translation.encode(text, (), None) if has_words(text) else Prompt()
    source = prompt.source_ids or prompt.encoder
    if (length := max(len(prompt.ids) + 1, len(prompt.encoder))) > most:
        raise OptionError(f"a sentence is too long: with it a prompt has {length} tokens, and {most} are possible")

    def run(draft: Ids) -> Asking[tuple[tuple[Answered | Failure, State], Ids]]:
        # An unfinished utterance whose output is the draft.
        begun = replace(state, update=Update("1", 0, ""), draft=draft if exact else ())
        events, after = yield from translation.translate(begun, Update("1", 1, sentence, final=True))
        captions = [event for event in events if isinstance(event, Caption)]
        failures = [event for event in events if isinstance(event, Failure)]
        if not captions or captions[-1].cut or (has_words(sentence) and not captions[-1].text):
            return (failures[0] if failures else Failure("there is no translation"), after), ()
        remarks = tuple(failure.message for failure in failures)
        done = Answered(captions[-1].text, False, len(after.prompt), len(after.output), remarks)
        return (done, after), after.output

    return Task(Wish(translation.language, prompt.ids, source), run)
