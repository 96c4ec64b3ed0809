"""Drivers: run the generators of `redraft.decoding.decode` on backends, one or many in lock-step.

Each round collects the next request of every generator and answers all requests for a model with one batched pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from redraft.decoding.backend import Backend
from redraft.decoding.types import TARGET, Asking, Rows, Score
from redraft.errors import CapabilityError

T = TypeVar("T")

#: Called after every pass with lanes and requests, and the wall time of the pass in seconds.
Watch: TypeAlias = Callable[[Sequence[tuple[int, Score]], float], None]


@dataclass(slots=True)
class Decoding(Generic[T]):
    """A running generator with its slot in every model's cache."""

    asking: Asking[T]
    slots: Mapping[str, int]


def open_slots(backends: Mapping[str, Backend], count: int) -> list[dict[str, int]]:
    """Open slots for ``count`` decodings: a number in the cache of every model, by the model's name.

    Raises:
        CapabilityError: a model has fewer free slots; none stays open.
    """
    opened: list[dict[str, int]] = []
    try:
        for _ in range(count):
            opened.append({})
            for name, backend in backends.items():
                opened[-1][name] = backend.open_slot()
    except CapabilityError:
        close_slots(backends, opened)
        raise
    return opened


def close_slots(backends: Mapping[str, Backend], opened: Sequence[Mapping[str, int]]) -> None:
    """Close slots that `open_slots` has opened."""
    for slots in opened:
        for name, slot in slots.items():
            backends[name].close_slot(slot)


def run_together(lanes: Sequence[Decoding[T]], backends: Mapping[str, Backend], watch: Watch | None = None) -> list[T]:
    """Run several decodings to the end; return the results in the order of ``lanes``.

    Raises:
        ContextOverflow: a request exceeds the context length; all lanes are abandoned.
    """
    results: dict[int, T] = {}
    waiting: dict[int, Score] = {}

    def step(index: int, rows: Rows | None) -> None:
        try:
            # A generator is started by sending None; afterwards it always waits for rows.
            waiting[index] = lanes[index].asking.send(rows)  # type: ignore[arg-type]
        except StopIteration as stop:
            results[index] = stop.value
            for name, slot in lanes[index].slots.items():
                if name in backends:
                    backends[name].settle(slot)

    for index in range(len(lanes)):
        step(index, None)
    while waiting:
        model = next(iter(waiting.values())).model
        backend = backends[model]
        asked = [index for index, score in waiting.items() if score.model == model]
        if not backend.capabilities.batches:
            asked = asked[:1]
        scores = [(index, waiting.pop(index)) for index in asked]
        started = time.perf_counter()
        answers = backend.score([(lanes[index].slots[model], score) for index, score in scores])
        if watch:
            watch(scores, time.perf_counter() - started)
        for index, rows in zip(asked, answers, strict=True):
            step(index, rows)
    return [results[index] for index in range(len(lanes))]


def run(asking: Asking[T], backend: Backend, slot: int) -> T:
    """Run one decoding on one model."""
    return run_together([Decoding(asking, {TARGET: slot})], {TARGET: backend})[0]
