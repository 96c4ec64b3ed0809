"""Imitate the HTTP APIs of DeepL, LibreTranslate and OpenAI.

Captioning tools send such a service a growing sentence again and again.  `callers` finds out which requests belong to
the same sentence, and translates them as one utterance; `dialect` removes what a tool adds around the text, and
`openai` finds the languages in prompts.  Each API has a module.
"""

from __future__ import annotations

from starlette.routing import BaseRoute

from redraft.errors import OptionError
from redraft.serve.http.compat.callers import Callers
from redraft.serve.http.compat.deepl import deepl
from redraft.serve.http.compat.libretranslate import libretranslate
from redraft.serve.http.compat.openai import openai
from redraft.serve.sessions.hub import Hub
from redraft.serve.settings import ServeSettings

#: Name in the setting ``compat`` -> its routes.
DIALECTS = {"deepl": deepl, "libretranslate": libretranslate, "openai": openai}


def check_compat(settings: ServeSettings) -> None:
    """Check the setting ``compat``.  Raises `OptionError` if an API is unknown."""
    if unknown := [name for name in settings.compat if name not in DIALECTS]:
        raise OptionError(f"must be one or more of {', '.join(DIALECTS)}, not {unknown[0]!r}", "compat")


def compat_routes(hub: Hub) -> list[BaseRoute]:
    """Return the routes of the APIs named in the setting ``compat``."""
    if not hub.settings.compat:
        return []
    callers = Callers(hub)
    return [route for name in dict.fromkeys(hub.settings.compat) for route in DIALECTS[name](callers)]
