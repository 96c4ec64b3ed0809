"""Find out how many concurrent requests a server batches well."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from redraft.decoding.types import ROOT, Score

if TYPE_CHECKING:
    from redraft.backends.remote.backend import RemoteBackend

#: Number of ids of a prompt, and of tokens behind the first one of a request.
PROMPT, STREAMED = 100, 16
#: Minimum speed-up in tokens per second for which the number of concurrent requests is doubled.
GAIN = 1.2


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


def _streamed(backend: RemoteBackend, slot: int) -> int:
    """Decode on a slot, with a prompt of its own; return the number of tokens, fewer if the output ends early."""
    length, different = min(PROMPT, backend.context_length // 2), min(200, backend.vocabulary_size - 1)
    prompt = prefix = tuple(1 + (slot + position) % different for position in range(length))
    while len(prefix) - len(prompt) <= STREAMED:
        (rows,) = backend.score([(slot, Score(prefix))])
        prefix += (rows.argmax(ROOT),)
        if prefix[-1] in backend.end_tokens:
            break
    return len(prefix) - len(prompt)
