"""The server on Ray Serve: replicas on the nodes of a cluster, which come and go while sessions go on.

    serve run redraft.serve.ray_app:app model=demo

Ray's proxies take the connections and hand each to a replica, where it stays.  Ray may start, stop and replace replicas
at any time, and any of them may crash: clients connect again, to whichever is there, and hand back what that one lacks.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from pathlib import Path
from typing import Any

import ray
from ray import serve
from ray._private.worker import global_worker
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from redraft.backends.load import usual_contexts
from redraft.backends.remote.address import is_remote
from redraft.serve import logs
from redraft.serve.admission import STOPPED
from redraft.serve.app import make_app
from redraft.serve.files import allow_open_files
from redraft.serve.settings import ServeSettings, load
from redraft.serve.startup import check, open_hub

log = logging.getLogger(__name__)

#: Connections of one replica, of sessions and viewers, above which Ray asks another one.  The server's own limits on
#: sessions and viewers come first, since it refuses with a sentence.
_CONNECTIONS = 10_000
#: Seconds that a replica has beside `drain_seconds` to close its connections and its models.
_GOODBYE_SECONDS = 10.0
#: How often a replica looks whether it is being stopped, in seconds.
_LOOK_SECONDS = 0.25


def app(args: dict[str, Any]) -> serve.Application:
    """The application, for `serve run` and the config files of Ray Serve.

    Args:
        args: settings of `redraft serve` by name; ``config`` names a TOML file with more of them, which is read here.

    Raises:
        OptionError: something cannot be used as the settings say.
    """
    given = dict(args)
    config = given.pop("config", None)
    settings = load(None if config is None else Path(config), **given)
    check(settings)
    fields = settings.model_dump()  # the class is one of `load`'s own, which no other process knows

    def build() -> Starlette:
        return _build(ServeSettings(**fields))

    return (
        serve.deployment(serve.ingress(build)(Replica))
        .options(
            name="redraft",
            max_ongoing_requests=_CONNECTIONS,
            graceful_shutdown_timeout_s=settings.drain_seconds + _GOODBYE_SECONDS,
            ray_actor_options={"num_cpus": 1},
        )
        .bind()
    )


class Replica:
    """One server of several; Ray makes it, checks it and stops it."""

    app: Starlette

    def __init__(self) -> None:
        self._draining = asyncio.get_running_loop().create_task(self._drain_when_stopped())

    def check_health(self) -> None:
        """Have Ray start another one in its place once the engine has stopped.

        Raises:
            RuntimeError: it has.
        """
        if not self.app.state.hub.alive:
            raise RuntimeError(STOPPED)

    async def _drain_when_stopped(self) -> None:
        try:
            while not _stopping():
                await asyncio.sleep(_LOOK_SECONDS)
        except AttributeError:
            log.warning("this version of Ray does not show when a replica is stopped: its connections will be cut then")
            return
        log.info("stopping after the captions in progress")
        await self.app.state.hub.drain()


class LocalOnly:
    """Middleware: refuses clients on other machines, as a server without API keys does that listens on its own only.

    Args:
        app: what is guarded.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan" or _is_local((scope.get("client") or ("",))[0]):
            await self._app(scope, receive, send)
            return
        sentence = "only this machine may connect: the operator can allow others with the settings host and keys"
        await JSONResponse({"error": {"code": "origin", "sentence": sentence}}, 403)(scope, receive, send)


def _is_local(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _build(settings: ServeSettings) -> Starlette:
    """What a replica serves, with its models loaded."""
    logs.set_up(details=settings.log_text)
    settings = fitted(settings, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 0)))
    allow_open_files()
    made = make_app(open_hub(settings))
    if settings.local:
        made.add_middleware(LocalOnly)
    return made


def fitted(settings: ServeSettings, cores: int) -> ServeSettings:
    """The settings of a replica that has so many cores of its node; 0 leaves them as they are."""
    if not cores or settings.threads or settings.viewers_only or is_remote(settings.model):
        return settings
    engines = settings.engines or min(cores, usual_contexts(settings.model, settings.gpu_layers))
    return settings.model_copy(update={"engines": engines, "threads": max(1, cores // engines)})


def _stopping() -> bool:
    """Whether Ray is stopping this replica.

    It sends no new connections then, and waits for those that there are, but tells the application only when none is
    left.
    """
    return any(replica._replica_impl._shutting_down for replica in global_worker.actors.values())
