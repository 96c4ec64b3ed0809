"""DeepL's ``POST /v2/translate``, see https://developers.deepl.com/docs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from redraft.serve.compat.dialect import Asked, Body, caller, checked, fields, routes, tag
from redraft.serve.refusals import Refused

#: Code of a refusal -> status, where DeepL has another one than this server.
_STATUS = {"key": 403}
_SCHEME = "deepl-auth-key "
#: Fields that would change the translation, and that nothing here can do.
_UNABLE = ("glossary_id", "tag_handling", "style_id", "custom_instructions")


class DeepLRequest(Body):
    """A request; what DeepL calls formality and glossaries is refused."""

    text: list[str] = Field(min_length=1, max_length=50)
    target_lang: str = Field(min_length=1, max_length=100)
    source_lang: str | None = Field(None, max_length=100)
    formality: Literal["default", "prefer_more", "prefer_less"] = "default"
    show_billed_characters: bool = False
    auth_key: str | None = None


def deepl(asked: Asked) -> list[BaseRoute]:
    """The routes of this dialect."""

    async def translate(request: Request) -> Response:
        found = await fields(request, ("text",))
        if isinstance(found.get("text"), str):
            found["text"] = [found["text"]]
        header = request.headers.get("authorization", "")
        given = header[len(_SCHEME) :].strip() if header.lower().startswith(_SCHEME) else found.get("auth_key")
        key = given if isinstance(given, str) else ""
        owner = asked.hub.owner(key)
        for name in _UNABLE:
            if found.get(name):
                raise Refused("option", f"{name} is not supported by this server")
        wanted = checked(DeepLRequest, found)
        target = tag(wanted.target_lang, "target_lang")
        source = tag(wanted.source_lang, "source_lang") if wanted.source_lang else asked.source
        who = caller(request, "deepl", key, owner, target, source)
        texts = await asked.plain(request, who, wanted.text)
        detected = source.upper()
        translations = [
            {"detected_source_language": detected, "text": text}
            | ({"billed_characters": len(sent)} if wanted.show_billed_characters else {})
            for sent, text in zip(wanted.text, texts, strict=True)
        ]
        return JSONResponse({"translations": translations})

    return routes({"/v2/translate": ("POST", translate)}, refuse)


def refuse(refused: Refused, status: int) -> Response:
    """A refusal as DeepL sends it."""
    return JSONResponse({"message": refused.sentence}, _STATUS.get(refused.code, status))
