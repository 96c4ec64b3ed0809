"""The server's offer to clients."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from redraft.decoding.method import Choice, Method, Option
from redraft.decoding.types import TARGET
from redraft.errors import RedraftError
from redraft.models import SHIPPED
from redraft.serve.bodies import Offer, OfferedMethod, OfferedOption
from redraft.serve.service import Service
from redraft.speech.registry import all_recognisers, resolve


def offer_of(service: Service, *, key: bool, model: str) -> Offer:
    """Return what clients may ask of the models.

    Args:
        service: the models and the operator's limits.
        key: whether an API key is needed.
        model: name or path of the model as set by the operator; clients get its name only, never a path.
    """
    allowed = service.settings
    sources, targets = service.languages
    return Offer(
        methods=allowed.methods,
        about={name: _method(method) for name, method in service.methods.items()},
        source_languages=sources,
        target_languages=targets,
        most_targets=allowed.targets,
        most_context=allowed.context,
        most_glossary=allowed.glossary,
        key=key,
        model=service.backends[TARGET].metadata.get("general.name") or Path(model).name,
        recogniser=allowed.recogniser and offered_recogniser(allowed.recogniser, sources[0] if sources else "en"),
        source_policy=allowed.source,
        sentences=allowed.sentences,
        audio_backlog=allowed.audio_backlog,
        transcript_seconds=max(allowed.keep_seconds, allowed.transcript_seconds),
        demo=model in SHIPPED,
    )


@cache
def offered_recogniser(spec: str, language: str) -> str:
    """Return a recogniser's name, and its model if that is a public name rather than a place."""
    with suppress(RedraftError):  # it may still recognise another language
        spec = resolve(spec, language)
    name, _, model = spec.partition(":")
    public = model in getattr(all_recognisers().get(name), "MODELS", ())
    return spec if public else name


def _method(method: Method) -> OfferedMethod:
    return OfferedMethod(summary=method.summary, options=tuple(map(_option, method.options)))


def _option(option: Option | Choice) -> OfferedOption:
    words = option.words if isinstance(option, Choice) else ()
    return OfferedOption(
        name=option.name, help=option.help, default=option.default, allowed=option.allowed, words=words
    )
