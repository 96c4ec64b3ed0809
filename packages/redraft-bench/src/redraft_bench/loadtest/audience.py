"""Thousands of viewers in one process, with the arrival time of each message at each viewer.

    python -m redraft_bench.loadtest.audience VIEWERS FILE ADDRESS...

Writes ``ready`` to standard output when all are connected, and the file when all connections have ended or standard
input is closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from redraft.serve.process import allow_open_files

#: Number of viewers that connect concurrently, and of files open besides the connections.
_AT_ONCE, BESIDE = 50, 100
#: Fields that identify a message.
KEY = ("type", "utterance", "language", "seq")


@dataclass(slots=True)
class Arrivals:
    """The messages received by the viewers.

    Attributes:
        messages: `KEY` of each, in the order in which the first viewer received it.
        numbers: data of a message -> its number.
        viewers: for each arrival, the viewer.
        indices: for each arrival, the message.
        times: for each arrival, the time in seconds of the monotonic clock.
    """

    messages: list[tuple[Any, ...]] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    viewers: array[int] = field(default_factory=lambda: array("i"))
    indices: array[int] = field(default_factory=lambda: array("i"))
    times: array[float] = field(default_factory=lambda: array("d"))

    def add(self, viewer: int, data: bytes, now: float) -> None:
        """Record the arrival of a message at a viewer."""
        number = self.numbers.get(data)
        if number is None:
            number = self.numbers[data] = len(self.messages)
            message = json.loads(data)
            self.messages.append(tuple(message.get(name) for name in KEY))
        self.viewers.append(viewer)
        self.indices.append(number)
        self.times.append(now)

    def write(self, path: Path) -> None:
        """Write the data for `read`."""
        with path.open("wb") as file:
            viewers, indices, times = map(np.array, (self.viewers, self.indices, self.times))
            messages = np.array(json.dumps(self.messages))
            np.savez(file, messages=messages, viewers=viewers, indices=indices, times=times)


class Viewer(asyncio.Protocol):
    """A connection that only reads, with minimal overhead, so that many viewers do not distort the measurement."""

    def __init__(self, number: int, address: str, arrivals: Arrivals) -> None:
        self._number, self._arrivals = number, arrivals
        self._protocol = ClientProtocol(parse_uri(address), max_size=None)
        loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the handshake."""
        self._transport: Any = transport
        self._protocol.send_request(self._protocol.connect())
        self._send()

    def data_received(self, data: bytes) -> None:
        """Record what arrives."""
        now = monotonic()
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                if event.opcode is Opcode.TEXT:
                    self._arrivals.add(self._number, bytes(event.data), now)
            elif not self.opened.done():
                self.opened.set_result(None)
        self._send()

    def eof_received(self) -> None:
        """Close the connection: the server has sent everything."""
        self._protocol.receive_eof()
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        """Mark the viewer as disconnected."""
        for future in (self.opened, self.closed):
            if not future.done():
                future.set_result(None)

    def _send(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._transport.write(data)
            else:
                self._transport.close()

    @property
    def open(self) -> bool:
        """Whether it is connected."""
        return self._protocol.state is State.OPEN


async def watch(addresses: Sequence[str], number: int, arrivals: Arrivals) -> int:
    """Connect viewers, in turn to each address, until all have been disconnected; return how many were connected."""
    loop, few = asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE)

    async def connect(viewer: int) -> Viewer:
        uri = parse_uri(addresses[viewer % len(addresses)])
        async with few:
            _, made = await loop.create_connection(
                lambda: Viewer(viewer, addresses[viewer % len(addresses)], arrivals), uri.host, uri.port
            )
            await made.opened
        return made

    viewers = await asyncio.gather(*(connect(viewer) for viewer in range(number)))
    connected = sum(each.open for each in viewers)
    print("ready", connected, flush=True)
    closed = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), closed.set)  # nothing is written to it, so this is its end
    ended: asyncio.Future[Any] = asyncio.ensure_future(closed.wait())
    every: asyncio.Future[Any] = asyncio.gather(*(each.closed for each in viewers))
    await asyncio.wait([ended, every], return_when=asyncio.FIRST_COMPLETED)
    loop.remove_reader(sys.stdin.fileno())
    ended.cancel()
    return connected


def main() -> None:
    """Run the command."""
    number, path, *addresses = sys.argv[1:]
    allow_open_files(int(number) + BESIDE)
    arrivals = Arrivals()
    asyncio.run(watch(addresses, int(number), arrivals))
    arrivals.write(Path(path))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
