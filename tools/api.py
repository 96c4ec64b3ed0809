"""The machine-readable descriptions of the server's API, OpenAPI and AsyncAPI, and its page, which the server sends."""

from __future__ import annotations

import html
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from redraft import __version__, protocol
from redraft.captions.events import LONGEST_TEXT
from redraft.captions.formats.write import FORMATS, TRANSCRIPTS
from redraft.protocol import Offer, Sentences, Text, Translate, Translations
from redraft.protocol.codes import CODES, tag_of
from redraft.serve.http import endpoints
from redraft.serve.http.endpoints import OPERATIONS, Endpoint
from redraft.serve.http.pages import document

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
class About:
    """What an endpoint takes and returns.

    Attributes:
        body: message types of the body, or the maximum number of characters of a plain-text body; empty without a body.
        answer: message type of the response, or its media types.
        codes: error codes that it may return (`redraft.protocol.codes.CODES`).
    """

    body: tuple[type[BaseModel], ...] | int = ()
    answer: type[BaseModel] | tuple[str, ...] = ("application/json",)
    status: int = 200
    query: type[endpoints.Query] | None = None
    codes: tuple[str, ...] = ()


#: Error codes of every request that is translated.
_WORK = ("key", "capacity", "limit", "draining", "engine")
_BODY = ("protocol", "size")
_TEXT = ("text/plain",)

ABOUT: dict[Endpoint, About] = {
    endpoints.translate_text: About((Translate,), Translations, codes=(*_BODY, "option", "translation", *_WORK)),
    endpoints.sentences: About((Text,), Sentences, codes=(*_BODY, "key")),
    endpoints.begin: About((protocol.Begin,), protocol.Started, 201, codes=(*_BODY, "option", "room", *_WORK)),
    endpoints.about: About(codes=("missing",)),
    endpoints.transcript: About(
        answer=tuple(FORMATS[each].media_type for each in TRANSCRIPTS),
        query=endpoints.TranscriptQuery,
        codes=("missing", "option", "limit"),
    ),
    endpoints.room: About(answer=protocol.RoomState, codes=("missing",)),
    endpoints.decide: About(protocol.CONTROL, (), 204, codes=("missing", *_BODY, "caption", "limit")),
    endpoints.ingest: About(
        LONGEST_TEXT,
        _TEXT,
        query=endpoints.CaptionQuery,
        codes=("missing", *_BODY, "option", "stale", "limit", "draining", "engine"),
    ),
    endpoints.ingested: About(answer=_TEXT, codes=("missing",)),
    endpoints.finish: About(answer=(), status=204, codes=("missing",)),
    endpoints.offer: About(answer=Offer),
    endpoints.talk: About(),
    endpoints.qr: About(answer=("image/svg+xml",), query=endpoints.Link, codes=("option", "limit")),
    endpoints.health: About(codes=("engine",)),
    endpoints.ready: About(codes=("engine",)),
    endpoints.metrics: About(answer=_TEXT, codes=("key",)),
}


def openapi() -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of the HTTP API."""
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for method, path, endpoint in OPERATIONS:
        paths[path][method.lower()] = _described(path, endpoint, ABOUT[endpoint])
    bodies = [kind for each in ABOUT.values() if isinstance(each.body, tuple) for kind in each.body]
    answers = [each.answer for each in ABOUT.values() if not isinstance(each.answer, tuple)]
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


def _described(path: str, endpoint: Endpoint, about: About) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", path)
    in_path = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    query = about.query.model_json_schema() if about.query else {}
    in_query = [
        {"name": name, "in": "query", "required": name in query.get("required", ()), "schema": schema}
        for name, schema in query.get("properties", {}).items()
    ]
    summary = (endpoint.__doc__ or "").partition("\n")[0].rstrip(".")
    found: dict[str, Any] = {"summary": summary, "responses": _responses(about)}
    if parameters := in_path + in_query:
        found["parameters"] = parameters
    if about.body:
        found["requestBody"] = {"required": not isinstance(about.body, int), "content": _content(about.body)}
    return found


def _content(body: tuple[type[BaseModel], ...] | int) -> dict[str, Any]:
    if isinstance(body, int):
        return {"text/plain": {"schema": {"type": "string", "maxLength": body}}}
    kinds = [{"$ref": _REFERENCE.format(model=kind.__name__)} for kind in body]
    return {"application/json": {"schema": kinds[0] if len(kinds) == 1 else {"oneOf": kinds}}}


def _responses(about: About) -> dict[str, Any]:
    """Return the possible responses: success, and error codes by status."""
    answer = about.answer
    content: dict[str, Any] = {kind: {} for kind in answer} if isinstance(answer, tuple) else _content((answer,))
    found = {str(about.status): {"description": "done", **({"content": content} if content else {})}}
    codes: dict[int, list[str]] = defaultdict(list)
    for code in about.codes:
        codes[CODES[code].status].append(code)
    for status, names in codes.items():
        means = "; ".join(f"`{name}`: {CODES[name].means}" for name in names)
        found[str(status)] = {"description": means, "content": {"application/json": {"schema": _REFUSED}}}
    return found


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


def files() -> dict[str, str]:
    """Return name -> text of the files that the server sends."""
    described = {"openapi.json": openapi(), "asyncapi.json": asyncapi()}
    found = {name: json.dumps(each, indent=1, ensure_ascii=False) + "\n" for name, each in described.items()}
    return {**found, "docs.html": page()}


def _schemas(kinds: tuple[type, ...]) -> dict[str, Any]:
    made = models_json_schema([(kind, "validation") for kind in kinds], ref_template=_REFERENCE)[1]
    found: dict[str, Any] = made["$defs"]
    return found


def _references(kinds: tuple[type, ...]) -> dict[str, Any]:
    return {kind.__name__: {"$ref": f"#/components/messages/{kind.__name__}"} for kind in kinds}
