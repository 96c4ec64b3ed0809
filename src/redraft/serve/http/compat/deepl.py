"""DeepL's ``/v2/translate``, ``/v2/languages`` and ``/v2/usage``; see https://developers.deepl.com/docs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from redraft.captions.languages import parse_language
from redraft.protocol.codes import Refused
from redraft.serve.http.compat.dialect import SOURCE, Body, detected, fields, refusing, routes, translated_each
from redraft.serve.http.endpoints import bearer, language_of
from redraft.serve.sessions.hub import Hub

_SCHEME = "deepl-auth-key"
#: Character limit reported to clients; there is no limit.
_UNLIMITED = 10**12


class DeepLRequest(Body):
    """A translation request; formality and glossaries are rejected."""

    unable = "glossary_id", "tag_handling", "style_id", "custom_instructions"

    text: list[str] = Field(min_length=1, max_length=50)
    target_lang: str = Field(min_length=1, max_length=100)
    source_lang: str | None = Field(None, max_length=100)
    split_sentences: Literal["0", "1", "nonewlines"] = "1"
    formality: Literal["default", "prefer_more", "prefer_less"] = "default"
    show_billed_characters: bool = False


def deepl(hub: Hub) -> list[BaseRoute]:
    """Return the routes of the DeepL API."""

    async def answer(request: Request) -> Response:
        """Translate each text sentence by sentence, from `source_lang` into `target_lang`.

        If `source_lang` is absent, the language of each text is detected. `split_sentences` is respected.
        """
        hub.admission.owner(bearer(request, _SCHEME))
        found = await fields(request, ("text",))
        if isinstance(found.get("text"), str):
            found["text"] = [found["text"]]
        wanted = DeepLRequest.read(found)
        target = language_of(wanted.target_lang, "target_lang").canonical
        if wanted.source_lang:
            sources = [language_of(wanted.source_lang, "source_lang").canonical] * len(wanted.text)
        else:
            sources = [each.language for each in await detected(hub, wanted.text, "source_lang")]
        cut = {"lines": wanted.split_sentences == "1", "marks": wanted.split_sentences != "0"}
        texts = await translated_each(hub, request, target, sources, wanted.text, **cut)
        translations = [
            {"detected_source_language": source.upper(), "text": text}
            | ({"billed_characters": len(sent)} if wanted.show_billed_characters else {})
            for source, sent, text in zip(sources, wanted.text, texts, strict=True)
        ]
        return JSONResponse({"translations": translations})

    async def languages(request: Request) -> Response:
        """List the languages that the model was trained on."""
        hub.admission.owner(bearer(request, _SCHEME))
        offer = hub.offer
        # DeepL's own client sends a form body with GET.
        found = await fields(request) if request.headers.get("content-type") else request.query_params
        kind = found.get("type", "source")
        if kind not in ("source", "target"):
            raise Refused("option", "type must be source or target", "type")
        known = offer.target_languages if kind == "target" else offer.source_languages or (SOURCE,)
        names = [{"language": code.upper(), "name": parse_language(code).name} for code in sorted(known)]
        return JSONResponse([each | {"supports_formality": False} for each in names] if kind == "target" else names)

    async def usage(request: Request) -> Response:
        """Report no usage and a limit that is never reached."""
        hub.admission.owner(bearer(request, _SCHEME))
        return JSONResponse({"character_count": 0, "character_limit": _UNLIMITED})

    paths = {"/v2/translate": ("POST", answer), "/v2/languages": ("GET", languages), "/v2/usage": ("GET", usage)}
    return routes(paths, refusing("message"))
