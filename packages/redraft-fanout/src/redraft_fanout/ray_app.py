"""The server on Ray Serve: replicas on the nodes of a cluster, which may change while sessions continue.

    serve run redraft_fanout.ray_app:app model=demo

Ray's proxies accept the connections and assign each to a replica.  Ray may start, stop and replace replicas at any
time, and any of them may crash: clients reconnect to another one, and restore what it lacks.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import ray
from ray import serve
from ray._private.worker import global_worker
from starlette.applications import Starlette

from redraft import deadlines
from redraft.backends.load import default_contexts
from redraft.backends.remote.address import is_remote
from redraft.serve.app import check, make_app, open_hub
from redraft.serve.run import allow_open_files, set_up_logs
from redraft.serve.service import STOPPED
from redraft.serve.settings import ServeSettings, load

log = logging.getLogger(__name__)

#: Connections of one replica (sessions and viewers) above which Ray chooses another one.  The server's own limits are
#: reached first, and give an error message.
_CONNECTIONS = 10_000
#: Interval in seconds at which a replica checks whether it is being stopped.
_LOOK_SECONDS = 0.25


def app(args: dict[str, Any]) -> serve.Application:
    """Return the application, for `serve run` and the config files of Ray Serve.

    Args:
        args: settings of `redraft serve` by name; ``config`` names a TOML file with further settings, which is read
            here.

    Raises:
        OptionError: a setting is invalid.
    """
    given = dict(args)
    config = given.pop("config", None)
    settings = load(None if config is None else Path(config), **given)
    check(settings)

    def build() -> Starlette:
        return _build(settings)

    return (
        serve.deployment(serve.ingress(build)(Replica))
        .options(
            name="redraft",
            max_ongoing_requests=_CONNECTIONS,
            graceful_shutdown_timeout_s=settings.drain_seconds + deadlines.AFTER_DRAIN,
            ray_actor_options={"num_cpus": 1},
        )
        .bind()
    )


class Replica:
    """One of several servers; Ray creates, checks and stops it."""

    app: Starlette

    def __init__(self) -> None:
        self._draining = asyncio.get_running_loop().create_task(self._drain_when_stopped())

    def check_health(self) -> None:
        """Let Ray replace this replica if the engine has stopped.  Raises `RuntimeError` if the engine has stopped."""
        if not self.app.state.hub.engines.alive:
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


def _build(settings: ServeSettings) -> Starlette:
    """Return the application of a replica, with its models loaded."""
    set_up_logs(details=settings.log_text)
    settings = fitted(settings, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 0)))
    allow_open_files()
    return make_app(open_hub(settings), local=settings.local)


def fitted(settings: ServeSettings, cores: int) -> ServeSettings:
    """Return the settings of a replica with this number of cores; 0 leaves them unchanged."""
    if not cores or settings.engine.get("threads") or settings.viewers_only or is_remote(settings.model):
        return settings
    engines = settings.engines or min(cores, default_contexts(settings.model, settings.engine))
    return settings.model_copy(
        update={"engines": engines, "engine": {**settings.engine, "threads": max(1, cores // engines)}}
    )


def _stopping() -> bool:
    """Whether Ray is stopping this replica.

    Ray then sends no new connections and waits for the existing ones, but notifies the application only when none is
    left.
    """
    return any(replica._replica_impl._shutting_down for replica in global_worker.actors.values())
