"""Translations for somebody who waits for each of them, without a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from redraft.captions.events import Event, Update
from redraft.decoding.types import Tally
from redraft.serve.admission import STOPPED, Admission, Line
from redraft.serve.engines import Engines
from redraft.serve.lanes import Answer
from redraft.serve.protocol import Wanted

#: How long somebody waits for a translation.
_SECONDS = 60


class Exchange:
    """Asks a line and waits for its answer.  One update at a time: the caller sees to that.

    Args:
        asked: the answers that anybody waits for, so that they can be told if none will come.
    """

    line: Line

    def __init__(self, asked: set[asyncio.Future[list[Event]]]) -> None:
        self._asked = asked
        self._update: Update | None = None
        self._waiting: dict[str, asyncio.Future[list[Event]]] = {}

    def hear(self, language: str, answer: Answer, _: Tally) -> None:
        """Take what came of an update."""
        # Whoever waited may have gone meanwhile, and somebody else may wait for the next answer.
        if answer.update is self._update and not self._waiting[language].done():
            self._waiting[language].set_result(answer.events)

    async def translate(self, update: Update) -> dict[str, list[Event]]:
        """What an update gives in every language.

        Raises:
            Refused: the engine has stopped.
            TimeoutError: no translation came in time.
        """
        loop = asyncio.get_running_loop()
        self._update = update
        found = self._waiting = {language: loop.create_future() for language in self.line.lanes}
        self._asked.update(found.values())
        try:
            self.line.offer(update)
            async with asyncio.timeout(_SECONDS):
                return dict(zip(found, await asyncio.gather(*found.values()), strict=True))
        finally:
            self._asked.difference_update(found.values())


class Exchanges:
    """Those of a server.

    Args:
        admission: makes lines.
        engines: what runs them.
        admit: lets an address begin another one, or raises `Refused`.
    """

    def __init__(self, admission: Admission, engines: Engines, admit: Callable[[str], None]) -> None:
        self._admission, self._engines, self._admit = admission, engines, admit
        self._asked: set[asyncio.Future[list[Event]]] = set()
        #: Those that count as sessions, with the address of each.
        self.kept: dict[Exchange, str] = {}

    async def once(self, wanted: Wanted, text: str, address: str) -> dict[str, list[Event]]:
        """What a text gives in every language.

        Raises:
            Refused: it is not admitted, or asks for what is not allowed.
        """
        exchange = await self._open(wanted, address)
        try:
            return await self.ask(exchange, Update("1", 0, text, final=True))
        finally:
            exchange.line.close()

    async def keep(self, wanted: Wanted, address: str) -> Exchange:
        """One that is kept until it is closed, and counts as a session until then.

        Raises:
            Refused: it is not admitted, or asks for what is not allowed.
        """
        exchange = await self._open(wanted, address)
        self.kept[exchange] = address
        return exchange

    async def _open(self, wanted: Wanted, address: str) -> Exchange:
        self._admit(address)
        exchange = Exchange(self._asked)
        exchange.line = await self._admission.line(wanted, exchange.hear)
        return exchange

    async def ask(self, exchange: Exchange, update: Update) -> dict[str, list[Event]]:
        """What an update gives, in every language.

        Raises:
            Refused: the engine has stopped, or does not answer in time.
        """
        try:
            return await exchange.translate(update)
        except TimeoutError:
            raise self._admission.refused("capacity", f"no translation came within {_SECONDS} seconds") from None

    def close(self, exchange: Exchange) -> None:
        """Close one that was kept."""
        exchange.line.close()
        self.kept.pop(exchange, None)

    def sweep(self) -> None:
        """Tell those who wait for an engine that has stopped."""
        for asked in () if self._engines.alive else self._asked:
            if not asked.done():
                asked.set_exception(self._admission.refused("engine", STOPPED))
