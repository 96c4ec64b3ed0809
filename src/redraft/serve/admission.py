"""Admission control: counts refusals, and makes lanes on an engine for accepted sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from redraft.errors import RedraftError
from redraft.serve.engine import Engine, Engines, Stopped
from redraft.serve.lanes import Answer, Lane
from redraft.serve.metrics import Metrics
from redraft.serve.protocol import Wanted
from redraft.serve.refusals import Refused
from redraft.serve.security import Keys
from redraft.serve.service import Service

STOPPED = "the server cannot translate any more and must be started again"
VIEWERS_ONLY = "this server only serves viewers: send what is to be translated to one without viewers_only"
DRAINING = "the server is being stopped: connect again in a moment"


class Admission:
    """Checks the capacity, and makes lines.

    Args:
        service: the models and the operator's limits; None without engines.
        engines: run the lanes.
        metrics: counts refusals.
        keys: the API keys; None if the server needs none.
    """

    def __init__(self, service: Service | None, engines: Engines, metrics: Metrics, keys: Keys | None = None) -> None:
        self.keys = keys
        self._service, self._engines, self._metrics = service, engines, metrics
        self.draining = False

    def refused(self, code: str, sentence: str) -> Refused:
        """Count a refusal, and return it to be raised."""
        self._metrics.refused.labels(code).inc()
        return Refused(code, sentence)

    def check_working(self) -> None:
        """Check that the server can translate.

        Raises:
            Refused: the server serves only viewers, is stopping, or an engine has failed.
        """
        if not self._engines.all:
            raise self.refused("missing", VIEWERS_ONLY)
        if self.draining:
            raise self.refused("draining", DRAINING)
        if not self._engines.alive:
            raise self.refused("engine", STOPPED)

    def owner(self, key: str | None) -> str:
        """Return the owner of an API key; empty if the server has no keys.

        Raises:
            Refused: the key is missing or unknown.
        """
        if self.keys is None:
            return ""
        if not key:
            raise self.refused("key", "an API key is needed: send it as `key`, or as a bearer token")
        owner = self.keys.owner(key)
        if owner is None:
            raise self.refused("key", "the API key is not known to this server: check it, or ask the operator for one")
        return owner

    async def lanes(self, wanted: Wanted, answered: Callable[[Answer], object]) -> tuple[Engine, dict[str, Lane]]:
        """Make the lanes of a stream on the least loaded engine; return the engine, and the lanes by language.

        Args:
            wanted: how to translate.
            answered: called on the event loop with the answer to every update in every language.

        Raises:
            Refused: there is no capacity, or the request asks for something that is not allowed.
        """
        if self._service is None:
            raise self.refused("missing", VIEWERS_ONLY)
        with self._engines.chosen(len(wanted.targets)) as engine:
            return engine, await self._lanes(self._service, engine, wanted, engine.answers_to(answered))

    async def _lanes(
        self, service: Service, engine: Engine, wanted: Wanted, tell: Callable[[Lane, Answer], None]
    ) -> dict[str, Lane]:
        made: dict[str, Lane] = {}

        def make() -> dict[str, Lane]:
            lanes = service.lanes(wanted, tell)  # first, since invalid requests do not depend on capacity
            self._engines.admit(engine, lanes)
            made.update((lane.translation.language, lane) for lane in lanes)
            return made

        try:
            return await asyncio.wrap_future(engine.call(make))
        except asyncio.CancelledError:  # the client has gone, but the engine may have added the lanes
            engine.post(lambda: engine.remove(made.values()))
            raise
        except Stopped:
            raise self.refused("engine", STOPPED) from None
        except RedraftError as error:
            raise self.refused("option", str(error)) from None
        except Refused as refusal:
            raise self.refused(refusal.code, refusal.sentence) from None
