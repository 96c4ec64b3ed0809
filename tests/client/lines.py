"""Sessions of a client over a connection that tests cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from redraft.captions.events import Caption, Event, Update
from redraft.client import Backoff

QUICK = Backoff(0.01, 0.05, 20.0)


EXACT = "ar"


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


class Line:
    """A way to a server that can be cut; while it hangs, what is sent is lost."""

    def __init__(self, port: int) -> None:
        self.to, self.port, self.cuts, self.hangs = port, 0, 0, False
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        self.cuts += bool(self._writers)
        for writer in self._writers:
            writer.transport.abort()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await self.open()
        except OSError:  # no server is there
            writer.transport.abort()
            return
        pair = {writer, back}
        self._writers |= pair
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        self._writers -= pair

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.to)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(4096):
                if self.hangs:
                    continue
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()


@asynccontextmanager
async def line(to: int | Line) -> AsyncIterator[Line]:
    made = to if isinstance(to, Line) else Line(to)
    listening = await asyncio.start_server(made, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        listening.close()
        made.cut()
        await asyncio.sleep(0.05)


def talk(utterances: int) -> list[Update]:
    words = "it was her duck".split()  # of none of these the model makes an empty translation
    return [
        Update(str(number), seq, f"{number} {' '.join(words[: seq + 1])}", seq == 3, float(seq))
        for number in range(utterances)
        for seq in range(4)
    ]


def ended(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(e.utterance, e.language, e.text) for e in events if isinstance(e, Caption) and e.final]
