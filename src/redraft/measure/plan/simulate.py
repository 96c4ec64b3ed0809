"""Simulate an engine: the real scheduler on recorded work, with a cost instead of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from redraft.captions.events import Event, Update
from redraft.captions.session import Translation
from redraft.decoding.backend import Backend, Capabilities
from redraft.decoding.tally import Tally
from redraft.decoding.types import Asking, Draft, Output, Provenance, Score, common_prefix
from redraft.measure.eval.record import PassRecord
from redraft.measure.plan.formula import EngineModel
from redraft.measure.plan.skipping import after_skipping
from redraft.measure.plan.stage import LoadResult, TalkLoad, play
from redraft.measure.plan.trace import Work


def simulate(scene: TalkLoad, work: Work, engine: EngineModel) -> LoadResult:
    """Play a scene with recorded work on an engine of the formula.

    Raises:
        MissingExtra: simpy is not installed.
    """
    clock = _CostClock(engine)
    backend = cast(Backend, _CostBackend(clock, scene.slots))
    return play(scene, backend, lambda number, first: cast(Translation, Replayed(work, number, first)), clock)


class _CostClock:
    """A `redraft.measure.plan.stage.Stopwatch` that adds up the costs of the passes in a round."""

    def __init__(self, engine: EngineModel) -> None:
        self.engine, self._seconds = engine, 0.0

    def start(self) -> None:
        self._seconds = 0.0

    def seconds(self) -> float:
        return self._seconds

    def add(self, requests: int, tokens: int, cached: int) -> None:
        host = self.engine.host * (requests if self.engine.in_process else 1)
        self._seconds += self.engine.cost(requests, tokens, cached) + host


class _CostBackend:
    """A backend without results that only adds the cost of a pass to a clock."""

    capabilities = Capabilities(batches=True)

    def __init__(self, clock: _CostClock, slots: int) -> None:
        self._clock, self._free = clock, list(range(slots))
        self._held: dict[int, tuple[int, ...]] = {}

    def open_slot(self) -> int:
        slot = self._free.pop()
        self._held[slot] = ()
        return slot

    def close_slot(self, slot: int) -> None:
        del self._held[slot]
        self._free.append(slot)

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Any]:
        """Return no rows: `Replayed` knows the next request."""
        cached = [min(common_prefix(self._held[slot], each.prefix), len(each.prefix) - 1) for slot, each in requests]
        lengths = [len(each.prefix) + len(each.draft) for _slot, each in requests]
        for slot, each in requests:
            self._held[slot] = each.prefix + each.draft.tokens
        self._clock.add(len(requests), sum(lengths) - sum(cached), sum(cached))
        return [None] * len(requests)


class Replayed:
    """A `Translation` that makes the recorded requests, with meaningless ids.

    An update after skipped ones needs more work than in the record: more of its prompt is new, and of its draft only
    the common prefix of all outputs in between is accepted.

    Args:
        work: the recorded work.
        number: number of the lane, whose ids no other lane uses.
        first: first segment of the talk.
    """

    language = "trace"

    def __init__(self, work: Work, number: int, first: int) -> None:
        self.tally = Tally()
        self._work, self._first = work, first
        self._held: tuple[int, ...] = ()
        self._fresh = number << 32
        self._done: tuple[str, int] = ("", -1)

    def translate(self, update: Update) -> Asking[list[Event]]:
        """Request the passes of an update."""
        steps = self._work.records[(self._first + int(update.utterance)) % len(self._work.records)].steps
        index = next(number for number, step in enumerate(steps) if step.seq == update.seq)
        before = self._done[1] if self._done[0] == update.utterance else -1
        passes = after_skipping(steps[before + 1 : index + 1], steps[before].tokens if before >= 0 else ())
        for each in passes:
            yield self._score(each)
        step = steps[index]
        if step.passes:
            kept = min(len(step.tokens), sum(each.accepted for each in passes))
            self.tally.add(Output(step.tokens, step.finished, len(passes), 0, kept))
        self._done = update.utterance, index
        return []

    def _score(self, each: PassRecord) -> Score:
        """Make a request of which the cache holds exactly as many ids as in the recording."""
        length = each.cached + each.new - each.nodes
        prefix = self._held[: each.cached] + self._ids(length - min(each.cached, len(self._held)))
        draft = Draft.chain(self._ids(each.nodes), Provenance.PREVIOUS)
        self._held = prefix + draft.tokens
        return Score(prefix, draft, min(each.prompt_rows, length))

    def _ids(self, count: int) -> tuple[int, ...]:
        self._fresh += count
        return tuple(range(self._fresh - count, self._fresh))
