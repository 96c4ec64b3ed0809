"""Drop-in translation services: the requests of DeepL, LibreTranslate and OpenAI, answered by this server.

Captioning tools call such a service again and again with a sentence that grows.  `continuation` recognises the
sentence, `callers` translates it as the utterance that it is, `wrappers` and `prompts` read what a tool puts round it.
Each dialect is one file.
"""

from __future__ import annotations

from starlette.routing import BaseRoute

from redraft.captions.languages import parse_language
from redraft.errors import OptionError
from redraft.serve.compat.callers import Callers
from redraft.serve.compat.deepl import deepl
from redraft.serve.compat.dialect import Asked
from redraft.serve.compat.libretranslate import libretranslate
from redraft.serve.compat.openai import openai
from redraft.serve.hub import Hub
from redraft.serve.settings import ServeSettings

#: The services that can be imitated.
DIALECTS = {"deepl": deepl, "libretranslate": libretranslate, "openai": openai}


def check_compat(settings: ServeSettings) -> None:
    """Whether there are such services to stand in for.

    Raises:
        OptionError: there is no such service, or no such language.
    """
    if unknown := [name for name in settings.compat if name not in DIALECTS]:
        raise OptionError(f"compat must be one or more of {', '.join(DIALECTS)}, not {unknown[0]!r}")
    parse_language(settings.compat_source, "compat_source")


def compat_routes(hub: Hub) -> list[BaseRoute]:
    """The routes of the services that the operator wants to be imitated.

    Raises:
        OptionError: as of `check_compat`.
    """
    settings = hub.settings
    check_compat(settings)
    if not settings.compat:
        return []
    asked = Asked(hub, Callers(hub), parse_language(settings.compat_source).canonical)
    return [route for name in dict.fromkeys(settings.compat) for route in DIALECTS[name](asked)]
