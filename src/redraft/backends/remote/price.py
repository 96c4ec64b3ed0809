"""What passes cost on a server: T(n) of requests, measured when it is asked for.

A pass over one token is the next token of a stream.  A pass over more verifies a draft, which is a request of its own.
So drafts pay only where they replace many single tokens, and methods that draft by cost can see that.
"""

from __future__ import annotations

import time
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


def priced(backend: RemoteBackend) -> CostCurve:
    """T(n) of a server, in seconds; takes a few requests and one slot.

    Raises:
        CapabilityError: all slots are in use.
        ModelError: the server does not answer.
    """
    sizes = tuple(size for size in SIZES if size <= max(2, backend.context_length // 2 - 1))
    rounds = [[_seconds(backend, size) for size in sizes] for _ in range(1 + ROUNDS)][1:]
    return CostCurve(sizes, tuple(map(min, zip(*rounds, strict=True))))


def _seconds(backend: RemoteBackend, size: int) -> float:
    # The ids do not matter, as long as they are ids.
    length = min(CONTEXT, backend.context_length // 2)
    prefix = tuple(1 + position % min(200, backend.vocabulary_size - 1) for position in range(length))
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
    times: list[float] = []
    while len(times) <= STREAMED:
        (rows,) = backend.score([(slot, Score(prefix))])
        prefix += (rows.argmax(ROOT),)
        times.append(time.perf_counter())
        if prefix[-1] in backend.end_tokens:
            break
    return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else times[0] - begun
