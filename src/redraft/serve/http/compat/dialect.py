"""Shared by the imitated APIs: reading bodies, translating, sending errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self
from urllib.parse import parse_qs

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from redraft.captions.languages import closest, parse_language
from redraft.captions.spoken import AUTO
from redraft.captions.words import has_words
from redraft.engine.chat import Answered
from redraft.protocol import Wanted
from redraft.protocol.codes import Refused
from redraft.serve.http.endpoints import (
    Endpoint,
    Lenient,
    address_of,
    answering,
    read_bytes,
    while_connected,
)
from redraft.serve.sessions.hub import Hub

_OBJECT = TypeAdapter(dict[str, Any])
#: What a text without words counts as, and the source of models that declare none.
SOURCE = "en"


class Body(Lenient):
    """Fields of a request."""

    #: Fields that would change the answer, and are not supported.
    unable: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Self:
        """Check the fields of a request.  Raises `Refused` if one is not supported, missing or invalid."""
        for name in cls.unable:
            if found.get(name):
                raise Refused("option", f"{name} is not supported by this server", name)
        return cls.checked(found)


class Detected(NamedTuple):
    """The language of a text, and how sure that is, in percent; 0 if nothing was detected."""

    language: str
    confidence: float


async def detected(hub: Hub, texts: Sequence[str], field: str) -> list[Detected]:
    """Return the language of each text, of those from which the model translates.

    A model that translates from one language alone needs no detection.

    Raises:
        Refused: the extra ``detect`` is not installed, or none of the model's languages can be detected; it names
            ``field``.
    """
    if len(known := hub.admission.service.languages[0]) == 1:
        return [Detected(known[0], 0.0)] * len(texts)
    try:
        spoken = await hub.admission.spoken(Wanted(targets=(SOURCE,), source_language=AUTO))
    except Refused as refused:
        raise Refused(refused.code, f"{field}: name the language, since {refused.sentence}", field) from None

    def find(text: str) -> Detected:
        if not has_words(text):
            return Detected(SOURCE, 0.0)
        language, probability = spoken.detect(text)
        return Detected(language, round(100 * probability, 1))

    return await asyncio.to_thread(lambda: [*map(find, texts)])


async def translated(
    hub: Hub, request: Request, target: str, source_language: str, texts: Sequence[str], **cut: bool
) -> list[Answered]:
    """Translate texts, sentence by sentence (`redraft.serve.service.Admission.translate`).

    Raises:
        ClientDisconnect: the client has gone.
        Refused: a sentence could not be translated, or the request is not possible.
    """
    wanted = Wanted(targets=(target,), source_language=source_language)
    found = await while_connected(request, hub.admission.translate(wanted, texts, address_of(request), **cut))
    return [text for each in found for text in each.values()]


async def translated_each(
    hub: Hub, request: Request, target: str, sources: Sequence[str], texts: Sequence[str], **cut: bool
) -> list[str]:
    """Translate each text from its own language; one in the target language, or without words, stays as it is.

    Raises:
        ClientDisconnect: the client has gone.
        Refused: a sentence could not be translated, or the request is not possible.
    """
    found = list(texts)
    for source in {*sources}:
        if closest(parse_language(source), [parse_language(target)]):
            continue
        theirs = [place for place, each in enumerate(sources) if each == source and has_words(texts[place])]
        if theirs:
            made = await translated(hub, request, target, source, [texts[place] for place in theirs], **cut)
            for place, each in zip(theirs, made, strict=True):
                found[place] = each.text
    return found


def routes(paths: Mapping[str, tuple[str, Endpoint]], refuse: Callable[[Refused, int], Response]) -> list[BaseRoute]:
    """Return routes by path; ``refuse`` makes the response to a refusal, given the status of our own API."""
    return [Route(path, answering(endpoint, refuse), methods=[method]) for path, (method, endpoint) in paths.items()]


def refusing(field: str) -> Callable[[Refused, int], Response]:
    """Return what makes the response to a refusal for `routes`: its sentence in a field, and 403 for a wrong key."""

    def refuse(refused: Refused, status: int) -> Response:
        status = 403 if refused.code == "key" else status
        return JSONResponse({field: refused.sentence}, status, refused.headers)

    return refuse


async def fields(request: Request, lists: Sequence[str] = ()) -> dict[str, Any]:
    """Return the fields of a JSON or form body.

    Args:
        lists: form fields that may be repeated; these become lists.

    Raises:
        Refused: the content type is neither, or the body is malformed.
    """
    body, kind = await read_bytes(request), request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/x-www-form-urlencoded":
            form = parse_qs(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=1000)
            return {name: values if name in lists else values[-1] for name, values in form.items()}
        if kind == "application/json":
            return dict(_OBJECT.validate_json(body))
    except ValueError:
        raise Refused("protocol", "the body must be a JSON object, or a form, in valid UTF-8") from None
    raise Refused("protocol", "the content type must be application/json or application/x-www-form-urlencoded")
