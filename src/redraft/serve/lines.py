"""Translations for somebody who waits for each of them, without a session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from redraft.captions.events import Event, Update
from redraft.decoding.types import Tally
from redraft.serve.engine import Engine
from redraft.serve.engines import Engines
from redraft.serve.lanes import Answer, Lane
from redraft.serve.protocol import Wanted
from redraft.serve.refusals import Refused

STOPPED = "the server cannot translate any more and must be started again"
#: How long somebody waits for a translation.
_SECONDS = 60

#: Tells of the answers of a language.
_Listener = Callable[[str], Callable[[Answer, Tally], None]]


class Line:
    """Lanes that answer whoever has sent an update.  One update at a time: the caller sees to that.

    Args:
        engine: runs the lanes.
        asked: the answers that anybody waits for, so that they can be told if none will come.
    """

    def __init__(self, engine: Engine, asked: set[asyncio.Future[list[Event]]]) -> None:
        self._engine, self._asked = engine, asked
        #: By target language.
        self.lanes: dict[str, Lane] = {}
        self._update: Update | None = None
        self._waiting: dict[str, asyncio.Future[list[Event]]] = {}

    def listener(self, target: str) -> Callable[[Answer, Tally], None]:
        """What is told of the captions of a language, on the event loop."""

        def answered(answer: Answer, _: Tally) -> None:
            # Whoever waited may have gone meanwhile, and somebody else may wait for the next answer.
            if answer.update is self._update and not self._waiting[target].done():
                self._waiting[target].set_result(answer.events)

        return answered

    async def translate(self, update: Update) -> dict[str, list[Event]]:
        """What an update gives in every language.

        Raises:
            Refused: the engine has stopped.
            TimeoutError: no translation came in time.
        """
        loop = asyncio.get_running_loop()
        self._update = update
        found = self._waiting = {target: loop.create_future() for target in self.lanes}
        self._asked.update(found.values())
        try:
            for lane in self.lanes.values():
                self._engine.offer(lane, update)
            async with asyncio.timeout(_SECONDS):
                return dict(zip(found, await asyncio.gather(*found.values()), strict=True))
        finally:
            self._asked.difference_update(found.values())

    def close(self) -> None:
        """Give the lanes back."""
        self._engine.remove(self.lanes.values())


class Lines:
    """The lines of a server.

    Args:
        engines: what runs them.
        admit: lets an address begin another session, or raises `Refused`.
        lanes: makes lanes on an engine and has them admitted.
        refused: makes a refusal that is counted.
    """

    def __init__(
        self,
        engines: Engines,
        admit: Callable[[str], None],
        lanes: Callable[[Engine, Wanted, _Listener], Awaitable[dict[str, Lane]]],
        refused: Callable[[str, str], Refused],
    ) -> None:
        self._engines, self._admit, self._lanes, self._refused = engines, admit, lanes, refused
        self._asked: set[asyncio.Future[list[Event]]] = set()
        #: The lines that count as sessions, with the address of each.
        self.kept: dict[Line, str] = {}

    async def once(self, wanted: Wanted, text: str, address: str) -> dict[str, list[Event]]:
        """What a text gives in every language.

        Raises:
            Refused: it is not admitted, or asks for what is not allowed.
        """
        line = await self._open(wanted, address)
        try:
            return await self.ask(line, Update("1", 0, text, final=True))
        finally:
            line.close()

    async def keep(self, wanted: Wanted, address: str) -> Line:
        """A line that is kept until it is closed, and counts as a session until then.

        Raises:
            Refused: it is not admitted, or asks for what is not allowed.
        """
        line = await self._open(wanted, address)
        self.kept[line] = address
        return line

    async def _open(self, wanted: Wanted, address: str) -> Line:
        self._admit(address)
        with self._engines.chosen(len(wanted.targets)) as engine:
            line = Line(engine, self._asked)
            line.lanes.update(await self._lanes(engine, wanted, line.listener))
        return line

    async def ask(self, line: Line, update: Update) -> dict[str, list[Event]]:
        """What an update gives on a line, in every language.

        Raises:
            Refused: the engine has stopped, or does not answer in time.
        """
        try:
            return await line.translate(update)
        except TimeoutError:
            raise self._refused("capacity", f"no translation came within {_SECONDS} seconds") from None

    def close(self, line: Line) -> None:
        """Close a line that was kept."""
        line.close()
        self.kept.pop(line, None)

    def sweep(self) -> None:
        """Tell those who wait for an engine that has stopped."""
        for asked in () if self._engines.alive else self._asked:
            if not asked.done():
                asked.set_exception(self._refused("engine", STOPPED))
