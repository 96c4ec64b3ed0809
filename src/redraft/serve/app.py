"""The ASGI application: checks before it starts, models, routes, and what starts and stops with it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import WebSocketRoute

from redraft.backends.load import BRANCHES_OF_A_TREE, default_contexts, on_transformers, open_models
from redraft.backends.options import MOST_SEQUENCES
from redraft.backends.remote.address import is_remote
from redraft.captions.languages import parse_language
from redraft.captions.script import writing_of
from redraft.decoding.backend import Backend, Capability
from redraft.decoding.drive import open_slots
from redraft.decoding.methods import get_method
from redraft.engine.engine import Engine, Engines
from redraft.engine.scheduler import DEFAULT_LANES, UNLIMITED, Scheduler
from redraft.errors import OptionError
from redraft.protocol.codes import Refused
from redraft.serve.access import ApiKeys
from redraft.serve.http import endpoints, pages
from redraft.serve.http.compat import check_compat, compat_routes
from redraft.serve.http.endpoints import QrCodes, demo_talk, refusal
from redraft.serve.http.security import Guard
from redraft.serve.http.sockets import live, watch, watch_room
from redraft.serve.metrics import Metrics
from redraft.serve.service import Service
from redraft.serve.sessions.fanout import fanout_class
from redraft.serve.sessions.hub import Hub
from redraft.serve.sessions.rooms import check_rooms
from redraft.serve.sessions.session_audio import check_recognition, try_recogniser
from redraft.serve.settings import ServeSettings
from redraft.tasks import beside

#: Context length of a slot, unless the operator sets another one.
_CONTEXT_LENGTH = 512


def check(settings: ServeSettings) -> None:
    """Check everything that can be checked without loading a model.

    Raises:
        MissingExtra: a package is not installed.
        OptionError: a file of API keys, a room, an imitated API, a recogniser or the fan-out cannot be used.
    """
    if not settings.viewers_only:
        check_rooms(settings.rooms, ApiKeys(settings.keys) if settings.keys else None)
    check_compat(settings)
    check_recognition(settings)
    fanout_class(settings).check(settings)


def open_hub(settings: ServeSettings) -> Hub:
    """Return the hub, with its models unless it serves only viewers.  Raises `RedraftError` if one cannot be used."""
    if settings.viewers_only:
        return make_hub(settings, None, [])
    engines = open_backends(settings)
    service = Service(engines[0], settings)
    try_recogniser(settings, service.languages[0])
    return make_hub(settings, service, engines)


def open_backends(settings: ServeSettings) -> list[dict[str, Backend]]:
    """Load the models of every engine, by name, with their share of the slots.

    Raises:
        CapabilityError: a draft model is needed and none is known, or is given and not needed.
        ModelError: a model does not exist, or its file is invalid.
        OptionError: a method or an option is unknown, or there are too many slots for draft trees.
    """
    methods, count = [get_method(name) for name in settings.methods], _engines(settings)
    slots, most = -(-settings.slots // count), MOST_SEQUENCES // (1 + BRANCHES_OF_A_TREE)
    if slots > most and any(Capability.TREES in method.needs for method in methods):
        problem = f"must be at most {most * count} for draft trees, which take sequences of the cache too"
        raise OptionError(f"{problem}, not {settings.slots}", "slots")
    engine = {"context_length": _CONTEXT_LENGTH, **settings.engine}
    return open_models(methods, settings.model, settings.draft_model, engine, slots, ExitStack(), count)


def _engines(settings: ServeSettings) -> int:
    """Return the number of engines.  Raises `OptionError` if the setting is larger than what is possible."""
    most, why = settings.slots, "each needs a slot of the cache"
    if on_transformers(settings.model):
        most, why = 1, "a model of transformers has one"
    if settings.engines > most:
        raise OptionError(f"must be at most {most} here, not {settings.engines}: {why}", "engines")
    return settings.engines or min(most, default_contexts(settings.model, settings.engine))


def make_hub(settings: ServeSettings, service: Service | None, engines: Sequence[Mapping[str, Backend]]) -> Hub:
    """Create the hub with everything behind the routes; the application starts the engines.

    Args:
        service: the models and limits; None, without engines, serves only viewers.
        engines: the models of each engine by name, opened with enough slots.

    Raises:
        CapabilityError: the models have too few slots.
        MissingExtra: the fan-out needs a package that is not installed.
        OptionError: the file of API keys or the address of the fan-out is invalid.
    """
    metrics, remote = Metrics(), is_remote(settings.model)
    most = 1 if remote and not settings.engines else DEFAULT_LANES  # else there is an engine for each request

    def engine(backends: Mapping[str, Backend]) -> Engine:
        slots = open_slots(backends, -(-settings.slots // len(engines)))
        # A prompt for a remote server is not split: every piece would be a request.
        room = UNLIMITED if remote else None
        scheduler = Scheduler(backends, slots, settings.busy, room, metrics.passed, most=most)
        return Engine(scheduler, metrics.answered)

    return Hub(service, Engines([engine(backends) for backends in engines], settings.languages), settings, metrics)


def prepare() -> None:
    """Make what is kept: the first request for it would hold up captions, for the names of languages by 45 ms."""
    for name in ("Chinese", "zh-TW", "zh-HK"):
        writing_of(parse_language(name))  # and the dictionaries of OpenCC, which an engine's thread would load
    demo_talk()
    pages.prepare()


def make_app(hub: Hub, *, local: bool = False) -> Starlette:
    """Return the ASGI application, with ``local`` only for this machine."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        prepare()
        for each in hub.engines.all:
            each.start()
        hub.fanout.start()
        async with beside(hub.sweep()):
            yield
        await hub.recognisers.close()
        await asyncio.to_thread(hub.folder.close)
        await hub.fanout.stop()
        await asyncio.to_thread(hub.engines.stop)

    sharing = Middleware(
        CORSMiddleware,
        allow_origins=hub.settings.origins,
        allow_methods=("GET", "POST", "DELETE"),
        allow_headers=("*",),
        allow_private_network=True,
        expose_headers=("content-disposition", "retry-after"),
        max_age=7200,
    )
    app = Starlette(
        routes=[
            *endpoints.routes(),
            WebSocketRoute("/v1/live", live),
            WebSocketRoute("/v1/watch/{session}", watch),
            WebSocketRoute("/v1/rooms/{room}/watch", watch_room),
            *pages.routes(),
            *compat_routes(hub),
        ],
        lifespan=lifespan,
        middleware=[
            *([sharing] if hub.settings.origins else []),
            Middleware(Guard, hub, local=local),
        ],
        exception_handlers={HTTPException: _http_error},
    )
    app.router.redirect_slashes = False  # its address would be absolute, without the path that a proxy removes
    app.state.hub, app.state.qr_codes = hub, QrCodes()
    return app


async def _http_error(request: Request, error: Exception) -> Response:
    """Return Starlette's own errors in the same form as all others; to browsers, a page for a wrong address."""
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
    if status == 404 and (page := re.search(r"/([\w.-]+)/$", request.url.path)):
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"../{page[1]}{query}")
    code = "missing" if status == 404 else "protocol"
    request.app.state.hub.metrics.count_refusal(code)
    if status == 404 and "text/html" in request.headers.get("accept", ""):
        sent = request.scope.get("raw_path", request.scope["path"].encode()).decode("latin-1")
        return HTMLResponse(pages.missing(sent.removeprefix(request.scope.get("root_path", ""))), status)
    methods = " or ".join(sorted((headers or {}).get("Allow", "").split(", ")))
    wrong = f"this method is not allowed here: use {methods}" if status == 405 else "there is nothing at this address"
    return refusal(Refused(code, wrong), status, headers)
