"""One talk with many viewers: whether each viewer gets all captions once, the added lag, and the cost of a viewer."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias
from urllib.parse import urlencode

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from redraft.captions.events import Caption
from redraft.client import Client
from redraft.errors import OptionError
from redraft.serve.run import allow_open_files
from redraft_bench.eval.figures import Row, percentile_ms
from redraft_bench.loadtest.gauges import read
from redraft_bench.loadtest.job import Job
from redraft_bench.loadtest.process import ADMIT_ALL, serving
from redraft_bench.loadtest.script import Script

#: Type, utterance, language and ``seq`` of a caption.
Key: TypeAlias = tuple[str, str, str, int]
#: Timeout in seconds for delivering everything after the end; seconds of warm-up.
_SETTLED, _WARM = 60.0, 2.0
#: Number of viewers that connect concurrently, and of files open besides the connections.
_AT_ONCE, _BESIDE = 50, 100


@dataclass(frozen=True, slots=True)
class Show:
    """A talk with viewers.

    Attributes:
        viewers: number of viewers.
        replicas: number of servers for viewers; with 0 all watch on the session's server, without Redis.
        seconds: duration once all viewers are connected.
        alone: seconds before the first viewer connects, in which the server's own load is measured.
        languages: target languages.
        method: decoding method.
        wanted: the languages that viewers ask for; empty if they are sent all.
    """

    viewers: int
    replicas: int
    seconds: float
    alone: float = 10.0
    languages: tuple[str, ...] = ("de",)
    method: str = "redraft"
    wanted: tuple[str, ...] = ()

    @property
    def sent(self) -> tuple[str, ...]:
        """The languages that viewers are sent."""
        return self.wanted or self.languages


@dataclass(slots=True)
class Seen:
    """What the session's owner and the viewers received, with times in seconds of the monotonic clock, and cores used.

    Attributes:
        captions: first arrival of each at the owner.
        arrivals: of each viewer, the messages in their order; None for a viewer that could not connect.
        begun: time from which all viewers were connected and the talk ran.
        ended: end of that time.
        cpu: cores used by the session's server without viewers (``alone``) and with them (``server``), by the servers
            for viewers (``replicas``), and by this process (``client``).
    """

    captions: dict[Key, float] = field(default_factory=dict)
    arrivals: list[list[tuple[Key, float]] | None] = field(default_factory=list)
    begun: float = 0.0
    ended: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)


async def run(job: Job, show: Show, progress: Callable[[float], None] = lambda _: None) -> Row:
    """Hold a talk with viewers, and write the row to the job's file.

    Raises:
        OptionError: Redis is not installed, or the system allows too few connections.
        ServerError: a server does not start or has crashed.
    """
    allow_open_files(show.viewers + _BESIDE)  # child processes inherit the limit
    settings = {"viewers": "100000"}
    async with AsyncExitStack() as stack:
        if show.replicas:
            settings["fanout"] = await stack.enter_async_context(_redis())
        server = await stack.enter_async_context(job.serving(show.method, busy=ADMIT_ALL, **settings))
        only = {**settings, "viewers_only": "true"}
        replicas = [
            await stack.enter_async_context(serving(only, job.folder / f"viewers-{number}.log"))
            for number in range(show.replicas)
        ]
        seen = await _watched(job, show, server, replicas, progress)
    found = {**job.labels(show.method), **figures(show, seen)}
    job.write(found, ("method", "options", "viewers", "replicas", "sent"))
    return found


@asynccontextmanager
async def _redis() -> AsyncIterator[str]:
    """Run a Redis server without persistence on a free local port while the block runs; yield its URL."""
    program = shutil.which("redis-server")
    if program is None:
        raise OptionError("viewers on replicas need redis-server: on Debian, apt install redis-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, *f"--port {port} --bind 127.0.0.1 --appendonly no --save".split(), ""]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    try:
        while process.returncode is None:
            with suppress(OSError):
                (await asyncio.open_connection("127.0.0.1", port))[1].close()
                break
            await asyncio.sleep(0.05)
        else:
            raise OptionError(f"redis-server ended with status {process.returncode}: run {' '.join(command)!r}")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _watched(
    job: Job, show: Show, server: str, replicas: Sequence[str], progress: Callable[[float], None]
) -> Seen:
    """Speak, let the viewers connect, and measure while all are connected."""
    seen, over = Seen(), asyncio.Event()
    async with Client(server, list(show.languages), method=show.method) as client, asyncio.TaskGroup() as group:
        group.create_task(_listen(client, seen))
        group.create_task(_speak(client, job.script, over))
        await asyncio.sleep(_WARM)
        alone = _cpu([server]), time.monotonic()
        await asyncio.sleep(show.alone)
        seen.cpu["alone"] = (_cpu([server]) - alone[0]) / (time.monotonic() - alone[1])
        query = urlencode([("language", each) for each in show.wanted])
        addresses = [f"{each}/v1/watch/{client.session}?{query}" for each in replicas or [server]]
        opened, few = asyncio.Semaphore(0), asyncio.Semaphore(_AT_ONCE)
        watching = [
            asyncio.create_task(_watch(addresses[number % len(addresses)], opened, few))
            for number in range(show.viewers)
        ]
        for _ in watching:
            await opened.acquire()
        await asyncio.sleep(_WARM)
        seen.begun, before = time.monotonic(), (_cpu([server]), _cpu(replicas), time.process_time())
        while (passed := time.monotonic() - seen.begun) < show.seconds:
            progress(passed)
            await asyncio.sleep(0.1)
        after = _cpu([server]), _cpu(replicas), time.process_time()
        seen.ended = time.monotonic()
        for name, first, last in zip(("server", "replicas", "client"), before, after, strict=True):
            seen.cpu[name] = (last - first) / (seen.ended - seen.begun)
        over.set()
    _, late = await asyncio.wait(watching, timeout=_SETTLED)  # the servers close the connections
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    seen.arrivals = [None if task.cancelled() else task.result() for task in watching]
    return seen


def _cpu(servers: Sequence[str]) -> float:
    """Return the processor time of servers in seconds."""
    return sum(read(server).values["process_cpu_seconds_total"] for server in servers)


async def _watch(address: str, opened: asyncio.Semaphore, few: asyncio.Semaphore) -> list[tuple[Key, float]] | None:
    """Watch until the server ends; return what came, None if it could not connect."""
    found: list[tuple[str | bytes, float]] = []
    try:
        async with few:
            connection = await connect(address.replace("http", "ws", 1), compression=None, ping_interval=None)
    except (OSError, WebSocketException):
        return None
    finally:
        opened.release()
    with suppress(WebSocketException):
        async for data in connection:
            found.append((data, time.monotonic()))
    messages = [(json.loads(data), at) for data, at in found]
    return [
        ((message["type"], message["utterance"], message["language"], message["seq"]), at)
        for message, at in messages
        if message["type"] in ("partial", "final")
    ]


async def _listen(client: Client, seen: Seen) -> None:
    async for event in client:
        if isinstance(event, Caption):
            kind = "final" if event.final else "partial"
            seen.captions.setdefault((kind, event.utterance, event.language, event.seq), time.monotonic())


async def _speak(client: Client, script: Script, over: asyncio.Event) -> None:
    begun = time.monotonic()
    for second, update in script.spoken():
        with suppress(TimeoutError):
            async with asyncio.timeout(begun + second - time.monotonic()):
                await over.wait()
        if over.is_set():
            break
        await client.send(update)
    await client.end()


def figures(show: Show, seen: Seen) -> Row:
    """Return the row of a run.

    Lags run from a caption's arrival at the session's owner to its arrival at a viewer, for captions made while all
    viewers were connected.
    """
    arrivals = [each for each in seen.arrivals if each is not None]
    made = [(seen.captions[key], at) for each in arrivals for key, at in each if key in seen.captions]
    lags = [at - caption for caption, at in made if seen.begun <= caption <= seen.ended]
    within = sum(seen.begun <= at <= seen.ended for each in arrivals for _, at in each)
    cores = seen.cpu["replicas"] if show.replicas else seen.cpu["server"] - seen.cpu["alone"]
    due = [key for key in seen.captions if key[0] == "final" and key[2] in show.sent]
    order = {key: number for number, key in enumerate(due)}
    finals = [[key for key, _ in each if key[0] == "final"] for each in arrivals]
    by_language = ([order.get(key, -1) for key in each if key[2] == to] for each in finals for to in show.sent)
    return {
        "viewers": show.viewers,
        "replicas": show.replicas,
        "seconds": show.seconds,
        "sent": ",".join(show.sent),
        "not_connected": show.viewers - len(arrivals),
        "finals": len(due),
        "messages_a_second": round(within / show.viewers / (seen.ended - seen.begun), 2),
        "lost": sum(len(order.keys() - set(each)) for each in finals),
        "doubled": sum(len(each) - len(set(each)) for each in finals),
        "disordered": sum(earlier > later for each in by_language for earlier, later in pairwise(each)),
        **{f"added_lag_p{share}_ms": percentile_ms(lags, share) for share in (50, 95)},
        "added_lag_max_ms": percentile_ms(lags, 100),
        "viewers_cpu": round(cores, 3),
        "viewers_a_core": round(show.viewers / cores) if cores > 0 else None,
        "server_cpu": round(seen.cpu["server"], 3),
        "client_cpu": round(seen.cpu["client"], 3),
    }
