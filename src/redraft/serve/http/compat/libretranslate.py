"""LibreTranslate's ``/translate``, ``/detect`` and ``/languages``; see https://docs.libretranslate.com."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from redraft.captions.events import LONGEST_TEXT
from redraft.captions.languages import parse_language
from redraft.serve.http.compat.dialect import SOURCE, Body, fields, refusing, routes, translated
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

        The source `auto` is English.
        """
        found = await fields(request)
        key = found.get("api_key")
        key = key if isinstance(key, str) else ""
        hub.admission.owner(key)
        wanted = LibreTranslateRequest.checked(found)
        auto = wanted.source.lower() == "auto"
        source_language = SOURCE if auto else _canonical(wanted.source, "source")
        target = _canonical(wanted.target, "target")
        several = isinstance(wanted.q, list)
        sent = wanted.q if isinstance(wanted.q, list) else [wanted.q]
        texts = [found.text for found in await translated(hub, request, target, source_language, sent)]
        answer: dict[str, Any] = {"translatedText": texts if several else texts[0]}
        if auto:
            detected = {"confidence": 0.0, "language": source_language}  # nothing was detected
            answer["detectedLanguage"] = [detected] * len(texts) if several else detected
        return JSONResponse(answer)

    async def languages(request: Request) -> Response:
        """List the language pairs that the model was trained on."""
        offer = hub.offer
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
        """Answer English with a confidence of 0, since Redraft detects no languages."""
        found = DetectRequest.checked(await fields(request))
        hub.admission.owner(found.api_key)
        return JSONResponse([{"confidence": 0.0, "language": SOURCE}])  # nothing is detected

    paths = {"/translate": ("POST", answer), "/languages": ("GET", languages), "/detect": ("POST", detect)}
    return routes(paths, refusing("error"))


def _canonical(code: str, field: str) -> str:
    return language_of(_CODES.get(code.casefold(), code), field).canonical
