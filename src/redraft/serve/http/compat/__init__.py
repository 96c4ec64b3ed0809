"""Imitate the APIs of DeepL, LibreTranslate, OpenAI, WhisperLiveKit's translation server and, by plug-ins, others.

Each API has a module; `dialect` has what they share.  Requests are answered one by one, from what they say themselves
(`redraft.serve.service.Admission`); only WhisperLiveKit's server has sessions.

An entry point in the group ``redraft.dialects`` names a function like those in `BUILT_IN`, and is imported if the
setting ``compat`` names it; docs/compat.md has an example.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias

from starlette.routing import BaseRoute

from redraft.errors import OptionError, first_sentence
from redraft.serve.http.compat.alignatt_mt import alignatt_mt
from redraft.serve.http.compat.deepl import deepl
from redraft.serve.http.compat.libretranslate import libretranslate
from redraft.serve.http.compat.openai import openai, pattern_of
from redraft.serve.sessions.hub import Hub
from redraft.serve.settings import ServeSettings

ENTRY_POINT_GROUP = "redraft.dialects"
#: Makes the routes of an API.
Dialect: TypeAlias = Callable[[Hub], list[BaseRoute]]
#: Name in the setting ``compat`` -> its dialect.
BUILT_IN: dict[str, Dialect] = {
    "alignatt-mt": alignatt_mt,
    "deepl": deepl,
    "libretranslate": libretranslate,
    "openai": openai,
}


def check_compat(settings: ServeSettings) -> None:
    """Check the settings of imitated APIs.

    Raises:
        OptionError: an API is unknown, a plug-in cannot be imported, or ``openai_prompt`` is not a pattern.
    """
    for name in settings.compat:
        _dialect(name)
    if settings.openai_prompt is not None:
        pattern_of(settings.openai_prompt)


def compat_routes(hub: Hub) -> list[BaseRoute]:
    """Return the routes of the APIs named in the setting ``compat``."""
    return [route for name in dict.fromkeys(hub.settings.compat) for route in _dialect(name)(hub)]


def _dialect(name: str) -> Dialect:
    if name in BUILT_IN:
        return BUILT_IN[name]
    added: dict[str, EntryPoint] = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if name not in added:
        raise OptionError(f"must be one or more of {', '.join([*BUILT_IN, *added])}, not {name!r}", "compat")
    try:
        found: Dialect = added[name].load()
    except Exception as error:  # its code may raise anything
        problem = f": {name!r} ({added[name].value}) could not be loaded: {first_sentence(error)}"
        raise OptionError(problem, "compat") from error
    return found
