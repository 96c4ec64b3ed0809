"""Shared by the imitated APIs: reading bodies, translating, sending errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self
from urllib.parse import parse_qs

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from redraft.protocol import Wanted
from redraft.protocol.codes import Refused
from redraft.serve.http.endpoints import (
    Endpoint,
    Lenient,
    address_of,
    answering,
    read_bytes,
    retry_after,
    while_connected,
)
from redraft.serve.requests import Translated
from redraft.serve.sessions.hub import Hub

_OBJECT = TypeAdapter(dict[str, Any])
#: Source language of requests that name none.
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


async def translated(
    hub: Hub, request: Request, target: str, source_language: str, texts: Sequence[str], **cut: bool
) -> list[Translated]:
    """Translate texts, sentence by sentence (`redraft.serve.requests.Requests.translate`).

    Raises:
        ClientDisconnect: the client has gone.
        Refused: a sentence could not be translated, or the request is not possible.
    """
    wanted = Wanted(targets=(target,), source_language=source_language)
    found = await while_connected(request, hub.requests.translate(wanted, texts, address_of(request), **cut))
    return [text for each in found for text in each.values()]


def routes(paths: Mapping[str, tuple[str, Endpoint]], refuse: Callable[[Refused, int], Response]) -> list[BaseRoute]:
    """Return routes by path; ``refuse`` makes the response to a refusal, given the status of our own API."""
    return [Route(path, answering(endpoint, refuse), methods=[method]) for path, (method, endpoint) in paths.items()]


def refusing(field: str) -> Callable[[Refused, int], Response]:
    """Return what makes the response to a refusal for `routes`: its sentence in a field, and 403 for a wrong key."""

    def refuse(refused: Refused, status: int) -> Response:
        status = 403 if refused.code == "key" else status
        return JSONResponse({field: refused.sentence}, status, retry_after(refused))

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
