"""The HTTP API in one table; `tools.api` makes its description from the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from redraft.serve.http import endpoints
from redraft.serve.http.endpoints import Endpoint, answering

#: Method, path with parameter names in braces, and endpoint, whose docstring's first line is the summary.
OPERATIONS: tuple[tuple[str, str, Endpoint], ...] = (
    ("POST", "/v1/translate", endpoints.translate_text),
    ("POST", "/v1/sentences", endpoints.sentences),
    ("POST", "/v1/sessions", endpoints.begin),
    ("GET", "/v1/sessions/{session}", endpoints.about),
    ("GET", "/v1/sessions/{session}/transcript", endpoints.transcript),
    ("GET", "/v1/rooms/{room}", endpoints.room),
    ("GET", "/v1/rooms/{room}/transcript", endpoints.transcript),
    ("POST", "/v1/control/{token}", endpoints.decide),
    ("POST", "/v1/ingest/{token}", endpoints.ingest),
    ("GET", "/v1/ingest/{token}", endpoints.ingested),
    ("GET", "/v1/ingest/{token}/seq", endpoints.ingested),
    ("DELETE", "/v1/ingest/{token}", endpoints.finish),
    ("GET", "/v1/offer", endpoints.offer),
    ("GET", "/v1/talk", endpoints.talk),
    ("GET", "/v1/qr", endpoints.qr),
    ("GET", "/health", endpoints.health),
    ("GET", "/ready", endpoints.ready),
    ("GET", "/metrics", endpoints.metrics),
)


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    """Make one endpoint for all methods of a path, so that a 405 response lists them all."""

    async def answer(request: Request) -> Response:
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return answer


def routes() -> list[Route]:
    """Return a route for every path of the table."""
    found: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for method, path, endpoint in OPERATIONS:
        found[path][method] = endpoint
    return [Route(path, answering(_by_method(each)), methods=list(each)) for path, each in found.items()]
