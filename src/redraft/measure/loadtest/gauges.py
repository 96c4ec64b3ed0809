"""What a server tells of itself at /metrics, taken again and again."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from redraft.client import ServerError

#: Seconds between two samples, and those that an answer may take.
EVERY, PATIENCE = 2.0, 10.0
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Sample:
    """A server at one moment, and the process that talks to it.

    Attributes:
        time: seconds of the monotonic clock.
        values: the server's metrics without labels, by name.
        client_cpu: seconds of processor time that this process has used.
    """

    time: float
    values: Mapping[str, float]
    client_cpu: float

    @property
    def held(self) -> dict[str, int]:
        """What talks hold: sessions, lanes (target languages) and slots of the cache."""
        names = {"sessions": "redraft_sessions", "lanes": "redraft_languages", "slots": "redraft_slots_in_use"}
        return {what: int(self.values[name]) for what, name in names.items()}

    @property
    def megabytes(self) -> float | None:
        """Memory that the server holds (resident set); None on a system that does not tell it."""
        held = self.values.get("process_resident_memory_bytes")
        return None if held is None else held / MEGABYTE


def read(server: str) -> Sample:
    """The server as it is now.

    Raises:
        ServerError: it does not answer, or is no server of Redraft.
    """
    try:
        with urlopen(f"{server.rstrip('/')}/metrics", timeout=PATIENCE) as answer:
            text = answer.read().decode()
    except (OSError, ValueError) as error:
        raise ServerError("connection", f"the server at {server} cannot be reached: {error}") from None
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    values = {sample.name: float(sample.value) for sample in samples if not sample.labels}
    if "redraft_sessions" not in values:
        raise ServerError("protocol", f"there is no server of Redraft at {server}: it does not tell of its sessions")
    return Sample(time.monotonic(), values, time.process_time())


async def watch(server: str, samples: list[Sample], every: float = EVERY) -> None:
    """Add samples until cancelled; one that the server is too busy to give is left out."""
    while True:
        with suppress(ServerError):
            samples.append(await asyncio.to_thread(read, server))
        await asyncio.sleep(every)


async def settled(server: str, before: Sample, patience: float) -> Sample:
    """The server once it holds no more than it held ``before``, or as it is after so many seconds."""
    until = time.monotonic() + patience
    while True:
        now = await asyncio.to_thread(read, server)
        if all(now.held[what] <= held for what, held in before.held.items()) or now.time > until:
            return now
        await asyncio.sleep(0.2)


def slope(points: Iterable[tuple[float, float]]) -> float | None:
    """By how much a value grows a minute, by least squares over (second, value); None for fewer than two times."""
    known = list(points)
    times, values = [time for time, _ in known], [value for _, value in known]
    return 60 * statistics.linear_regression(times, values).slope if len(set(times)) > 1 else None


def memory_slope(samples: Sequence[Sample]) -> float | None:
    """By how many megabytes the server grows a minute, in the last three quarters of the samples' time, if known."""
    if not samples:
        return None
    warm = samples[0].time + (samples[-1].time - samples[0].time) / 4
    return slope((each.time, each.megabytes) for each in samples if each.time >= warm and each.megabytes is not None)
