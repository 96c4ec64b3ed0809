"""Run N talks at once in one asyncio process, and record what happens to them and to the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from redraft.client import Backoff, Client, ServerError
from redraft.decoding.method import Value
from redraft_bench.loadtest.gauges import Sample, read, settled, watch
from redraft_bench.loadtest.hearing import Hearing
from redraft_bench.loadtest.script import Script

#: Timeout in seconds for the captions of a talk that has ended, and for reconnecting.
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The talks of a load test.

    Attributes:
        talks: number of simultaneous talks.
        seconds: duration from the start of the first talk.
        languages: target languages, assigned to the talks in turn.
        method: decoding method.
        options: its options.
        stagger: seconds over which the talks start.
        warm_up: seconds after that before captions count.
        talk_seconds: length of a talk, after which another one replaces it; 0 lets talks last to the end.
        seed: random seed of the positions in the script at which talks start.
    """

    talks: int
    seconds: float
    languages: tuple[str, ...] = ("de",)
    method: str = "redraft"
    options: Mapping[str, Value] = field(default_factory=dict)
    stagger: float = 10.0
    warm_up: float = 5.0
    talk_seconds: float = 0.0
    seed: int = 0


@dataclass(slots=True)
class Outcome:
    """The measurements; times are of the monotonic clock in seconds.

    Attributes:
        plan: the plan.
        warm: time from which captions count.
        ended: time at which the last talk was due to end.
        hearings: one per session.
        refused: errors of sessions that were not admitted.
        broken: errors of sessions that ended early.
        late: for each update, seconds between when it was due and when it was sent.
        left: what the server still held for these talks after all had ended and the wait for it was over.
    """

    plan: Plan
    warm: float
    ended: float
    hearings: list[Hearing] = field(default_factory=list)
    refused: list[ServerError] = field(default_factory=list)
    broken: list[ServerError] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)


async def hold(
    server: str, script: Script, plan: Plan, progress: Callable[[float], None] = lambda _: None, settle: float = 20.0
) -> Outcome:
    """Hold the talks of a plan.

    Args:
        server: URL of the server.
        progress: called about once a second with the seconds elapsed.
        settle: seconds to wait for the server to close the sessions after the last talk.

    Raises:
        ServerError: the server does not respond before the first talk or after the last one.
    """
    before = await asyncio.to_thread(read, server)
    begun = time.monotonic()
    outcome = Outcome(plan, begun + plan.stagger + plan.warm_up, begun + plan.seconds)
    beside = [asyncio.create_task(watch(server, outcome.samples)), asyncio.create_task(_tick(begun, progress))]
    try:
        await asyncio.gather(*(_place(number, begun, server, script, outcome) for number in range(plan.talks)))
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
    after = await settled(server, before, settle)
    outcome.left = {what: max(0, after.held[what] - held) for what, held in before.held.items()}
    return outcome


async def _tick(begun: float, progress: Callable[[float], None]) -> None:
    while True:
        progress(time.monotonic() - begun)
        await asyncio.sleep(1)


async def _place(number: int, begun: float, server: str, script: Script, outcome: Outcome) -> None:
    """Hold one talk after another; the first one is shortened so that talks do not all end at the same time."""
    plan = outcome.plan
    language = plan.languages[number % len(plan.languages)]
    chance = Random(f"{plan.seed} {number}")
    start = begun + plan.stagger * number / plan.talks
    length = plan.talk_seconds * (number + 1) / plan.talks or plan.seconds
    while start < outcome.ended:
        await asyncio.sleep(max(0.0, start - time.monotonic()))
        until = min(start + length, outcome.ended)
        backoff = Backoff(patience=PATIENCE)
        client = Client(server, [language], method=plan.method, options=plan.options, backoff=backoff)
        await _talk(client, script, chance.randrange(len(script.stream.segments)), start, until, outcome)
        await asyncio.sleep(max(0.0, until - time.monotonic()))  # after a refusal there is no talk in this place
        start, length = max(until, time.monotonic()), plan.talk_seconds


async def _talk(client: Client, script: Script, first: int, start: float, until: float, outcome: Outcome) -> None:
    hearing = Hearing()
    outcome.hearings.append(hearing)
    try:
        async with client, asyncio.timeout(until + PATIENCE - time.monotonic()):
            speaking = asyncio.create_task(_speak(client, script, first, start, until, hearing, outcome.late))
            try:
                async for event in client:
                    hearing.received(event, time.monotonic())
            finally:
                speaking.cancel()
                with suppress(asyncio.CancelledError, ServerError):
                    await speaking
    except TimeoutError:
        sentence = f"captions were still missing {PATIENCE:g} seconds after the end of the talk"
        outcome.broken.append(ServerError("timeout", sentence))
    except ServerError as error:
        (outcome.broken if client.session else outcome.refused).append(error)
    hearing.close(time.monotonic())


async def _speak(
    client: Client, script: Script, first: int, start: float, until: float, hearing: Hearing, late: list[float]
) -> None:
    try:
        for second, update in script.spoken(first):
            due = start + second
            if due >= until:
                return
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            late.append(time.monotonic() - due)
            hearing.sent(update, due)
            await client.send(update)
    finally:
        await client.end()
