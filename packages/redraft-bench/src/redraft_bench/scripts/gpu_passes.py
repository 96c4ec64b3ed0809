"""What passes of the backend `hf` take: alone, in recorded streams, and shared by many sessions."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median, quantiles
from typing import Any, TypeAlias

import torch
from torch.profiler import ProfilerActivity, profile

from redraft.backends.hf.decoder_only import HfDecoder
from redraft.decoding.types import ROOT, Draft, Provenance, Rows, Score
from redraft_bench.eval.replay import Trace
from redraft_bench.scripts.gpu_models import gigabytes

Row: TypeAlias = dict[str, Any]

#: New tokens of a pass, alone and shared by several sessions, and their numbers.
SIZES, SHARED_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256), (1, 4, 16, 64)
SESSIONS = (1, 2, 4, 8, 16, 32, 64)
#: Sessions that repeat a stream.
STREAMS = (1, 4, 16, 32, 64)
#: Passes over more new tokens are left out.
MOST = 1024
#: Passes of which the median counts, alone and shared, after some to warm up.
REPEATS, SHARED_REPEATS, WARM = 25, 11, 3
#: Rounds that come before those that count.
FIRST_ROUNDS = 3
#: Methods of sessions, by the beginning of their names.
SHARED = ("ar", "redraft")


def synchronize() -> None:
    """Wait for the GPU, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of a piece of work."""
    synchronize()
    started = time.perf_counter()
    work()
    synchronize()
    return time.perf_counter() - started


def pass_times(backend: HfDecoder, prompt: int, until: float) -> Iterator[Row]:
    """Yield the time of passes over new tokens behind prompts of ``prompt`` ids, by number of sessions."""
    draw, read = random.Random(0), gigabytes(backend)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(draw.choices(range(backend.vocabulary_size), k=count))

    slots = [backend.open_slot() for _ in range(max(SESSIONS))]
    prompts = [ids(prompt) for _ in slots]
    backend.score([(slot, Score(known)) for slot, known in zip(slots, prompts, strict=True)])
    cells = [(1, new) for new in SIZES]
    cells += [(count, new) for new in SHARED_SIZES for count in SESSIONS[1:] if count * new <= MOST]
    for sessions, new in cells:
        times: list[float] = []
        while len(times) < WARM + (REPEATS if sessions == 1 else SHARED_REPEATS):
            if time.monotonic() > until and (sessions, new) != cells[0]:
                break
            requests = [
                (slot, Score(known + ids(1), Draft.chain(ids(new - 1), Provenance.MODEL)))
                for slot, known in zip(slots[:sessions], prompts, strict=False)
            ]
            times.append(timed(partial(backend.score, requests)))
        if steady := times[WARM:]:
            row = {"sessions": sessions, "new": new, "prompt": prompt, "gigabytes": read, "passes": len(steady)}
            yield row | {"ms": 1e3 * median(steady), "ms_least": 1e3 * min(steady), "ms_most": 1e3 * max(steady)}
    for slot in slots:
        backend.close_slot(slot)


def busy_times(backend: HfDecoder, prompt: int, until: float) -> Iterator[Row]:
    """Yield how long the GPU works in a pass; the rest of its time, it waits for Python."""
    slot, known = backend.open_slot(), tuple(range(prompt))
    for new in (1, 8, 64):
        draft = Draft.chain(range(new - 1), Provenance.MODEL)
        for _ in range(WARM):
            backend.score([(slot, Score((*known, 5), draft))])
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            backend.score([(slot, Score((*known, 7), draft))])
            synchronize()
        busy = sum(each.self_device_time_total for each in seen.key_averages())
        kernels = sum(each.device_type.name == "CUDA" for each in seen.events())
        yield {"new": new, "busy_ms": busy / 1e3, "kernels": kernels}
        if time.monotonic() > until:
            break
    backend.close_slot(slot)


def stream_times(backend: HfDecoder, traces: Sequence[Trace], until: float) -> Iterator[Row]:
    """Yield the time of an update with every method of a stream, which take turns."""
    slots = [backend.open_slot() for _ in traces]
    seconds, passes, new = ([0.0] * len(traces) for _ in range(3))
    for number in range(len(traces[0].updates)):
        order = range(len(traces))
        for place in order if number % 2 else reversed(order):
            done = traces[place].updates[number]
            seconds[place] += timed(partial(_repeat, backend, slots[place], done))
            passes[place] += len(done)
            new[place] += sum(1 + len(each.draft) for each in done)
        if time.monotonic() > until:
            break
    for slot in slots:
        backend.close_slot(slot)
    plain = next((place for place, each in enumerate(traces) if each.method == "ar"), 0)
    for place, trace in enumerate(traces):
        names = {"recorded": trace.model, "data": trace.data, "language": trace.language, "method": trace.method}
        found = {"updates": number + 1, "passes": int(passes[place]), "ms": 1e3 * seconds[place] / (number + 1)}
        speedup = seconds[plain] / seconds[place] if seconds[place] else None
        yield {**names, **found, "speedup": speedup, "pass_speedup": passes[plain] / max(1, passes[place])}


def _repeat(backend: HfDecoder, slot: int, passes: Iterable[Score]) -> None:
    for each in passes:
        _read(backend.score([(slot, each)])[0], each)


def _read(rows: Rows, score: Score) -> None:
    """Read what a rule reads at least."""
    for node in range(ROOT, len(score.draft)):
        rows.argmax(node)


@dataclass(slots=True)
class Session:
    """A session that repeats a stream without waiting, from an update of its own."""

    slot: int
    updates: Sequence[Sequence[Score]]
    at: int
    step: int = 0
    done: float = 0.0
    started: float = 0.0
    took: list[float] = field(default_factory=list)

    @property
    def next(self) -> Score:
        """The pass that it waits for."""
        return self.updates[self.at][self.step]

    def answered(self, now: float) -> None:
        """Go on to the next pass."""
        passes = len(self.updates[self.at])
        self.done += 1 / passes
        self.step += 1
        if self.step == passes:
            if self.started:  # not the one that was under way when counting began
                self.took.append(now - self.started)
            self.at, self.step, self.started = (self.at + 1) % len(self.updates), 0, now


def session_times(backend: HfDecoder, traces: Sequence[Trace], until: float) -> Iterator[Row]:
    """Yield updates a second by number of sessions, all busy, whose passes are shared."""
    chosen = [each for each in traces if each.method.partition(" ")[0].rstrip(",") in SHARED]
    for place, count in enumerate(STREAMS):
        share = (until - time.monotonic()) / (len(STREAMS) - place) / max(1, len(chosen))
        for trace in chosen:
            if time.monotonic() > until and (place or trace is not chosen[0]):
                return
            found = _shared(backend, trace, count, share)
            yield {"sessions": count, "recorded": trace.model, "data": trace.data, "method": trace.method, **found}


def _shared(backend: HfDecoder, trace: Trace, count: int, seconds: float) -> Row:
    updates = [each for each in trace.updates if each]
    sessions = [Session(backend.open_slot(), updates, place * len(updates) // count) for place in range(count)]
    rounds, end, started = 0, time.monotonic() + seconds, 0.0
    while rounds <= FIRST_ROUNDS or time.monotonic() < end:
        if rounds == FIRST_ROUNDS:
            synchronize()
            started = time.perf_counter()
            for each in sessions:
                each.done, each.started, each.took = 0.0, 0.0, []
        asked = [each.next for each in sessions]
        rows = backend.score([(each.slot, score) for each, score in zip(sessions, asked, strict=True)])
        for each, score, found in zip(sessions, asked, rows, strict=True):
            _read(found, score)
            each.answered(time.perf_counter())
        rounds += 1
    synchronize()
    passed = time.perf_counter() - started
    for each in sessions:
        backend.close_slot(each.slot)
    done = sum(each.done for each in sessions) * len(trace.updates) / len(updates)  # some updates need no pass
    took = sorted(each for session in sessions for each in session.took)
    late = 1e3 * quantiles(took, n=20)[-1] if len(took) > 1 else None
    found = {"updates_per_second": done / passed, "ms_p50": 1e3 * median(took) if took else None, "ms_p95": late}
    return {**found, "rounds": rounds - FIRST_ROUNDS, "round_ms": 1e3 * passed / (rounds - FIRST_ROUNDS)}
