"""The models, the operator's limits, and admission of sessions to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

from redraft.backends.load import check_same_vocabulary
from redraft.captions.formats.outputs import FORMATS, TRANSCRIPTS
from redraft.captions.languages import parse_language
from redraft.captions.metadata import SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY
from redraft.captions.script import writing_of
from redraft.captions.settings import Settings
from redraft.captions.spoken import Spoken
from redraft.captions.style import Style
from redraft.captions.templates import prompt_file
from redraft.captions.translation import Translation
from redraft.decoding.backend import Backend, Capability
from redraft.decoding.methods import get_method
from redraft.decoding.types import DRAFT_MODEL, TARGET
from redraft.engine.chat import Chat, chat_of
from redraft.engine.engine import LATE, Engine, Engines, Stopped
from redraft.engine.lanes import Answer, Lane
from redraft.engine.scheduler import NoCapacity
from redraft.errors import CapabilityError, OptionError, RedraftError, Unavailable
from redraft.models import SHIPPED
from redraft.protocol import Wanted
from redraft.protocol.bodies import Offer, OfferedMethod
from redraft.protocol.codes import Refused
from redraft.serve.access import ApiKeys
from redraft.serve.settings import ServeSettings
from redraft.speech.registry import all_recognisers, resolve
from redraft.translator import prompt_encoder, source_languages, vocabulary_of

#: Most entries of a glossary for one language.
MOST_TERMS = 64


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
            if method.small_model and DRAFT_MODEL not in backends:
                raise CapabilityError(f"method {method.name!r} needs a small model; name it with --draft-model")
        if DRAFT_MODEL in backends:
            check_same_vocabulary(backends[TARGET], backends[DRAFT_MODEL])
        self.vocabulary = vocabulary_of(backends)
        self._prompt = None if settings.prompt is None else prompt_file(settings.prompt)

    @property
    def languages(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Source and target languages that the model declares it was trained on; empty if it declares none."""
        metadata = self.backends[TARGET].metadata
        sources, targets = (metadata.get(key, "") for key in (SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY))
        return _tags(sources), _tags(targets)

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
        target = self.backends[TARGET]
        encoders = {each.tag: prompt_encoder(target, style, each, settings.context) for each in languages}
        if len({each.canonical for each in languages}) < len(languages):
            raise OptionError("must be different languages", "targets")
        return [
            Translation(each.tag, encoders[each.tag], self.vocabulary, settings, writing_of(each)) for each in languages
        ]

    def _check(self, wanted: Wanted) -> None:
        """Check a request against the operator's limits."""
        if wanted.method is not None and wanted.method not in self.methods:
            raise OptionError(f"must be one of {', '.join(self.methods)}, not {wanted.method!r}", "method")
        if (count := len(wanted.targets)) > self.settings.targets:
            raise OptionError(f"must have at most {self.settings.targets} languages, not {count}", "targets")
        if (count := max(map(len, wanted.glossary.values()), default=0)) > MOST_TERMS:
            raise OptionError(f"must have at most {MOST_TERMS} entries for a language, not {count}", "glossary")


def _tags(text: str) -> tuple[str, ...]:
    return tuple(tag.strip() for tag in text.split(",") if tag.strip())


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
    """Return a recogniser's name, and its model if that is a public name rather than a place."""
    with suppress(RedraftError):  # it may still recognise another language
        spec = resolve(spec, language)
    name, _, model = spec.partition(":")
    public = model in getattr(all_recognisers().get(name), "MODELS", ())
    return spec if public else name


STOPPED = "the server cannot translate any more and must be started again"
VIEWERS_ONLY = "this server only serves viewers: send updates to another one"
DRAINING = "the server is being stopped: connect again in a moment"
#: Fields that the library names otherwise than the protocol.
_FIELDS = {"source language": "source_language", "target": "targets", "target language": "targets"}


class Admission:
    """Checks capacity and API keys, and makes lanes.

    Args:
        service: the models and the operator's limits; None without engines.
        keys: the API keys; None if the server needs none.
    """

    def __init__(self, service: Service | None, engines: Engines, keys: ApiKeys | None = None) -> None:
        self.keys = keys
        self._service, self._engines = service, engines
        self.draining = False

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
