"""Admission control: counts refusals, and makes lanes on an engine for accepted sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from redraft.captions.events import Update
from redraft.decoding.tally import Tally
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

#: Called on the event loop after each translated update with language, answer, and the language's counts so far.
Hear: TypeAlias = Callable[[str, Answer, Tally], None]


class Line:
    """The lanes of one stream, all on one engine.

    Args:
        engine: runs the lanes.
        lanes: by target language.
    """

    def __init__(self, engine: Engine, lanes: Mapping[str, Lane]) -> None:
        self._engine, self.lanes = engine, dict(lanes)

    def offer(
        self,
        update: Update,
        languages: Iterable[str] | None = None,
        since: float | None = None,
        *,
        rest: bool = False,
    ) -> None:
        """Send an update (`Lane.offer`) to the lanes of some languages, None for all.

        Its lag counts from ``since`` or from now.
        """
        for language in self.lanes if languages is None else languages:
            self._engine.offer(self.lanes[language], update, since, rest=rest)

    def remember(self, language: str, source: str, translation: str) -> None:
        """Add an earlier sentence with its translation to the context of a language's prompts."""
        self._engine.post(lambda: self.lanes[language].translation.remember(source, translation))

    def close(self) -> None:
        """Remove the lanes and drop their work."""
        self._engine.remove(self.lanes.values())


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

    async def line(self, wanted: Wanted, hear: Hear) -> Line:
        """Make a line on the least loaded engine.

        Raises:
            Refused: there is no capacity, or the request asks for something that is not allowed.
        """
        if self._service is None:
            raise self.refused("missing", VIEWERS_ONLY)
        with self._engines.chosen(len(wanted.targets)) as engine:
            return Line(engine, await self._lanes(self._service, engine, wanted, hear))

    async def _lanes(self, service: Service, engine: Engine, wanted: Wanted, hear: Hear) -> dict[str, Lane]:
        loop = asyncio.get_running_loop()
        made: dict[str, Lane] = {}

        def tell(lane: Lane, answer: Answer) -> None:
            self._metrics.answered(answer)
            loop.call_soon_threadsafe(hear, lane.translation.language, answer, replace(lane.translation.tally))

        def make() -> dict[str, Lane]:
            lanes = service.lanes(wanted, tell)  # first, since invalid requests do not depend on capacity
            if refusal := self._engines.admit(engine, lanes):
                raise Refused("capacity", refusal)
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
