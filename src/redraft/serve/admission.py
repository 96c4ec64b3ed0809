"""Admission control: makes lanes for accepted sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from redraft.captions.spoken import Spoken
from redraft.engine.engine import LATE, Engine, Engines, Stopped
from redraft.engine.lanes import Answer, Lane
from redraft.engine.scheduler import NoCapacity
from redraft.errors import OptionError, RedraftError, Unavailable
from redraft.protocol import Wanted
from redraft.protocol.codes import Refused
from redraft.serve.access import ApiKeys
from redraft.serve.service import Service

STOPPED = "the server cannot translate any more and must be started again"
VIEWERS_ONLY = "this server only serves viewers: send updates to another one"
DRAINING = "the server is being stopped: connect again in a moment"
#: Fields that the library names otherwise than the protocol.
_FIELDS = {"source language": "source_language", "target": "targets", "target language": "targets"}


class Admission:
    """Checks capacity and API keys, and makes lanes.

    Args:
        service: the models and the operator's limits; None without engines.
        keys: the API keys; None if the server needs none.
    """

    def __init__(self, service: Service | None, engines: Engines, keys: ApiKeys | None = None) -> None:
        self.keys = keys
        self._service, self._engines = service, engines
        self.draining = False

    def check_working(self) -> None:
        """Raise `Refused` if the server serves only viewers, is stopping, or an engine has failed."""
        if not self._engines.all:
            raise Refused("missing", VIEWERS_ONLY)
        if self.draining:
            raise Refused("draining", DRAINING)
        if not self._engines.alive:
            raise Refused("engine", STOPPED)
        if all(engine.late for engine in self._engines.all):
            raise Refused("engine", LATE)

    def owner(self, key: str | None) -> str:
        """Return the owner of an API key; empty if none are needed.  Raises `Refused` if it is missing or unknown."""
        if self.keys is None:
            return ""
        if not key:
            raise Refused("key", "an API key is needed: send it as `key`, or as a bearer token", "key")
        owner = self.keys.owner(key)
        if owner is None:
            raise Refused(
                "key", "the API key is not known to this server: check it, or ask the operator for one", "key"
            )
        return owner

    @property
    def service(self) -> Service:
        """The models.  Raises `Refused` if the server serves only viewers."""
        if self._service is None:
            raise Refused("missing", VIEWERS_ONLY)
        return self._service

    async def spoken(self, wanted: Wanted) -> Spoken:
        """Return what finds the languages of a stream's updates.  Raises `Refused` as for `lanes`."""
        try:
            return await asyncio.to_thread(self.service.spoken, wanted)  # opens a detector if several are spoken
        except RedraftError as error:
            raise refused_option(error) from None

    async def lanes(self, wanted: Wanted, answered: Callable[[Answer], object]) -> tuple[Engine, dict[str, Lane]]:
        """Make the lanes of a stream on the least loaded engine; return the engine, and the lanes by language.

        Args:
            answered: called on the event loop with the answer to every update in every language.

        Raises:
            Refused: there is no capacity, or the request asks for something that is not allowed.
        """
        service, made = self.service, dict[str, Lane]()
        with self._engines.chosen(len(wanted.targets)) as engine:
            receive = engine.answers_to(answered)

            def make() -> None:
                translations = service.translations(wanted)  # first: invalid requests do not depend on capacity
                lanes = [Lane(each, receive) for each in translations]
                self._engines.admit(engine, lanes)
                made.update((lane.translation.language, lane) for lane in lanes)

            try:
                await engine.ask(make)
            except BaseException as error:  # the engine may have added the lanes, or may yet
                engine.post(lambda: engine.remove(made.values()))
                if isinstance(error, RedraftError):
                    raise refused_option(error) from None
                raise
            return engine, made


def refused_option(error: Exception) -> Refused:
    """Return the refusal of a request that the models or the engine cannot do."""
    if isinstance(error, Stopped):
        return Refused("engine", STOPPED)
    if isinstance(error, Unavailable):
        return Refused("engine", str(error))
    if isinstance(error, NoCapacity):
        return Refused("capacity", str(error))
    if not isinstance(error, RedraftError):
        return Refused("engine", f"the request has failed: {type(error).__name__}")
    field = (isinstance(error, OptionError) and error.field) or ""
    return Refused("option", str(error), _FIELDS.get(field, field) or None)
