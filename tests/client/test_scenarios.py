"""What a session does when connections drop or are refused: one table, which the Python client and the page both run.

A scenario is a list of steps.  The server's: "connect" takes the next connection and "turn away" refuses it, "after" at
least so many seconds; "hears" is the next message but acknowledgements, with at least these fields (null: absent or
false), "acknowledges" the next acknowledgement; "says" and "started" send a message; "drop" cuts the connection;
"begin" is connect, start and started at once.  The client's: "do" is an action, "event" the next event.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

import pytest
from websockets.asyncio.server import Request, Response, ServerConnection, serve

from redraft.captions.events import Caption, Update
from redraft.client import Client, ServerError
from redraft.errors import InputError
from redraft.serve.http.pages import WEB
from tests.programs import program

SECONDS = 30.0
SCENARIOS: dict[str, list[list[Any]]] = json.loads(Path(__file__).with_name("scenarios.json").read_text("utf-8"))
TOKEN, LONG = "t" * 32, "日" * 400
STARTED = {
    "type": "started",
    "session": "s" * 32,
    "token": TOKEN,
    "targets": ["de"],
    "server": "first",
    "heartbeat": 60,
}
Fields = dict[str, Any]


class Driven(Protocol):
    """A client that follows a scenario and reports events."""

    events: asyncio.Queue[Fields]

    async def do(self, action: str, fields: Fields) -> None: ...


class FromPython:
    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.events = asyncio.Queue[Fields]()
        self._tasks, self._begun = tasks, asyncio.Event()
        self._client: Client | None = None

    async def do(self, action: str, fields: Fields) -> None:
        if action == "begin":
            address = fields.pop("address")
            self._tasks.create_task(self._run(Client(address, ["de"], **fields)))
            return
        async with asyncio.timeout(SECONDS):
            await self._begun.wait()
        assert self._client is not None
        if action == "update":
            try:
                await self._client.send(Update(**{"seq": 0, "final": True, **fields}))
            except InputError:
                self.events.put_nowait({"type": "problem", "utterance": fields["utterance"]})
        elif action == "end":
            await self._client.end()
        else:
            getattr(self._client.control, action)(**fields)

    async def _run(self, client: Client) -> None:
        code = None
        try:
            async with client as self._client:
                self._begun.set()
                async for event in client:
                    if isinstance(event, Caption) and event.final:
                        self.events.put_nowait({"type": "final", "utterance": event.utterance, "text": event.text})
                    elif not isinstance(event, Caption):
                        self.events.put_nowait({"type": "problem", "utterance": event.utterance})
        except ServerError as error:
            code = error.code
        self.events.put_nowait({"type": "over", "code": code})


class FromPage:
    def __init__(self, node: asyncio.subprocess.Process, tasks: asyncio.TaskGroup) -> None:
        self.events = asyncio.Queue[Fields]()
        self._node = node
        tasks.create_task(self._read())

    async def do(self, action: str, fields: Fields) -> None:
        assert self._node.stdin is not None
        self._node.stdin.write(json.dumps([action, fields]).encode() + b"\n")
        await self._node.stdin.drain()

    async def _read(self) -> None:
        assert self._node.stdout is not None
        async for line in self._node.stdout:
            self.events.put_nowait(json.loads(line))


@asynccontextmanager
async def python() -> AsyncIterator[Driven]:
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(asyncio.sleep(0))
        try:
            yield FromPython(tasks)
        finally:
            await running
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()


class Server:
    """Takes connections only as the scenario says."""

    def __init__(self) -> None:
        self._arrived = asyncio.Queue[tuple[float, asyncio.Future[bool]]]()
        self._sockets = asyncio.Queue[ServerConnection]()
        self._messages = asyncio.Queue[Fields]()
        self._acks = asyncio.Queue[Fields]()
        self._socket: ServerConnection | None = None
        self._left = 0.0
        #: Number of the latest attempt to resume the session.
        self._attempt = 0

    async def admit(self, socket: ServerConnection, request: Request) -> Response | None:
        decided = asyncio.get_running_loop().create_future()
        self._arrived.put_nowait((time.monotonic(), decided))
        return None if await decided else socket.respond(HTTPStatus.SERVICE_UNAVAILABLE, "not now")

    async def talk(self, socket: ServerConnection) -> None:
        self._sockets.put_nowait(socket)
        async for text in socket:
            message = json.loads(text)
            (self._acks if message["type"] == "ack" else self._messages).put_nowait(message)

    async def decide(self, taken: bool, after: float = 0.0, before: float = SECONDS) -> None:
        arrived, decided = await self._arrived.get()
        if self._left:
            assert after * 0.95 <= arrived - self._left <= before
        decided.set_result(taken)
        self._left = time.monotonic()
        if taken:
            self._socket = await self._sockets.get()

    async def say(self, message: Fields) -> None:
        assert self._socket is not None
        await self._socket.send(json.dumps(message))

    async def hears(self, queue: asyncio.Queue[Fields], wanted: Fields) -> None:
        message = await queue.get()
        if message.get("token"):
            assert message["connection"] > self._attempt
            self._attempt = message["connection"]
        assert {path: at(message, path) for path in wanted} == wanted, message

    async def drop(self) -> None:
        assert self._socket is not None
        await self._socket.close()
        self._left = time.monotonic()

    async def step(self, verb: str, given: Fields) -> None:
        if verb == "connect":
            await self.decide(True, **given)
        elif verb == "turn away":
            await self.decide(False, **given)
        elif verb == "hears":
            await self.hears(self._messages, given)
        elif verb == "acknowledges":
            await self.hears(self._acks, given)
        elif verb == "says":
            await self.say(given)
        elif verb == "started":
            await self.say({**STARTED, "message_bytes": 65_536, **given})
        else:
            await self.drop()


def at(message: Any, path: str) -> Any:
    """What stands at a path such as ``finals.0.text``; None for what is absent or false."""
    for part in path.split("."):
        message = message[int(part)] if isinstance(message, list) else message.get(part)
    return None if message is False else message


async def play(steps: list[list[Any]], client: Driven) -> None:
    server = Server()
    async with serve(server.talk, "127.0.0.1", 0, process_request=server.admit, close_timeout=1) as listening:
        address = f"http://127.0.0.1:{next(iter(listening.sockets)).getsockname()[1]}"
        if steps[0][0] != "begin":
            await client.do("begin", {"address": address})
        for verb, *given in json.loads(json.dumps(steps).replace('"TOKEN"', json.dumps(TOKEN)).replace("LONG", LONG)):
            async with asyncio.timeout(SECONDS):
                if verb == "do":
                    await client.do(*given)
                elif verb == "event":
                    event = await client.events.get()
                    assert {name: event.get(name) for name in given[0]} == given[0]
                elif verb == "begin":
                    start = given[1] if len(given) > 1 else {}
                    await client.do("begin", {"address": address, **start})
                    await server.step("connect", {})
                    await server.step("hears", {"type": "start", "token": None, "server": None})
                    await server.step("started", given[0] if given else {})
                else:
                    await server.step(verb, given[0] if given else {})


@pytest.mark.parametrize("name", SCENARIOS)
def test_python_client(name: str) -> None:
    async def work() -> None:
        async with python() as client:
            await play(SCENARIOS[name], client)

    asyncio.run(work())


@pytest.mark.parametrize("name", SCENARIOS)
def test_page(name: str, tmp_path: Path) -> None:
    page = str(Path(__file__).with_name("page.mjs"))
    command = [program("node"), "--experimental-websocket", page, str(tmp_path / "web")]

    async def work() -> None:
        pipe = asyncio.subprocess.PIPE
        node = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        try:
            async with asyncio.TaskGroup() as tasks:
                client = FromPage(node, tasks)
                await play(SCENARIOS[name], client)
                assert node.stdin is not None
                node.stdin.close()
        finally:
            if node.returncode is None:
                node.kill()
            await node.wait()

    shutil.copytree(WEB / "js", tmp_path / "web" / "js")
    (tmp_path / "web" / "package.json").write_text('{"type": "module"}')
    asyncio.run(asyncio.wait_for(work(), 4 * SECONDS))
