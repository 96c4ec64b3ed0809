"""Translate for callers that wait for each result, without a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from redraft.captions.events import Event, Update
from redraft.serve.admission import STOPPED, Admission
from redraft.serve.engine import Engine, Engines
from redraft.serve.lanes import Answer, Lane
from redraft.serve.protocol import Wanted

#: Timeout of a translation in seconds.
_SECONDS = 60


class Exchange:
    """Sends updates to lanes and waits for the answers.  The caller must send one update at a time.

    Args:
        asked: pending answers; `Exchanges.sweep` fails them if the engine stops.
    """

    engine: Engine
    lanes: dict[str, Lane]

    def __init__(self, asked: set[asyncio.Future[list[Event]]]) -> None:
        self._asked = asked
        self._update: Update | None = None
        self._waiting: dict[str, asyncio.Future[list[Event]]] = {}

    def answered(self, answer: Answer) -> None:
        """Receive the answer to an update in one language."""
        # The caller may have gone, and another one may wait for the next answer.
        if answer.update is self._update and not self._waiting[answer.language].done():
            self._waiting[answer.language].set_result(answer.events)

    def close(self) -> None:
        """Remove the lanes and drop their work."""
        self.engine.remove(self.lanes.values())

    async def translate(self, update: Update) -> dict[str, list[Event]]:
        """Translate an update; return the captions and failures by language.

        Raises:
            Refused: the engine has stopped.
            TimeoutError: there was no translation in time.
        """
        loop = asyncio.get_running_loop()
        self._update = update
        found = self._waiting = {language: loop.create_future() for language in self.lanes}
        self._asked.update(found.values())
        try:
            self.engine.submit(tuple(self.lanes.values()), update)
            async with asyncio.timeout(_SECONDS):
                return dict(zip(found, await asyncio.gather(*found.values()), strict=True))
        finally:
            self._asked.difference_update(found.values())


class Exchanges:
    """All exchanges of a server.

    Args:
        admission: makes lanes.
        engines: run the lanes.
        admit: checks whether an address may open another exchange; raises `Refused` if not.
    """

    def __init__(self, admission: Admission, engines: Engines, admit: Callable[[str], None]) -> None:
        self._admission, self._engines, self._admit = admission, engines, admit
        self._asked: set[asyncio.Future[list[Event]]] = set()
        #: Exchange -> client address, for exchanges that count as sessions.
        self.kept: dict[Exchange, str] = {}

    async def once(self, wanted: Wanted, text: str, address: str) -> dict[str, list[Event]]:
        """Translate one text; return the captions and failures by language.

        Raises:
            Refused: the server is full, or the request asks for something that is not allowed.
        """
        exchange = await self._open(wanted, address)
        try:
            return await self.ask(exchange, Update("1", 0, text, final=True))
        finally:
            exchange.close()

    async def keep(self, wanted: Wanted, address: str) -> Exchange:
        """Open an exchange that stays open until `close` and counts as a session.

        Raises:
            Refused: the server is full, or the request asks for something that is not allowed.
        """
        exchange = await self._open(wanted, address)
        self.kept[exchange] = address
        return exchange

    async def _open(self, wanted: Wanted, address: str) -> Exchange:
        self._admit(address)
        exchange = Exchange(self._asked)
        exchange.engine, exchange.lanes = await self._admission.lanes(wanted, exchange.answered)
        return exchange

    async def ask(self, exchange: Exchange, update: Update) -> dict[str, list[Event]]:
        """Translate an update; return the captions and failures by language.

        Raises:
            Refused: the engine has stopped, or did not answer in time.
        """
        try:
            return await exchange.translate(update)
        except TimeoutError:
            raise self._admission.refused("capacity", f"no translation came within {_SECONDS} seconds") from None

    def close(self, exchange: Exchange) -> None:
        """Close an exchange opened by `keep`."""
        exchange.close()
        self.kept.pop(exchange, None)

    def sweep(self) -> None:
        """Fail all pending answers if an engine has stopped."""
        for asked in () if self._engines.alive else self._asked:
            if not asked.done():
                asked.set_exception(self._admission.refused("engine", STOPPED))
