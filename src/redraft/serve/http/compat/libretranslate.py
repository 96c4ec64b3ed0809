"""LibreTranslate's ``/translate``, ``/detect`` and ``/languages``; see https://docs.libretranslate.com."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from redraft.captions.events import LONGEST_TEXT
from redraft.captions.languages import parse_language
from redraft.serve.http.compat.callers import Callers
from redraft.serve.http.compat.dialect import SOURCE, caller, fields, refusing, routes, translate_plain
from redraft.serve.http.endpoints import Lenient, language_of

#: LibreTranslate's own codes: Traditional Chinese, and the Portuguese of Brazil.
_CODES = {"zt": "zh-Hant", "pb": "pt-BR"}


class LibreTranslateRequest(Lenient):
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


def libretranslate(callers: Callers) -> list[BaseRoute]:
    """Return the routes of the LibreTranslate API."""

    async def answer(request: Request) -> Response:
        found = await fields(request)
        key = found.get("api_key")
        key = key if isinstance(key, str) else ""
        owner = callers.hub.admission.owner(key)
        wanted = LibreTranslateRequest.checked(found)
        auto = wanted.source.lower() == "auto"
        source_language = SOURCE if auto else _canonical(wanted.source, "source")
        target = _canonical(wanted.target, "target")
        who = caller(request, "libretranslate", key, owner, target, source_language)
        several = isinstance(wanted.q, list)
        texts = await translate_plain(callers, request, who, wanted.q if isinstance(wanted.q, list) else [wanted.q])
        answer: dict[str, Any] = {"translatedText": texts if several else texts[0]}
        if auto:
            detected = {"confidence": 0.0, "language": source_language}  # nothing was detected
            answer["detectedLanguage"] = [detected] * len(texts) if several else detected
        return JSONResponse(answer)

    async def languages(request: Request) -> Response:
        offer = callers.hub.offer
        sources = offer.source_languages or (SOURCE,)
        listed = [
            {
                "code": code,
                "name": parse_language(code).name,
                "targets": sorted(set(offer.target_languages) - {code}),
            }
            for code in sorted(sources)
        ]
        return JSONResponse(listed)

    async def detect(request: Request) -> Response:
        found = DetectRequest.checked(await fields(request))
        callers.hub.admission.owner(found.api_key)
        return JSONResponse([{"confidence": 0.0, "language": SOURCE}])  # nothing is detected

    paths = {"/translate": ("POST", answer), "/languages": ("GET", languages), "/detect": ("POST", detect)}
    return routes(paths, refusing("error"))


def _canonical(code: str, field: str) -> str:
    return language_of(_CODES.get(code.casefold(), code), field).canonical
