"""Sample a server's metrics at /metrics repeatedly."""

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

#: Seconds between two samples, and the timeout of a response.
EVERY, PATIENCE = 2.0, 10.0
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of a server, and of the client process, at one moment.

    Attributes:
        time: seconds of the monotonic clock.
        values: the server's metrics without labels, by name.
        client_cpu: CPU seconds used by this process.
    """

    time: float
    values: Mapping[str, float]
    client_cpu: float

    @property
    def held(self) -> dict[str, int]:
        """What talks hold on the server: sessions, lanes (target languages) and cache slots."""
        names = {"sessions": "redraft_sessions", "lanes": "redraft_languages", "slots": "redraft_slots_in_use"}
        return {what: int(self.values[name]) for what, name in names.items()}

    @property
    def megabytes(self) -> float | None:
        """Resident memory of the server in megabytes; None if the system does not report it."""
        held = self.values.get("process_resident_memory_bytes")
        return None if held is None else held / MEGABYTE


def read(server: str) -> Sample:
    """Sample the server.

    Raises:
        ServerError: there is no response, or the server is not a Redraft server.
    """
    try:
        with urlopen(f"{server.rstrip('/')}/metrics", timeout=PATIENCE) as answer:
            text = answer.read().decode()
    except (OSError, ValueError) as error:
        raise ServerError("connection", f"the server at {server} cannot be reached: {error}") from None
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    values = {sample.name: float(sample.value) for sample in samples if not sample.labels}
    if "redraft_sessions" not in values:
        raise ServerError("protocol", f"{server} is not a Redraft server: its metrics have no sessions")
    return Sample(time.monotonic(), values, time.process_time())


async def watch(server: str, samples: list[Sample], every: float = EVERY) -> None:
    """Append samples until cancelled; failed samples are skipped."""
    while True:
        with suppress(ServerError):
            samples.append(await asyncio.to_thread(read, server))
        await asyncio.sleep(every)


async def settled(server: str, before: Sample, patience: float) -> Sample:
    """Wait until the server holds no more than ``before``, at most ``patience`` seconds; return the last sample."""
    until = time.monotonic() + patience
    while True:
        now = await asyncio.to_thread(read, server)
        if all(now.held[what] <= held for what, held in before.held.items()) or now.time > until:
            return now
        await asyncio.sleep(0.2)


def slope(points: Iterable[tuple[float, float]]) -> float | None:
    """Return the growth per minute by least squares over (seconds, value); None with fewer than two different times."""
    known = list(points)
    times, values = [time for time, _ in known], [value for _, value in known]
    return 60 * statistics.linear_regression(times, values).slope if len(set(times)) > 1 else None


def memory_slope(samples: Sequence[Sample]) -> float | None:
    """Return the server's memory growth in megabytes per minute, over the last three quarters of the time.

    None if unknown.
    """
    if not samples:
        return None
    warm = samples[0].time + (samples[-1].time - samples[0].time) / 4
    return slope((each.time, each.megabytes) for each in samples if each.time >= warm and each.megabytes is not None)
