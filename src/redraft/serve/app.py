"""The application: routes, the models behind them, and what starts and stops with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import (
    BRANCHES_OF_A_TREE,
    on_transformers,
    open_backend,
    open_replicas,
    usual_replicas,
)
from redraft.errors import OptionError
from redraft.methods import get_method
from redraft.models import SMALL_OF
from redraft.serve import http, pages
from redraft.serve.batch import budget
from redraft.serve.engine import Engine
from redraft.serve.hub import Hub
from redraft.serve.load import Limits, Load
from redraft.serve.metrics import Metrics
from redraft.serve.scheduler import Scheduler
from redraft.serve.security import Guard
from redraft.serve.service import Allowed, Service
from redraft.serve.settings import ServeSettings
from redraft.serve.slots import SlotPool
from redraft.serve.sockets import live, watch
from redraft.types import DRAFT_MODEL, TARGET, Backend


def open_backends(settings: ServeSettings) -> dict[str, Backend]:
    """Load the models, with one slot more than are lent: what a pass costs is measured there.

    Raises:
        ModelError: there is no such model, or its file is unfit.
        OptionError: a method or an option is not known.
    """
    methods = [get_method(name) for name in settings.methods]
    slots = settings.slots + 1
    options = LlamaOptions(
        context_length=settings.context_length,
        slots=slots,
        branches=BRANCHES_OF_A_TREE * slots if any("trees" in method.needs for method in methods) else 0,
        threads=settings.threads,
        gpu_layers=settings.gpu_layers,
        exact=settings.exact,
    )
    backends: dict[str, Backend] = {TARGET: _open(settings.model, options, settings.replicas)}
    small = settings.draft_model or SMALL_OF.get(settings.model)
    if small and any(method.draft_model == "small" for method in methods):
        backends[DRAFT_MODEL] = _open(small, options, settings.replicas)
    return backends


def _open(name: str, options: LlamaOptions, replicas: int) -> Backend:
    if on_transformers(name):
        if replicas > 1:
            raise OptionError(f"replicas must be 0 or 1 for {name!r}, a model of transformers, not {replicas}")
        return open_backend(name, options)
    return open_replicas(name, options, replicas or usual_replicas(name, options))


def make_hub(settings: ServeSettings, service: Service) -> Hub:
    """Everything that runs behind the routes; the engine is started with the application.

    Raises:
        CapabilityError: the models have too few slots.
        OptionError: the file of API keys cannot be used.
    """
    metrics = Metrics()
    scheduler = Scheduler(
        service.backends,
        SlotPool(service.backends, settings.slots),
        Load(Limits(settings.languages, settings.busy), service.curve),
        budget(service.curve, settings.pass_seconds),
        metrics.passed,
        most=settings.batch_lanes,
    )
    return Hub(service, Engine(scheduler), settings, metrics)


def make_service(settings: ServeSettings, backends: dict[str, Backend]) -> Service:
    """The models with what the settings allow of them.

    Raises:
        CapabilityError: the models cannot do what a method needs.
    """
    allowed = Allowed(
        tuple(get_method(name) for name in settings.methods),
        settings.targets,
        settings.max_tokens,
        settings.context,
        settings.glossary,
        settings.template,
    )
    return Service(backends, allowed)


def make_app(hub: Hub) -> Starlette:
    """The ASGI application."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        hub.engine.start()
        sweeping = asyncio.create_task(hub.sweep())
        yield
        sweeping.cancel()
        with suppress(asyncio.CancelledError):
            await sweeping
        await asyncio.to_thread(hub.engine.stop)

    settings = hub.settings
    # Where names count, this machine's own stay good: nobody else can point them here, and health checks use them.
    own = {"localhost", "127.0.0.1", "::1", settings.host}
    hosts = own.union(settings.hosts) if settings.local or settings.hosts else ()
    app = Starlette(
        routes=_routes(),
        lifespan=lifespan,
        middleware=[Middleware(Guard, hosts=hosts, origins=settings.origins)],
        exception_handlers={HTTPException: _http_error},
    )
    app.state.hub = hub
    return app


def _routes() -> list[BaseRoute]:
    plain = {
        "/v1/translate": {"POST": http.translate},
        "/v1/sessions": {"POST": http.begin},
        "/v1/sessions/{session}": {"GET": http.about},
        "/v1/sessions/{session}/transcript": {"GET": http.transcript},
        "/v1/ingest/{token}": {"POST": http.ingest, "GET": http.ingested, "DELETE": http.finish},
        "/health": {"GET": http.health},
        "/ready": {"GET": http.ready},
        "/metrics": {"GET": http.metrics},
        "/openapi.json": {"GET": http.openapi_json},
        "/asyncapi.json": {"GET": http.asyncapi_json},
        "/docs": {"GET": http.docs},
    }
    return [
        *(
            Route(path, http.answering(http.by_method(endpoints)), methods=list(endpoints))
            for path, endpoints in plain.items()
        ),
        WebSocketRoute("/v1/live", live),
        WebSocketRoute("/v1/watch/{session}", watch),
        *pages.routes(),
    ]


async def _http_error(request: Request, error: Exception) -> Response:
    """What Starlette itself refuses, in the same form as all else."""
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
    sentence = {404: "there is nothing here", 405: "this method is not allowed here"}.get(status, "refused")
    return http.refusal("missing" if status == 404 else "protocol", sentence, status, headers)
