"""Replay the recorded passes of a run on a model of another size, to estimate what a method gains there.

The cost of a pass depends on the number of new and cached ids, not on the ids.  So each recorded target pass is run
again with random ids: the same numbers of cached ids, new ids and rows, with the same rollbacks.  Nothing is
translated: outputs and acceptance come from the recording, times from the replaying model.  Of the work between passes,
the times include only the argmax of each row that was kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from redraft import __version__
from redraft.backends import costs
from redraft.backends.engine import lib
from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_model
from redraft.backends.quantise import FORMATS
from redraft.decoding.backend import Backend
from redraft.decoding.cost import CostCurve
from redraft.decoding.types import ROOT, Draft, Provenance, Score
from redraft.errors import OptionError
from redraft.signature import file_hash, machine, model_label
from redraft_bench.bench.recording import Recording, passes_of
from redraft_bench.eval.contender import HOLDS_BACK, Contender
from redraft_bench.eval.figures import Row, TableLine
from redraft_bench.eval.figures import rows as figures
from redraft_bench.eval.record import PassRecord, Record, Step

#: Approximate number of samples of the cost curve.
SAMPLES = 7
#: Figures that are valid for a replay; all except times and ratios of times come from the recording.
FIELDS = (
    *("method", "options", "display", "hold_back", "target_language", "segments", "updates", "output_tokens"),
    *("target_passes",),
    *("mean_acceptance_length", "draft_acceptance", "output_acceptance", "tokens_per_second", "update_p50_ms"),
    *("update_p95_ms", "speedup", "speedup_median", "pass_speedup", "limit_distance"),
)
#: Columns of the table in the terminal.
COLUMNS = (
    *("target_language", "method", "display", "hold_back", "segments", "target_passes", "mean_acceptance_length"),
    *("output_acceptance", "tokens_per_second", "speedup", "pass_speedup", "limit_distance"),
)


@dataclass(slots=True)
class Player:
    """Runs recorded passes on a backend with one free slot.

    A draft tree is replayed as a chain of the same size.

    Attributes:
        random: random generator of the ids.
    """

    backend: Backend
    random: Random
    _slot: int = 0
    _held: tuple[int, ...] = ()

    def play(self, record: Record) -> Record:
        """Return the record with the times of this backend."""
        self._slot, self._held = self.backend.open_slot(), ()
        try:
            passes = passes_of(record)
            if passes and passes[0].cached:  # fill the cache as earlier segments did; not timed
                self._run(PassRecord(0, passes[0].cached, 0, 0, 0))
            return replace(record, steps=tuple(self._step(step) for step in record.steps))
        finally:
            self.backend.close_slot(self._slot)

    def _step(self, step: Step) -> Step:
        seconds = sum((self._run(each) for each in step.passes), 0.0)
        return replace(step, seconds=seconds, model_seconds=seconds)

    def _run(self, each: PassRecord) -> float:
        """Run a pass and return its seconds."""
        score = self._request(each)
        started = time.perf_counter()
        rows = self.backend.score([(self._slot, score)])[0]
        for node in range(ROOT, each.accepted):  # reading rows also waits for a GPU
            rows.argmax(node)
        return time.perf_counter() - started

    def _request(self, each: PassRecord) -> Score:
        """Make a request of which the cache holds exactly as many ids as in the recording."""
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
) -> tuple[dict[str, list[Record]], CostCurve]:
    """Replay a recording; return the records with the times of ``backend``, and its cost curve.

    Contenders take turns segment by segment, in an order that is reversed each time.  The cost curve is sampled between
    segments.

    Args:
        backend: has one free slot of `Recording.context_length`.
        seed: random seed of the ids.
        show: wraps the segment numbers, for a progress bar.
    """
    player = Player(backend, Random(seed))
    names = list(recording.records)
    played: dict[str, list[Record]] = {name: [] for name in names}
    count = len(recording.records[names[0]])
    every = max(1, count // SAMPLES)
    _sample(backend)  # the first pass of each size is slower
    samples = []
    for number in show(range(count)):
        if number % every == 0:
            samples.append(_sample(backend))
        for name in names if number % 2 == 0 else reversed(names):
            played[name].append(player.play(recording.records[name][number]))
    return played, costs.medians(samples)


def _sample(backend: Backend) -> list[float]:
    slot = backend.open_slot()
    try:
        return costs.sample(backend, slot)
    finally:
        backend.close_slot(slot)


def rows(played: Mapping[str, Sequence[Record]], curve: CostCurve, data: str = "") -> list[Row]:
    """Return a row per contender: the `FIELDS` of a benchmark, and ``seconds`` of all passes.

    Each row has the field ``replay``, so it cannot be mistaken for a measured translation.
    """
    names = [_parts(name) for name in played]
    lines = [
        TableLine(Contender(each.method, each.language, hold_back=each.hold_back), records)
        for each, records in zip(names, played.values(), strict=True)
    ]
    found: list[Row] = []
    for row, line, each in zip(figures(lines, curve), lines, names, strict=True):
        shown = {**row, "options": each.options, "display": each.display}
        labels: Row = {"bench": "replay", "replay": True, "data": data}
        found.append({**labels, **{name: shown[name] for name in FIELDS}, "seconds": round(line.seconds, 6)})
    return found


def write_rows(table: Sequence[Row], curve: CostCurve, line: str, folder: Path, name: str) -> None:
    """Write ``NAME-LANGUAGE.rows.jsonl`` for each language, for the report (`redraft_bench.bench.read`).

    Each file has the rows and an object with the curve.
    """
    for language in dict.fromkeys(row["target_language"] for row in table):
        objects: list[dict[str, Any]] = [row for row in table if row["target_language"] == language]
        shared = {field: objects[0][field] for field in ("bench", "data", "target_language")}
        objects.append({**shared, "curve": asdict(curve)})
        with (folder / f"{name}-{language}.rows.jsonl").open("w", encoding="utf-8") as file:
            for each in objects:
                file.write(json.dumps({**each, "signature": line}, ensure_ascii=False) + "\n")


class _Named(NamedTuple):
    """What the name of a contender says."""

    method: str
    options: str
    display: str
    hold_back: bool
    language: str


def _parts(name: str) -> _Named:
    """Split `Contender.name`."""
    title, *more, language = name.split(", ")
    method, _, options = title.partition(" ")
    hold_back = more[-1:] == [HOLDS_BACK]
    if hold_back:
        more.pop()
    display = ", ".join(part for part in more if not part.startswith("with ")).removeprefix("shows ")
    return _Named(method, options, display, hold_back, language)


def signature(records: Path, recording: Recording, seed: int, **model: object) -> str:
    """Return a one-line signature that starts with ``replay:``."""
    parts = {
        "replay": f"{records.name}@{file_hash(records)}",
        "redraft": __version__,
        "segments": len(next(iter(recording.records.values()))),
        **model,
        "seed": seed,
        **machine(),
    }
    return "|".join(f"{name}:{value}" for name, value in parts.items())


def open_gguf(name: str, context_length: int, device: str, threads: int) -> tuple[Backend, dict[str, object]]:
    """Load a model by name or path; return the backend and facts for the signature.

    Args:
        name: name or path of the model.
        context_length: ids per slot.
        device: one of `redraft.backends.hf.options.DEVICES`.
        threads: CPU threads; 0 tunes the number while running.

    Raises:
        OptionError: the device does not exist.
        ModelError: the model does not exist, or its file is invalid.
    """
    gpu = lib.llama_supports_gpu_offload()
    if device == "cuda" and not gpu:
        raise OptionError("device cuda is not available: use cpu or auto, or build llama-cpp-python with CUDA")
    layers = 0 if device == "cpu" else -1
    backend = open_model(name, LlamaOptions(context_length=context_length, threads=threads, gpu_layers=layers))
    known = backend.metadata
    architecture, file_type = known["general.architecture"], known.get("general.file_type", "unknown")
    quants = {str(number): quant for quant, number in FORMATS.items()} | {"32": "BF16"}
    return backend, {
        "model": model_label(backend.model.path),
        "shape": f"{architecture}-{known[f'{architecture}.block_count']}x{known[f'{architecture}.embedding_length']}",
        "quant": quants.get(file_type, f"type-{file_type}"),
        "engine": "llama.cpp",
        "device": "gpu" if gpu and layers else "cpu",
        "threads": threads or "adaptive",
    }
