"""Shared by the imitated APIs: reading bodies, identifying callers, sending errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from redraft.protocol.codes import Refused
from redraft.serve.http.compat.callers import Caller, Callers
from redraft.serve.http.compat.instructions import marked
from redraft.serve.http.endpoints import Endpoint, address_of, answering, read_bytes

_OBJECT = TypeAdapter(dict[str, Any])
#: Source language of requests that name none.
SOURCE = "en"


async def translate_plain(callers: Callers, request: Request, caller: Caller, texts: Sequence[str]) -> list[str]:
    """Translate texts from callers that add no instructions; text inside a pair of symbols is translated separately."""
    pieces = [_pieces(text) for text in texts]
    sent = [text for each in pieces for text, _ in each]
    found = iter(await callers.replies(caller, sent, request.is_disconnected))
    return ["".join(next(found).text + behind for _, behind in each) for each in pieces]


def _pieces(text: str) -> list[tuple[str, str]]:
    """Split a text at a pair of symbols; each part comes with the symbols that follow it."""
    pair = marked(text)
    if pair is None:
        return [(text, "")]
    context = pair.before.rstrip()
    mark = pair.after.strip()
    context = context.removesuffix(mark)
    words = context.rstrip()
    return [(words, pair.before[len(words) :]), (pair.text, pair.after)]


def routes(paths: Mapping[str, tuple[str, Endpoint]], refuse: Callable[[Refused, int], Response]) -> list[BaseRoute]:
    """Return routes by path; ``refuse`` makes the response to a refusal, given the status of our own API."""
    return [Route(path, answering(endpoint, refuse), methods=[method]) for path, (method, endpoint) in paths.items()]


def refusing(field: str) -> Callable[[Refused, int], Response]:
    """Return what makes the response to a refusal for `routes`: its sentence in a field, and 403 for a wrong key."""
    return lambda refused, status: JSONResponse({field: refused.sentence}, 403 if refused.code == "key" else status)


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


def caller(
    request: Request, dialect: str, key: str, owner: str, target: str, source_language: str, *more: str
) -> Caller:
    """Identify the caller of a request by API, key, address, user agent and ``more``."""
    address = address_of(request)
    marks = (dialect, owner, key, address, request.headers.get("user-agent", ""), *more)
    return Caller(marks, address, target, source_language)
