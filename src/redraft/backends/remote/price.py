"""What passes cost on a server, and how many requests it batches well; measured when it is asked for.

A pass over one token is the next token of a stream.  A pass over more verifies a draft, which is a request of its own.
So drafts pay only where they replace many single tokens, and methods that draft by cost can see that.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from redraft.decoding.cost import CONTEXT, CostCurve
from redraft.decoding.types import ROOT, Draft, Provenance, Score

if TYPE_CHECKING:
    from redraft.backends.remote.backend import RemoteBackend

#: New tokens of the passes that are measured; between them a curve is a line.
SIZES = (1, 2, 32, 96)
#: Tokens of a stream that are timed.
STREAMED = 16
#: Rounds after one that is not counted; the least time counts, since other clients can only add to it.
ROUNDS = 3
#: Twice as many requests at a time must bring this many times the tokens a second.
GAIN = 1.2


def priced(backend: RemoteBackend) -> CostCurve:
    """T(n) of a server, in seconds; takes a few requests and one slot.

    Raises:
        CapabilityError: all slots are in use.
        ModelError: the server does not answer.
    """
    sizes = tuple(size for size in SIZES if size <= max(2, backend.context_length // 2 - 1))
    rounds = [[_seconds(backend, size) for size in sizes] for _ in range(1 + ROUNDS)][1:]
    return CostCurve(sizes, tuple(map(min, zip(*rounds, strict=True))))


def batched(backend: RemoteBackend) -> int:
    """How many requests at a time a server batches well, from 1 to the number of free slots.

    Their number is doubled for as long as the server gives notably more tokens a second.

    Raises:
        CapabilityError: all slots are in use.
        ModelError: the server does not answer.
    """
    _rate(backend, 1)  # what the first requests of a server take does not count
    count, rate = 1, _rate(backend, 1)
    while 2 * count <= backend.options.slots:
        # Other clients can only lower it.
        more = max(_rate(backend, 2 * count) for _ in range(2))
        if more < GAIN * rate:
            break
        count, rate = 2 * count, more
    return count


def _rate(backend: RemoteBackend, count: int) -> float:
    """Tokens a second of so many requests at a time, their prompts included."""
    slots = [backend.open_slot() for _ in range(count)]
    started = time.perf_counter()
    try:
        with ThreadPoolExecutor(count) as threads:
            tokens = sum(threads.map(lambda slot: len(_times(backend, slot, _prefix(backend, 1 + slot))), slots))
        return tokens / (time.perf_counter() - started)
    finally:
        for slot in slots:
            backend.close_slot(slot)


def _prefix(backend: RemoteBackend, first: int = 1) -> tuple[int, ...]:
    """Ids that begin with this one; the others do not matter."""
    length, size = min(CONTEXT, backend.context_length // 2), min(200, backend.vocabulary_size - 1)
    return tuple(1 + (first - 1 + position) % size for position in range(length))


def _seconds(backend: RemoteBackend, size: int) -> float:
    prefix = _prefix(backend)
    slot = backend.open_slot()  # a new one, which remembers nothing
    try:
        if size == 1:
            return _streamed(backend, slot, prefix)
        draft = Draft.chain([prefix[-1]] * (size - 1), Provenance.GENERATED)
        started = time.perf_counter()
        # With a bias of 1 a server that verifies by itself verifies the whole draft.
        (rows,) = backend.score([(slot, Score(prefix, draft, bias=1.0))])
        rows.argmax(len(draft) - 1)
        return time.perf_counter() - started
    finally:
        backend.close_slot(slot)


def _streamed(backend: RemoteBackend, slot: int, prefix: tuple[int, ...]) -> float:
    """Seconds from one token of a stream to the next, on average; those of a request, if it ends at once."""
    begun = time.perf_counter()
    times = _times(backend, slot, prefix)
    return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else times[0] - begun


def _times(backend: RemoteBackend, slot: int, prefix: tuple[int, ...]) -> list[float]:
    """When each token of a stream came."""
    times: list[float] = []
    while len(times) <= STREAMED:
        (rows,) = backend.score([(slot, Score(prefix))])
        prefix += (rows.argmax(ROOT),)
        times.append(time.perf_counter())
        if prefix[-1] in backend.end_tokens:
            break
    return times
