"""The HTTP API in one table, from which its routes and description are made; and the description of the websockets."""

from __future__ import annotations

import html
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from redraft import __version__, protocol
from redraft.captions.events import LONGEST_TEXT
from redraft.protocol.bodies import Offer, Sentences, Text, Translate, Translations
from redraft.protocol.codes import CODES
from redraft.protocol.fields import tag_of
from redraft.serve.http import endpoints
from redraft.serve.http.endpoints import Endpoint, answering
from redraft.serve.http.pages import document
from redraft.serve.sessions.transcript import FORMS

_INFO = {"title": "Redraft", "version": f"{__version__}, protocol {protocol.VERSION}"}
_REFERENCE = "#/components/schemas/{model}"
_REFUSED = {"$ref": _REFERENCE.format(model="Refusal")}
_REFUSAL = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "field": {"type": "string"}},
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}
#: Binary frames.
_SAMPLES = {
    "summary": "Audio, after the message `audio`: signed 16-bit little-endian samples, mono, 16 kHz",
    "contentType": "application/octet-stream",
    "payload": {"type": "string", "format": "binary"},
}
#: The query of viewers.
_LANGUAGES = {
    "type": "array",
    "items": {"type": "string"},
    "description": "the languages whose captions are sent; all if absent",
}
_WANTED = {"ws": {"query": {"type": "object", "properties": {"language": _LANGUAGES}}}}
_SAMPLES_SENT = {"Samples": {"$ref": "#/components/messages/Samples"}}


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    Attributes:
        path: the path, with parameter names in braces.
        endpoint: the handler; the first line of its docstring is the summary.
        body: message types of the body, or the maximum number of characters of a plain-text body; empty without a body.
        answer: message type of the response, or its media types.
        codes: error codes that it may return (`redraft.protocol.codes.CODES`).
    """

    method: str
    path: str
    endpoint: Endpoint
    body: tuple[type[BaseModel], ...] | int = ()
    answer: type[BaseModel] | tuple[str, ...] = ("application/json",)
    status: int = 200
    query: type[endpoints.Query] | None = None
    codes: tuple[str, ...] = ()


#: Error codes of every request that is translated.
_WORK = ("key", "capacity", "limit", "draining", "engine")
_BODY = ("protocol", "size")
_TEXT = ("text/plain",)


def _transcript(path: str) -> Operation:
    return Operation(
        "GET",
        path,
        endpoints.transcript,
        answer=tuple(FORMS.values()),
        query=endpoints.TranscriptQuery,
        codes=("missing", "option", "limit"),
    )


OPERATIONS = (
    Operation(
        "POST", "/v1/translate", endpoints.translate_text, (Translate,), Translations, codes=(*_BODY, "option", *_WORK)
    ),
    Operation("POST", "/v1/sentences", endpoints.sentences, (Text,), Sentences, codes=(*_BODY, "option", "key")),
    Operation(
        "POST",
        "/v1/sessions",
        endpoints.begin,
        (protocol.Begin,),
        protocol.Started,
        201,
        codes=(*_BODY, "option", "room", *_WORK),
    ),
    Operation("GET", "/v1/sessions/{session}", endpoints.about, codes=("missing",)),
    _transcript("/v1/sessions/{session}/transcript"),
    Operation("GET", "/v1/rooms/{room}", endpoints.room, answer=protocol.RoomState, codes=("missing",)),
    _transcript("/v1/rooms/{room}/transcript"),
    Operation(
        "POST",
        "/v1/control/{token}",
        endpoints.decide,
        protocol.CONTROL,
        (),
        204,
        codes=("missing", *_BODY, "caption", "limit"),
    ),
    Operation(
        "POST",
        "/v1/ingest/{token}",
        endpoints.ingest,
        LONGEST_TEXT,
        _TEXT,
        query=endpoints.CaptionQuery,
        codes=("missing", *_BODY, "option", "stale", "limit", "draining", "engine"),
    ),
    Operation("GET", "/v1/ingest/{token}", endpoints.ingested, answer=_TEXT, codes=("missing",)),
    Operation("GET", "/v1/ingest/{token}/seq", endpoints.ingested, answer=_TEXT, codes=("missing",)),
    Operation("DELETE", "/v1/ingest/{token}", endpoints.finish, answer=(), status=204, codes=("missing",)),
    Operation("GET", "/v1/offer", endpoints.offer, answer=Offer),
    Operation("GET", "/v1/talk", endpoints.talk),
    Operation(
        "GET", "/v1/qr", endpoints.qr, answer=("image/svg+xml",), query=endpoints.Link, codes=("option", "limit")
    ),
    Operation("GET", "/health", endpoints.health, codes=("engine",)),
    Operation("GET", "/ready", endpoints.ready, codes=("engine",)),
    Operation("GET", "/metrics", endpoints.metrics, answer=_TEXT, codes=("key",)),
)


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    """Make one endpoint for all methods of a path, so that a 405 response lists them all."""

    async def answer(request: Request) -> Response:
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return answer


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of the HTTP API."""
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for operation in OPERATIONS:
        paths[operation.path][operation.method.lower()] = _described(operation)
    bodies = [kind for each in OPERATIONS if isinstance(each.body, tuple) for kind in each.body]
    answers = [each.answer for each in OPERATIONS if not isinstance(each.answer, tuple)]
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": [{"url": "."}],  # relative to this description
        "security": [{}, {"key": []}],
        "paths": dict(paths),
        "components": {
            "schemas": {**_schemas(tuple(dict.fromkeys([*bodies, *answers]))), "Refusal": _REFUSAL},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Operation) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", operation.path)
    in_path = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    query = operation.query.model_json_schema() if operation.query else {}
    in_query = [
        {"name": name, "in": "query", "required": name in query.get("required", ()), "schema": schema}
        for name, schema in query.get("properties", {}).items()
    ]
    summary = (operation.endpoint.__doc__ or "").partition("\n")[0].rstrip(".")
    found: dict[str, Any] = {"summary": summary, "responses": _responses(operation)}
    if parameters := in_path + in_query:
        found["parameters"] = parameters
    if operation.body:
        found["requestBody"] = {"required": not isinstance(operation.body, int), "content": _content(operation.body)}
    return found


def _content(body: tuple[type[BaseModel], ...] | int) -> dict[str, Any]:
    if isinstance(body, int):
        return {"text/plain": {"schema": {"type": "string", "maxLength": body}}}
    kinds = [{"$ref": _REFERENCE.format(model=kind.__name__)} for kind in body]
    return {"application/json": {"schema": kinds[0] if len(kinds) == 1 else {"oneOf": kinds}}}


def _responses(operation: Operation) -> dict[str, Any]:
    """Return the possible responses: success, and error codes by status."""
    answer = operation.answer
    content: dict[str, Any] = {kind: {} for kind in answer} if isinstance(answer, tuple) else _content((answer,))
    found = {str(operation.status): {"description": "done", **({"content": content} if content else {})}}
    codes: dict[int, list[str]] = defaultdict(list)
    for code in operation.codes:
        codes[CODES[code].status].append(code)
    for status, names in codes.items():
        means = "; ".join(f"`{name}`: {CODES[name].means}" for name in names)
        found[str(status)] = {"description": means, "content": {"application/json": {"schema": _REFUSED}}}
    return found


@cache
def asyncapi() -> dict[str, Any]:
    """Return the AsyncAPI 3.0 description of the websockets."""
    kinds = protocol.CLIENT + protocol.SERVER
    messages: dict[str, Any] = {
        kind.__name__: {"payload": {"$ref": f"#/components/schemas/{kind.__name__}"}} for kind in kinds
    }
    viewed = {"messages": _references(protocol.VIEWED), "bindings": _WANTED}
    return {
        "asyncapi": "3.0.0",
        "info": _INFO,
        "channels": {
            "live": {"address": "/v1/live", "messages": {**_references(kinds), **_SAMPLES_SENT}},
            "watch": {
                "address": "/v1/watch/{session}",
                "parameters": {"session": {"description": "the `session` of `started`"}},
                **viewed,
            },
            "room": {
                "address": "/v1/rooms/{room}/watch",
                "parameters": {"room": {"description": "the `room` of `start`"}},
                **viewed,
            },
        },
        "operations": {
            "receive": {"action": "receive", "channel": {"$ref": "#/channels/live"}},
            "send": {"action": "send", "channel": {"$ref": "#/channels/live"}},
            "watch": {"action": "send", "channel": {"$ref": "#/channels/watch"}},
            "watchRoom": {"action": "send", "channel": {"$ref": "#/channels/room"}},
        },
        "components": {"messages": {**messages, "Samples": _SAMPLES}, "schemas": _schemas(kinds)},
    }


@cache
def page() -> str:
    """Return both as a page."""
    parts = [
        "<h2>API</h2>",
        '<p>Machine-readable: <a href="openapi.json">OpenAPI</a> and <a href="asyncapi.json">AsyncAPI</a>.</p>',
        "<h3>HTTP</h3><dl>",
    ]
    for path, operations in openapi()["paths"].items():
        for method, operation in operations.items():
            parts.append(f"<dt><code>{method.upper()} {html.escape(path)}</code></dt><dd>{operation['summary']}</dd>")
    parts.append("</dl>")
    for title, kinds in (
        ("Websocket: from the client", protocol.CLIENT),
        ("Websocket: from the server", protocol.SERVER),
    ):
        parts.append(f"<h3>{title}</h3>")
        for kind in kinds:
            schema = html.escape(json.dumps(TypeAdapter(kind).json_schema(), indent=1, ensure_ascii=False))
            summary = html.escape((kind.__doc__ or "").strip().split("\n")[0])
            name = tag_of(kind)
            parts.append(f"<details><summary><code>{name}</code> {summary}</summary><pre>{schema}</pre></details>")
    parts.append("<h3>Error codes</h3><dl>")
    parts += [f"<dt><code>{name}</code></dt><dd>{html.escape(code.means)}</dd>" for name, code in CODES.items()]
    return document("API", "\n".join([*parts, "</dl>"]))


def _schemas(kinds: tuple[type, ...]) -> dict[str, Any]:
    made = models_json_schema([(kind, "validation") for kind in kinds], ref_template=_REFERENCE)[1]
    found: dict[str, Any] = made["$defs"]
    return found


def _references(kinds: tuple[type, ...]) -> dict[str, Any]:
    return {kind.__name__: {"$ref": f"#/components/messages/{kind.__name__}"} for kind in kinds}


def _always(response: Response) -> Endpoint:
    """Make an endpoint that has one response."""

    async def answer(_: Request) -> Response:
        return response

    return answer


def routes() -> list[Route]:
    """Return a route for every path of the table, and for the descriptions."""
    endpoints: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for operation in OPERATIONS:
        endpoints[operation.path][operation.method] = operation.endpoint
    return [
        *(Route(path, answering(_by_method(found)), methods=list(found)) for path, found in endpoints.items()),
        Route("/openapi.json", _always(JSONResponse(openapi()))),
        Route("/asyncapi.json", _always(JSONResponse(asyncapi()))),
        Route("/docs", _always(HTMLResponse(page()))),
    ]
