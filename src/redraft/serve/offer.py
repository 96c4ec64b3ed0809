"""The server's offer to clients."""

from __future__ import annotations

from pathlib import Path

from redraft.decoding.method import Choice, Method, Option
from redraft.decoding.types import TARGET
from redraft.models import SHIPPED
from redraft.serve.bodies import Offer, OfferedMethod, OfferedOption
from redraft.serve.service import Service


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
        recogniser=allowed.recogniser and allowed.recogniser.partition(":")[0],
        audio_backlog=allowed.audio_backlog,
        demo=model in SHIPPED,
    )


def _method(method: Method) -> OfferedMethod:
    return OfferedMethod(summary=method.summary, options=tuple(map(_option, method.options)))


def _option(option: Option | Choice) -> OfferedOption:
    words = option.words if isinstance(option, Choice) else ()
    return OfferedOption(
        name=option.name, help=option.help, default=option.default, allowed=option.allowed, words=words
    )
