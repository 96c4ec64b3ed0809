"""The HTTP API in one table, from which routes, OpenAPI description and error codes are made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from redraft.serve import http, protocol
from redraft.serve.http import MOST_LINK, Sentences, Text, Translate, Translations
from redraft.serve.requests import Endpoint, answering
from redraft.serve.service import Offer
from redraft.serve.transcript import FORMS


@dataclass(frozen=True, slots=True)
class Query:
    """A query parameter.

    Attributes:
        schema: its JSON schema.
        help: its description.
    """

    name: str
    schema: Mapping[str, Any]
    help: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    Attributes:
        request: method and path, such as ``POST /v1/translate``.
        endpoint: the handler; the first line of its docstring is the summary.
        body: message types of the body, or the maximum number of characters of a plain-text body; empty without a body.
        answer: message type of the response, or its media types.
        status: HTTP status on success.
        query: query parameters.
        codes: error codes that it may return (`redraft.serve.refusals.CODES`).
    """

    request: str
    endpoint: Endpoint
    body: tuple[type[BaseModel], ...] | int = ()
    answer: type[BaseModel] | tuple[str, ...] = ("application/json",)
    status: int = 200
    query: tuple[Query, ...] = ()
    codes: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The HTTP method, in capitals."""
        return self.request.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path, with parameter names in braces."""
        return self.request.partition(" ")[2]

    @property
    def summary(self) -> str:
        """The first line of the endpoint's docstring, without its full stop."""
        return (self.endpoint.__doc__ or "").partition("\n")[0].rstrip(".")


#: Error codes of every request that is translated.
_WORK = ("key", "capacity", "limit", "draining", "engine")
_BODY = ("protocol", "size")
_TEXT = ("text/plain",)
_TRANSCRIPT = (
    Query("format", {"type": "string", "enum": list(FORMS), "default": "txt"}, "form"),
    Query("language", {"type": "array", "items": {"type": "string"}}, "target languages; all if absent"),
    Query("original", {"type": "boolean", "default": False}, "put the text as spoken first; with txt only"),
    Query("live", {"type": "boolean", "default": False}, "keep sending until the session ends"),
)
_SEQ = Query("seq", {"type": "integer", "minimum": 0}, "counts the captions; must grow", required=True)
_FINAL = Query("final", {"type": "boolean", "default": True}, "false while the text still grows")
_SPEAKER = Query("speaker", {"type": "string", "maxLength": 100}, "who is speaking")
_LINK = Query("link", {"type": "string", "maxLength": MOST_LINK}, "the link", required=True)

OPERATIONS = (
    Operation("POST /v1/translate", http.translate, (Translate,), Translations, codes=(*_BODY, "option", *_WORK)),
    Operation("POST /v1/sentences", http.sentences, (Text,), Sentences, codes=(*_BODY, "option", "key")),
    Operation(
        "POST /v1/sessions",
        http.begin,
        (protocol.Begin,),
        protocol.Started,
        201,
        codes=(*_BODY, "option", "room", *_WORK),
    ),
    Operation("GET /v1/sessions/{session}", http.about, codes=("missing",)),
    Operation(
        "GET /v1/sessions/{session}/transcript",
        http.transcript,
        answer=tuple(FORMS.values()),
        query=_TRANSCRIPT,
        codes=("missing", "option", "limit"),
    ),
    Operation("GET /v1/rooms/{room}", http.room, answer=protocol.RoomState, codes=("missing",)),
    Operation(
        "GET /v1/rooms/{room}/transcript",
        http.transcript,
        answer=tuple(FORMS.values()),
        query=_TRANSCRIPT,
        codes=("missing", "option", "limit"),
    ),
    Operation(
        "POST /v1/control/{token}",
        http.decide,
        protocol.CONTROL,
        (),
        204,
        codes=("missing", *_BODY, "caption", "limit"),
    ),
    Operation(
        "POST /v1/ingest/{token}",
        http.ingest,
        20_000,
        _TEXT,
        query=(_SEQ, _FINAL, _SPEAKER),
        codes=("missing", *_BODY, "option", "stale", "limit", "draining", "engine"),
    ),
    Operation("GET /v1/ingest/{token}", http.ingested, answer=_TEXT, codes=("missing",)),
    Operation("DELETE /v1/ingest/{token}", http.finish, answer=(), status=204, codes=("missing",)),
    Operation("GET /v1/offer", http.offer, answer=Offer),
    Operation("GET /v1/talk", http.talk),
    Operation("GET /v1/qr", http.qr, answer=("image/svg+xml",), query=(_LINK,), codes=("option",)),
    Operation("GET /health", http.health, codes=("engine",)),
    Operation("GET /ready", http.ready, codes=("engine",)),
    Operation("GET /metrics", http.metrics, answer=_TEXT, codes=("key",)),
)


def routes() -> list[Route]:
    """Return a route for every path of the table."""
    endpoints: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for operation in OPERATIONS:
        endpoints[operation.path][operation.method] = operation.endpoint
    return [Route(path, answering(_by_method(found)), methods=list(found)) for path, found in endpoints.items()]


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    """Make one endpoint for all methods of a path, so that a 405 response lists them all."""

    async def answer(request: Request) -> Response:
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return answer
