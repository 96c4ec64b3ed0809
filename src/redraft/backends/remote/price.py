"""Measure the cost of passes on a server, and how many requests it batches well.

A pass over one token is the next token of a request.  A longer pass verifies a draft, which is a separate request.  So
drafts pay off only where they replace many single tokens; methods that draft by cost take that into account.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from redraft.backends.remote.dialect import GreedyRequest
from redraft.decoding.cost import CostCurve, context_ids, sizes_for
from redraft.decoding.types import ROOT, Draft, Provenance, Score

if TYPE_CHECKING:
    from redraft.backends.remote.backend import RemoteBackend

#: Numbers of new tokens of the measured passes; the curve is interpolated linearly.
SIZES = (1, 2, 32, 96)
#: Number of tokens to time behind the first one of a request.
STREAMED = 16
#: Rounds after a warm-up; the minimum counts, since other clients only add to the time.
ROUNDS = 3
#: Minimum speed-up in tokens per second for which the number of concurrent requests is doubled.
GAIN = 1.2


class Costs:
    """The cost curve of a server, measured once for all its backends; thread-safe."""

    def __init__(self) -> None:
        self._curve: CostCurve | None = None
        self._lock = threading.Lock()

    def measured(self, measure: Callable[[], CostCurve]) -> CostCurve:
        """Return the curve; the first call measures it."""
        with self._lock:
            if self._curve is None:
                self._curve = measure()
            return self._curve


def priced(backend: RemoteBackend) -> CostCurve:
    """Measure T(n) of a server in seconds; uses one slot.

    Raises:
        CapabilityError: all slots are in use.
        ModelError: the server does not answer.
    """
    sizes = sizes_for(backend, SIZES)
    streams: list[list[float]] = []
    rounds: list[list[float]] = []
    for _ in range(1 + ROUNDS):
        streams.append(_arrivals(backend))
        rounds.append([_seconds(backend, size) for size in sizes[1:]])
    request, *others = map(min, zip(*rounds[1:], strict=True))
    return CostCurve(sizes, (_per_token(streams[1:], request), request, *others))


def batched(backend: RemoteBackend) -> int:
    """Return how many concurrent requests a server batches well, from 1 to the number of free slots.

    The number is doubled while that notably increases tokens per second.

    Raises:
        CapabilityError: all slots are in use.
        ModelError: the server does not answer.
    """
    _rate(backend, 1)  # warm-up
    count, rate = 1, _best_rate(backend, 1)
    while 2 * count <= backend.options.slots:
        more = _best_rate(backend, 2 * count)
        if more < GAIN * rate:
            break
        count, rate = 2 * count, more
    return count


def _best_rate(backend: RemoteBackend, count: int) -> float:
    """Return the better one of two rates, since other clients can only lower them."""
    return max(_rate(backend, count) for _ in range(2))


def _rate(backend: RemoteBackend, count: int) -> float:
    """Return tokens per second of ``count`` concurrent requests, including their prompts."""
    slots = [backend.open_slot() for _ in range(count)]
    started = time.perf_counter()
    try:
        with ThreadPoolExecutor(count) as threads:
            tokens = sum(threads.map(lambda slot: _streamed(backend, slot), slots))
        return tokens / (time.perf_counter() - started)
    finally:
        for slot in slots:
            backend.close_slot(slot)


def _seconds(backend: RemoteBackend, size: int) -> float:
    """Return the seconds of a request that verifies a draft, as a pass over ``size`` new tokens."""
    prefix = context_ids(backend)
    slot = backend.open_slot()  # a new one with an empty cache
    try:
        draft = Draft.chain([prefix[-1]] * (size - 1), Provenance.GENERATED)
        started = time.perf_counter()
        # With a bias of 1, a server that verifies drafts itself verifies the whole draft.
        (rows,) = backend.score([(slot, Score(prefix, draft, bias=1.0))])
        rows.argmax(len(draft) - 1)
        return time.perf_counter() - started
    finally:
        backend.close_slot(slot)


def _arrivals(backend: RemoteBackend) -> list[float]:
    """Return the arrival time of each token of a request, in seconds from its start."""
    wanted = GreedyRequest(backend.model.name, context_ids(backend), 1 + STREAMED, 1, sorted(backend.end_tokens))
    begun = time.perf_counter()
    with closing(backend.dialect.continued(wanted)) as steps:
        return [time.perf_counter() - begun for _ in steps]


def _per_token(streams: Sequence[Sequence[float]], request: float) -> float:
    """Return the seconds of a further token; if the output ends early, an upper bound: those of the request per token.

    Gaps between tokens are no measure: SGLang sends all tokens at once, and on a busy machine vLLM sends several.

    Args:
        streams: arrival times of several requests, at least one each.
        request: seconds of a request without further tokens.
    """
    best = min(streams, key=lambda times: times[-1])
    if len(best) <= STREAMED:
        return best[-1] / len(best)
    return (best[-1] - min(request, *(times[0] for times in streams))) / STREAMED


def _streamed(backend: RemoteBackend, slot: int) -> int:
    """Decode on a slot, with a prompt of its own; return the number of tokens, fewer if the output ends early."""
    prompt = prefix = context_ids(backend, 1 + slot)
    while len(prefix) - len(prompt) <= STREAMED:
        (rows,) = backend.score([(slot, Score(prefix))])
        prefix += (rows.argmax(ROOT),)
        if prefix[-1] in backend.end_tokens:
            break
    return len(prefix) - len(prompt)
