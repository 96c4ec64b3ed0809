"""Descriptions that other programs read, made from the messages: OpenAPI for HTTP, AsyncAPI for the websockets."""

from __future__ import annotations

import html
import json
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from redraft import __version__
from redraft.serve import protocol
from redraft.serve.bodies import Offer, Translate, Translations
from redraft.serve.qr import MOST_LINK
from redraft.serve.sentences import Sentences, Text
from redraft.serve.transcript import FORMS

_HTTP: tuple[type[BaseModel], ...] = (
    Offer,
    protocol.Begin,
    Translate,
    Translations,
    protocol.Started,
    protocol.Room,
    *protocol.CONTROL,
    Text,
    Sentences,
)
_CONTROL = {"oneOf": [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in protocol.CONTROL]}
_INFO = {"title": "Redraft", "version": f"{__version__}, protocol {protocol.VERSION}"}
_SESSION = {"name": "session", "in": "path", "required": True, "schema": {"type": "string"}}
_ROOM = {"name": "room", "in": "path", "required": True, "schema": {"type": "string"}}
_TOKEN = {"name": "token", "in": "path", "required": True, "schema": {"type": "string"}}


@cache
def openapi() -> dict[str, Any]:
    """OpenAPI 3.1 of what is asked for over HTTP."""
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "security": [{}, {"key": []}],
        "paths": {
            "/v1/translate": {"post": _posting("Translate one text", "Translate", 200, "Translations")},
            "/v1/sentences": {"post": _posting("Split a text into sentences", "Text", 200, "Sentences")},
            "/v1/sessions": {"post": _posting("Begin a session whose captions come by POST", "Begin", 201, "Started")},
            "/v1/ingest/{token}": {
                "parameters": [_TOKEN],
                "post": {
                    "summary": "Send a caption; answers with the seq of the newest one",
                    "parameters": [
                        _query("seq", {"type": "integer", "minimum": 0}, "counts the POSTs", required=True),
                        _query("final", {"type": "boolean", "default": True}, "false while the text still grows"),
                    ],
                    "requestBody": {"content": {"text/plain": {"schema": {"type": "string", "maxLength": 20_000}}}},
                    "responses": _responses(200, {"text/plain": {}}),
                },
                "get": {"summary": "The seq of the newest caption", "responses": _responses(200, {"text/plain": {}})},
                "delete": {"summary": "End the session", "responses": _responses(204, {})},
            },
            "/v1/sessions/{session}": {
                "parameters": [_SESSION],
                "get": {"summary": "What viewers may know", "responses": _responses(200, {"application/json": {}})},
            },
            "/v1/sessions/{session}/transcript": {"parameters": [_SESSION], "get": _transcript("The final captions")},
            "/v1/rooms/{room}": {
                "parameters": [_ROOM],
                "get": {
                    "summary": "What a room shows",
                    "responses": _responses(200, {"application/json": {"schema": _reference("Room")}}),
                },
            },
            "/v1/rooms/{room}/transcript": {
                "parameters": [_ROOM],
                "get": _transcript("The final captions of its latest session"),
            },
            "/v1/control/{token}": {
                "parameters": [_TOKEN],
                "post": {
                    "summary": "Pause captions for viewers, hide one or correct one",
                    "requestBody": {"required": True, "content": {"application/json": {"schema": _CONTROL}}},
                    "responses": _responses(204, {}),
                },
            },
            "/v1/offer": {
                "get": {
                    "summary": "What a client may ask for",
                    "responses": _responses(200, {"application/json": {"schema": _reference("Offer")}}),
                }
            },
            "/v1/talk": {
                "get": {"summary": "The demo talk's updates", "responses": _responses(200, {"application/json": {}})}
            },
            "/v1/qr": {
                "get": {
                    "summary": "The QR code of a viewer's link",
                    "parameters": [
                        _query("link", {"type": "string", "maxLength": MOST_LINK}, "the link", required=True)
                    ],
                    "responses": _responses(200, {"image/svg+xml": {}}),
                }
            },
            "/health": {"get": {"summary": "Whether it works", "responses": _responses(200, {"application/json": {}})}},
            "/ready": {
                "get": {"summary": "Whether it takes newcomers", "responses": _responses(200, {"application/json": {}})}
            },
            "/metrics": {"get": {"summary": "For Prometheus", "responses": _responses(200, {"text/plain": {}})}},
        },
        "components": {
            "schemas": {**_schemas(_HTTP), "Refusal": _REFUSAL},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


_REFUSAL = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}


@cache
def asyncapi() -> dict[str, Any]:
    """AsyncAPI 3.0 of the websockets."""
    kinds = protocol.CLIENT + protocol.SERVER
    messages = {kind.__name__: {"payload": {"$ref": f"#/components/schemas/{kind.__name__}"}} for kind in kinds}
    return {
        "asyncapi": "3.0.0",
        "info": _INFO,
        "channels": {
            "live": {"address": "/v1/live", "messages": _references(kinds)},
            "watch": {
                "address": "/v1/watch/{session}",
                "parameters": {"session": {"description": "the `session` of `started`"}},
                "messages": _references(protocol.SERVER),
            },
            "room": {
                "address": "/v1/rooms/{room}/watch",
                "parameters": {"room": {"description": "the `room` of `start`"}},
                "messages": _references(protocol.SERVER),
            },
        },
        "operations": {
            "say": {"action": "receive", "channel": {"$ref": "#/channels/live"}},
            "hear": {"action": "send", "channel": {"$ref": "#/channels/live"}},
            "watch": {"action": "send", "channel": {"$ref": "#/channels/watch"}},
            "watchRoom": {"action": "send", "channel": {"$ref": "#/channels/room"}},
        },
        "components": {"messages": messages, "schemas": _schemas(kinds)},
    }


def page() -> str:
    """Both as a page without scripts."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Redraft: interfaces</title>',
        '<meta name="viewport" content="width=device-width"></head><body>',
        "<h1>Redraft: interfaces</h1>",
        '<p>To be read by programs: <a href="/openapi.json">OpenAPI</a> and <a href="/asyncapi.json">AsyncAPI</a>.</p>',
        "<h2>HTTP</h2><dl>",
    ]
    for path, operations in openapi()["paths"].items():
        for method, operation in operations.items():
            if method != "parameters":
                parts.append(
                    f"<dt><code>{method.upper()} {html.escape(path)}</code></dt><dd>{operation['summary']}</dd>"
                )
    parts.append("</dl><h2>Websocket</h2>")
    for title, kinds in (("From the client", protocol.CLIENT), ("From the server", protocol.SERVER)):
        parts.append(f"<h3>{title}</h3>")
        for kind in kinds:
            schema = html.escape(json.dumps(kind.model_json_schema(), indent=1, ensure_ascii=False))
            summary = html.escape((kind.__doc__ or "").strip().split("\n")[0])
            name = kind.model_fields["type"].default
            parts.append(f"<details><summary><code>{name}</code> {summary}</summary><pre>{schema}</pre></details>")
    parts.append("<h3>Codes of errors</h3><dl>")
    parts += [f"<dt><code>{code}</code></dt><dd>{html.escape(means)}</dd>" for code, means in protocol.CODES.items()]
    return "\n".join([*parts, "</dl></body></html>", ""])


def _schemas(kinds: tuple[type[BaseModel], ...]) -> dict[str, Any]:
    made = models_json_schema([(kind, "validation") for kind in kinds], ref_template="#/components/schemas/{model}")[1]
    found: dict[str, Any] = made["$defs"]
    return found


def _references(kinds: tuple[type[BaseModel], ...]) -> dict[str, Any]:
    return {kind.__name__: {"$ref": f"#/components/messages/{kind.__name__}"} for kind in kinds}


def _query(name: str, schema: dict[str, Any], description: str, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "description": description, "schema": schema}


def _transcript(summary: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "parameters": [
            _query("format", {"type": "string", "enum": list(FORMS), "default": "txt"}, "form"),
            _query("language", {"type": "array", "items": {"type": "string"}}, "languages; all, if absent"),
            _query("live", {"type": "boolean", "default": False}, "go on until the session ends"),
        ],
        "responses": _responses(200, {kind: {} for kind in FORMS.values()}),
    }


def _posting(summary: str, body: str, status: int, answer: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": _reference(body)}}},
        "responses": _responses(status, {"application/json": {"schema": _reference(answer)}}),
    }


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _responses(status: int, content: dict[str, Any]) -> dict[str, Any]:
    refused = {"application/json": {"schema": _reference("Refusal")}}
    return {
        str(status): {"description": "done", **({"content": content} if content else {})},
        "default": {"description": "refused, and why", "content": refused},
    }
