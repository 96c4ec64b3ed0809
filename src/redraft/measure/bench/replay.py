"""Replays the recorded passes of a run on a model of another size, to see what a method gains there.

What a pass costs depends on how many ids it runs over and how many lie in the cache, not on which ids these are.  So
every target pass of the record is run again with ids that mean nothing: as many cached, as many new, as many rows, and
rolled back to the same places.  Nothing is translated: outputs and acceptance are those of the model that was recorded,
times are those of the model that replays.  Of what a method does between its passes only the search for the most
probable token of every row that it kept is part of the times.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from redraft import __version__
from redraft.decoding import cost
from redraft.decoding.backend import Backend
from redraft.decoding.types import ROOT, Draft, Provenance, Score
from redraft.measure.bench.recording import Recording, passes_of
from redraft.measure.eval.contender import Contender
from redraft.measure.eval.figures import Row, TableLine
from redraft.measure.eval.figures import rows as figures
from redraft.measure.eval.record import PassRecord, Record, Step
from redraft.measure.eval.signature import file_hash, machine

#: How many samples of the cost curve a replay takes, about.
SAMPLES = 7
#: Figures of a bench that have a meaning for a replay; all but the times and what follows from them are the record's.
FIELDS = (
    *("method", "options", "mask", "target_language", "segments", "updates", "output_tokens", "target_passes"),
    *("mean_acceptance_length", "draft_acceptance", "output_acceptance", "tokens_per_second", "update_p50_ms"),
    *("update_p95_ms", "speedup", "speedup_median", "pass_speedup", "limit_distance"),
)
#: Columns of the terminal's table.
COLUMNS = (
    *("target_language", "method", "mask", "segments", "target_passes", "mean_acceptance_length"),
    *("output_acceptance", "tokens_per_second", "speedup", "pass_speedup", "limit_distance"),
)


@dataclass(slots=True)
class Player:
    """Runs recorded passes on a backend, which needs one free slot.

    A draft tree is replayed as a chain of as many ids.

    Attributes:
        random: draws the ids.
    """

    backend: Backend
    random: Random
    _slot: int = 0
    _held: tuple[int, ...] = ()

    def play(self, record: Record) -> Record:
        """The record with the times of this backend."""
        self._slot, self._held = self.backend.open_slot(), ()
        try:
            passes = passes_of(record)
            if passes and passes[0].cached:  # what earlier segments have left in the cache; not timed
                self._run(PassRecord(0, passes[0].cached, 0, 0, 0))
            return replace(record, steps=tuple(self._step(step) for step in record.steps))
        finally:
            self.backend.close_slot(self._slot)

    def _step(self, step: Step) -> Step:
        seconds = sum((self._run(each) for each in step.passes), 0.0)
        return replace(step, seconds=seconds, model_seconds=seconds)

    def _run(self, each: PassRecord) -> float:
        """Seconds of a pass."""
        score = self._request(each)
        started = time.perf_counter()
        rows = self.backend.score([(self._slot, score)])[0]
        for node in range(ROOT, each.accepted):  # also waits for a GPU
            rows.argmax(node)
        return time.perf_counter() - started

    def _request(self, each: PassRecord) -> Score:
        """Ids of which the cache holds just as many as it did when the pass was recorded."""
        length = each.cached + each.new - each.nodes
        prefix = [*self._held[: each.cached], *self._draw(length - each.cached)]
        if each.cached < len(self._held) and prefix[each.cached] == self._held[each.cached]:
            prefix[each.cached] = (prefix[each.cached] + 1) % self.backend.vocabulary_size
        draft = self._draw(each.nodes)
        self._held = (*prefix, *draft)
        return Score(tuple(prefix), Draft.chain(draft, Provenance.PREVIOUS), each.prompt_rows)

    def _draw(self, count: int) -> list[int]:
        return self.random.choices(range(self.backend.vocabulary_size), k=count)


def replay(
    backend: Backend, recording: Recording, *, seed: int = 0, show: Callable[[range], Iterable[int]] = iter
) -> tuple[dict[str, list[Record]], cost.CostCurve]:
    """The records with the times of ``backend``, and its cost curve, measured in between.

    The contenders take turns segment by segment, in an order that reverses every time.

    Args:
        backend: with one free slot of `Recording.context_length`.
        seed: of the ids.
        show: put around the numbers of the segments, for a progress bar.
    """
    player = Player(backend, Random(seed))
    names = list(recording.records)
    played: dict[str, list[Record]] = {name: [] for name in names}
    count = len(recording.records[names[0]])
    every = max(1, count // SAMPLES)
    _sample(backend)  # a first pass of every size takes longer
    samples = []
    for number in show(range(count)):
        if number % every == 0:
            samples.append(_sample(backend))
        for name in names if number % 2 == 0 else reversed(names):
            played[name].append(player.play(recording.records[name][number]))
    return played, cost.curve(samples)


def _sample(backend: Backend) -> list[float]:
    slot = backend.open_slot()
    try:
        return cost.sample(backend, slot)
    finally:
        backend.close_slot(slot)


def rows(played: Mapping[str, Sequence[Record]], curve: cost.CostCurve, data: str = "") -> list[Row]:
    """A row for every contender: `FIELDS` as every bench has them, and the ``seconds`` of all passes.

    Every row says ``replay``, so that it is not taken for a run that translates.

    Args:
        data: what was replayed on what, in words.
    """
    names = [_parts(name) for name in played]
    lines = [
        TableLine(Contender(method, language), records)
        for (method, _options, _mask, language), records in zip(names, played.values(), strict=True)
    ]
    found: list[Row] = []
    for row, line, (_method, options, mask, _language) in zip(figures(lines, curve), lines, names, strict=True):
        shown = {**row, "options": options, "mask": mask}
        labels: Row = {"bench": "replay", "replay": True, "data": data}
        found.append({**labels, **{name: shown[name] for name in FIELDS}, "seconds": round(line.seconds, 6)})
    return found


def write_rows(table: Sequence[Row], curve: cost.CostCurve, line: str, folder: Path, name: str) -> None:
    """Write ``NAME-LANGUAGE.rows.jsonl`` for every language, which the report shows (`redraft.measure.bench.read`).

    Each has its rows and an object with the curve.

    Args:
        line: the signature.
    """
    for language in dict.fromkeys(row["target_language"] for row in table):
        objects: list[dict[str, Any]] = [row for row in table if row["target_language"] == language]
        shared = {field: objects[0][field] for field in ("bench", "data", "target_language")}
        objects.append({**shared, "curve": asdict(curve)})
        with (folder / f"{name}-{language}.rows.jsonl").open("w", encoding="utf-8") as file:
            for each in objects:
                file.write(json.dumps({**each, "signature": line}, ensure_ascii=False) + "\n")


def _parts(name: str) -> tuple[str, str, str, str]:
    """Method, settings, masking and language of `Contender.name`."""
    title, _, language = name.rpartition(", ")
    title, _, masking = title.partition(", hides ")
    method, _, settings = title.partition(" ")
    return method, settings, masking, language


def signature(records: Path, recording: Recording, seed: int, **model: object) -> str:
    """One line that begins with ``replay:`` and tells what was replayed on what.

    Args:
        records: the file of the recording.
        seed: of the ids.
        model: facts of model and engine.
    """
    parts = {
        "replay": f"{records.name}@{file_hash(records)}",
        "redraft": __version__,
        "segments": len(next(iter(recording.records.values()))),
        **model,
        "seed": seed,
        **machine(),
    }
    return "|".join(f"{name}:{value}" for name, value in parts.items())
