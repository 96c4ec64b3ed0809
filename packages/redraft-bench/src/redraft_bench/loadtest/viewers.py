"""One talk with many viewers: whether each viewer gets all captions once, the added lag, and the cost of a viewer."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

import numpy as np

from redraft.captions.events import Caption
from redraft.client import Client, ServerError
from redraft.serve.process import allow_open_files
from redraft_bench.eval.figures import Row, percentile_ms
from redraft_bench.loadtest import audience
from redraft_bench.loadtest.job import Job
from redraft_bench.loadtest.process import ADMIT_ALL, serving
from redraft_bench.loadtest.redis import CpuMeter, ProcessMeter, RedisProcess
from redraft_bench.loadtest.script import Script

#: Type, utterance, language and ``seq`` of a caption, as in `redraft_bench.loadtest.audience.KEY`.
Key: TypeAlias = tuple[str, str, str, int]
#: Timeouts in seconds for connecting the viewers, and for delivering everything after the end.
_CONNECTED, _SETTLED = 300.0, 60.0
#: Seconds of warm-up.
_WARM = 2.0
_SHARES = {"p50": 50, "p95": 95, "max": 100}


@dataclass(frozen=True, slots=True)
class Show:
    """A talk with viewers.

    Attributes:
        viewers: number of viewers.
        replicas: number of servers for viewers; with 0 all watch on the session's server, without Redis.
        seconds: duration once all viewers are connected.
        alone: seconds before the first viewer connects, in which the server's own load is measured.
        outage: seconds for which Redis is down in the middle; 0 for none.
        languages: target languages.
        method: decoding method.
        wanted: the languages that viewers ask for; empty if they are sent all.
    """

    viewers: int
    replicas: int
    seconds: float
    alone: float = 10.0
    outage: float = 0.0
    languages: tuple[str, ...] = ("de",)
    method: str = "ssbd"
    wanted: tuple[str, ...] = ()

    @property
    def sent(self) -> tuple[str, ...]:
        """The languages that viewers are sent."""
        return self.wanted or self.languages


@dataclass(slots=True)
class Seen:
    """What the session's owner received, with times in seconds of the monotonic clock, and the servers' CPU use.

    Attributes:
        captions: first arrival of each.
        begun: time from which all viewers were connected and the talk ran.
        ended: end of that time.
        connected: number of viewers that could connect.
        cpu: cores used: by the session's server without viewers (``alone``) and with them (``server``), by the servers
            for viewers (``replicas``), by Redis and by the viewers (``audience``).
    """

    captions: dict[Key, float] = field(default_factory=dict)
    begun: float = 0.0
    ended: float = 0.0
    connected: int = 0
    cpu: dict[str, float] = field(default_factory=dict)


async def run(job: Job, show: Show, progress: Callable[[float], None] = lambda _: None) -> Row:
    """Hold a talk with viewers, and write the row to the job's file.

    Raises:
        OptionError: Redis is not installed, or the system allows too few connections.
        ServerError: a server does not start or has crashed, or viewers could not connect.
    """
    allow_open_files(show.viewers + audience.BESIDE)  # child processes inherit the limit
    arrivals = job.folder / "viewers.npz"
    settings = {"viewers": "100000"}
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(RedisProcess.started()) if show.replicas else None
        if redis is not None:
            settings["fanout"] = redis.url
        server = await stack.enter_async_context(job.serving(show.method, busy=ADMIT_ALL, **settings))
        only = {**settings, "viewers_only": "true"}
        replicas = [
            await stack.enter_async_context(serving(only, job.folder / f"viewers-{number}.log"))
            for number in range(show.replicas)
        ]
        seen = await _watched(job, show, server, replicas, redis, arrivals, progress)
    found = {**job.labels(show.method), **figures(show, seen, arrivals)}
    job.write(found, ("method", "options", "viewers", "replicas", "outage", "sent"))
    return found


async def _watched(
    job: Job,
    show: Show,
    server: str,
    replicas: Sequence[str],
    redis: RedisProcess | None,
    arrivals: Path,
    progress: Callable[[float], None],
) -> Seen:
    """Speak, let the viewers connect, and measure while all are connected."""
    seen, over = Seen(), asyncio.Event()
    async with Client(server, list(show.languages), method=show.method) as client:
        tasks = [asyncio.create_task(_listen(client, seen)), asyncio.create_task(_speak(client, job.script, over))]
        try:
            await asyncio.sleep(_WARM)
            alone = CpuMeter([server])
            await asyncio.sleep(show.alone)
            seen.cpu["alone"] = alone.cores()
            query = urlencode([("language", each) for each in show.wanted])
            addresses = [f"{each}/v1/watch/{client.session}?{query}" for each in replicas or [server]]
            async with _audience(show, addresses, arrivals) as (crowd, seen.connected):
                await asyncio.sleep(_WARM)
                await _measure(show, seen, CpuMeter([server]), CpuMeter(replicas), redis, crowd, progress)
                over.set()
                await asyncio.gather(*tasks)
                with suppress(TimeoutError):
                    await asyncio.wait_for(crowd.wait(), _SETTLED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return seen


async def _measure(
    show: Show,
    seen: Seen,
    server: CpuMeter,
    replicas: CpuMeter,
    redis: RedisProcess | None,
    crowd: asyncio.subprocess.Process,
    progress: Callable[[float], None],
) -> None:
    """Wait for the duration of the measurement; kill Redis in the middle if the plan says so."""
    viewers = ProcessMeter(crowd.pid)
    store = ProcessMeter(redis.pid) if redis is not None and not show.outage else None
    seen.begun = time.monotonic()
    down = seen.begun + (show.seconds - show.outage) / 2
    up = down + show.outage
    killed = False
    while (now := time.monotonic()) < seen.begun + show.seconds:
        progress(now - seen.begun)
        if redis is not None and show.outage and (down <= now < up) != killed:
            await (redis.start() if killed else redis.kill())
            killed = not killed
        await asyncio.sleep(0.1)
    seen.ended = time.monotonic()
    seen.cpu |= {"server": server.cores(), "replicas": replicas.cores(), "audience": viewers.cores()}
    if store is not None:
        seen.cpu["redis"] = store.cores()


@asynccontextmanager
async def _audience(
    show: Show, addresses: Sequence[str], arrivals: Path
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """Run the viewers' process; yield it and the number of connected viewers once all are connected.

    Raises:
        ServerError: the process did not connect the viewers.
    """
    command = (sys.executable, "-m", audience.__name__, str(show.viewers), str(arrivals))
    pipe = asyncio.subprocess.PIPE
    uris = [address.replace("http", "ws", 1) for address in addresses]
    process = await asyncio.create_subprocess_exec(*command, *uris, stdin=pipe, stdout=pipe)
    if process.stdin is None or process.stdout is None:
        raise ServerError("engine", "the viewers could not be started")
    try:
        connected = await _connected(process.stdout)
    except BaseException:  # it notices the end of its standard input only once all are connected
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    try:
        yield process, connected
    finally:
        process.stdin.close()
        await process.wait()


async def _connected(output: asyncio.StreamReader) -> int:
    """Wait for the line that says that all are connected; return how many are.

    Raises:
        ServerError: it did not come.
    """
    try:
        words = (await asyncio.wait_for(output.readline(), _CONNECTED)).split()
    except TimeoutError:
        raise ServerError("connection", f"the viewers were not connected within {_CONNECTED:g} seconds") from None
    if words[:1] != [b"ready"]:
        raise ServerError("connection", "the viewers could not connect: see the traceback above")
    return int(words[1])


async def _listen(client: Client, seen: Seen) -> None:
    async for event in client:
        if isinstance(event, Caption):
            kind = "final" if event.final else "partial"
            seen.captions.setdefault((kind, event.utterance, event.language, event.seq), time.monotonic())


async def _speak(client: Client, script: Script, over: asyncio.Event) -> None:
    begun = time.monotonic()
    for second, update in script.spoken():
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), max(0.0, begun + second - time.monotonic()))
        if over.is_set():
            break
        await client.send(update)
    await client.end()


def figures(show: Show, seen: Seen, arrivals: Path) -> Row:
    """Return the row of a run.

    Lags run from a caption's arrival at the session's owner to its arrival at a viewer, for captions made while all
    viewers were connected.
    """
    with np.load(arrivals) as found:
        keys = [tuple(key) for key in json.loads(str(found["messages"]))]
        viewers, indices, times = (found[name] for name in ("viewers", "indices", "times"))
    made = np.array([seen.captions.get(key, np.nan) for key in keys])
    lags = (times - made[indices])[(made[indices] >= seen.begun) & (made[indices] <= seen.ended)]
    within = (times >= seen.begun) & (times <= seen.ended)
    cores = seen.cpu["replicas"] if show.replicas else seen.cpu["server"] - seen.cpu["alone"]
    return {
        "viewers": show.viewers,
        "replicas": show.replicas,
        "seconds": show.seconds,
        "outage": show.outage,
        "sent": ",".join(show.sent),
        "not_connected": show.viewers - seen.connected,
        "finals": sum(key[0] == "final" and key[2] in show.sent for key in seen.captions),
        "messages_a_second": round(float(within.sum()) / show.viewers / (seen.ended - seen.begun), 2),
        **_completeness(show, seen, keys, viewers, indices),
        **{f"added_lag_{name}_ms": percentile_ms(lags.tolist(), share) for name, share in _SHARES.items()},
        "viewers_cpu": round(cores, 3),
        "viewers_a_core": round(show.viewers / cores) if cores > 0 else None,
        "server_cpu": round(seen.cpu["server"], 3),
        "redis_cpu": round(seen.cpu["redis"], 3) if "redis" in seen.cpu else None,
        "client_cpu": round(seen.cpu["audience"], 3),
    }


def _completeness(show: Show, seen: Seen, keys: Sequence[Any], viewers: Any, indices: Any) -> Row:
    """Count viewers that missed final captions, got one twice, or got one before an earlier one of its language."""
    due = (key for key in seen.captions if key[0] == "final" and key[2] in show.sent)
    order = {key: number for number, key in enumerate(due)}
    got: list[list[Any]] = [[] for _ in range(show.viewers)]
    for viewer, index in zip(viewers.tolist(), indices.tolist(), strict=True):
        if keys[index][0] == "final":
            got[viewer].append(keys[index])
    lost = sum(len(order.keys() - set(each)) for each in got)
    doubled = sum(len(each) - len(set(each)) for each in got)
    by_language = ([order.get(key, -1) for key in each if key[2] == language] for each in got for language in show.sent)
    disordered = sum(earlier > later for each in by_language for earlier, later in pairwise(each))
    return {"lost": lost, "doubled": doubled, "disordered": disordered}
