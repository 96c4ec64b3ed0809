"""LibreTranslate's ``/translate``, ``/detect`` and ``/languages``; see https://docs.libretranslate.com."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from redraft.captions.events import LONGEST_TEXT
from redraft.captions.languages import parse_language
from redraft.captions.spoken import AUTO
from redraft.serve.http.compat.dialect import SOURCE, Body, detected, fields, refusing, routes, translated_each
from redraft.serve.http.endpoints import Lenient, language_of
from redraft.serve.sessions.hub import Hub

#: LibreTranslate's own codes: Traditional Chinese, and the Portuguese of Brazil.
_CODES = {"zt": "zh-Hant", "pb": "pt-BR"}


class LibreTranslateRequest(Body):
    """A translation request; plain text only."""

    q: str | list[str] = Field(max_length=LONGEST_TEXT)
    source: str = Field(min_length=1, max_length=100)
    target: str = Field(min_length=1, max_length=100)
    format: Literal["text"] = "text"
    api_key: str | None = None


class DetectRequest(Lenient):
    """A language detection request."""

    q: str = Field(max_length=LONGEST_TEXT)
    api_key: str | None = None


def libretranslate(hub: Hub) -> list[BaseRoute]:
    """Return the routes of the LibreTranslate API."""

    async def answer(request: Request) -> Response:
        """Translate `q`, a text or a list of texts, sentence by sentence, from `source` into `target`.

        With the source `auto`, their language is detected.
        """
        wanted = LibreTranslateRequest.checked(await fields(request))
        hub.admission.owner(wanted.api_key)
        auto = wanted.source.lower() == AUTO
        target = _canonical(wanted.target, "target")
        several = isinstance(wanted.q, list)
        sent = wanted.q if isinstance(wanted.q, list) else [wanted.q]
        # One language for all of them, as in LibreTranslate.
        (found,) = await detected(hub, ["\n".join(sent)], "source") if auto else (None,)
        source = found.language if found else _canonical(wanted.source, "source")
        texts = await translated_each(hub, request, target, [source] * len(sent), sent)
        answer: dict[str, Any] = {"translatedText": texts if several else texts[0]}
        if found:
            answer["detectedLanguage"] = [found._asdict()] * len(sent) if several else found._asdict()
        return JSONResponse(answer)

    async def languages(request: Request) -> Response:
        """List the language pairs that the model was trained on."""
        offer = hub.offer
        sources = offer.source_languages or (SOURCE,)
        listed = [
            {"code": code, "name": parse_language(code).name, "targets": sorted(set(offer.target_languages) - {code})}
            for code in sorted(sources)
        ]
        return JSONResponse(listed)

    async def detect(request: Request) -> Response:
        """Detect the language of `q`, of those from which the model translates."""
        found = DetectRequest.checked(await fields(request))
        hub.admission.owner(found.api_key)
        return JSONResponse([each._asdict() for each in await detected(hub, [found.q], "q")])

    paths = {"/translate": ("POST", answer), "/languages": ("GET", languages), "/detect": ("POST", detect)}
    return routes(paths, refusing("error"))


def _canonical(code: str, field: str) -> str:
    return language_of(_CODES.get(code.casefold(), code), field).canonical
