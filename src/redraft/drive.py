"""Drivers: they run the generators of `redraft.decode` on backends, one alone or many in lock-step.

Every round collects the next request of each generator and answers all of a model's requests with one batched pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from redraft.types import TARGET, Asking, Backend, Rows, Score

T = TypeVar("T")


@dataclass(slots=True)
class Lane(Generic[T]):
    """A generator under way with its slot of every model's cache."""

    asking: Asking[T]
    slots: Mapping[str, int]


def run_together(lanes: Sequence[Lane[T]], backends: Mapping[str, Backend]) -> list[T]:
    """Run several decodings to their ends; results in the order of ``lanes``.

    Raises:
        ContextOverflow: a request does not fit; all lanes are given up.
    """
    results: dict[int, T] = {}
    waiting: dict[int, Score] = {}

    def step(index: int, rows: Rows | None) -> None:
        try:
            # A generator starts by being sent None; afterwards it always waits for rows.
            waiting[index] = lanes[index].asking.send(rows)  # type: ignore[arg-type]
        except StopIteration as stop:
            results[index] = stop.value

    for index in range(len(lanes)):
        step(index, None)
    while waiting:
        model = next(iter(waiting.values())).model
        backend = backends[model]
        asked = [index for index, score in waiting.items() if score.model == model]
        if not backend.capabilities.batches:
            asked = asked[:1]
        answers = backend.score([(lanes[index].slots[model], waiting.pop(index)) for index in asked])
        for index, rows in zip(asked, answers, strict=True):
            step(index, rows)
    return [results[index] for index in range(len(lanes))]


def run(asking: Asking[T], backend: Backend, slot: int) -> T:
    """Run one decoding on one model."""
    return run_together([Lane(asking, {TARGET: slot})], {TARGET: backend})[0]
