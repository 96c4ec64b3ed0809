"""Run a table on a stream: records, rows of figures and a cost curve.

A run writes to a folder and can be resumed.  (Drafters lose what they have learnt, so a resumed run may need different
passes for the same output.)  The files of table NAME on data set DATA into LANG start with ``NAME-DATA-LANG``:

    .run.json        what is run; a folder with another run is rejected
    .stream.jsonl    the stream (`redraft_bench.eval.stream`)
    .records.jsonl   every segment by every contender, token by token (`redraft_bench.eval.record`)
    .costs.jsonl     samples of T(n), taken between segments
    .rows.jsonl      the figures, each with its signature, and an object with the curve
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from redraft.backends import costs
from redraft.backends.load import BRANCHES_OF_A_TREE, HF_PREFIX, fitting, on_transformers, open_backend, resolve
from redraft.captions.events import Update
from redraft.captions.style import Style
from redraft.decoding.backend import Backend, Capability, CostCurve
from redraft.decoding.method import Value
from redraft.decoding.methods import get_method
from redraft.errors import CapabilityError, InputError, MissingExtra
from redraft.signature import model_label, signature
from redraft_bench.bench.peers import PEERS, Models, open_peer, version
from redraft_bench.bench.peers.retranslate import Task
from redraft_bench.bench.tables import Table
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.figures import TableLine
from redraft_bench.eval.measure import MethodSystem, Run, System, compare
from redraft_bench.eval.record import Record, read_records, replace_records, write_records
from redraft_bench.eval.stream import Stream
from redraft_bench.eval.tasks import TaskSystem, TextTask, require_scores

#: Number of segments run before recording starts.
WARM_UP = 2
#: Approximate number of samples of the cost curve.
SAMPLES = 15


@dataclass(frozen=True, slots=True)
class BenchModels:
    """Models and their options.

    Attributes:
        model: name or path of the target model.
        smalls: names or paths of draft models.
        engine: options of the engine; draft models take those that their backends have.
    """

    model: str = "demo"
    smalls: tuple[str, ...] = ("demo-tiny",)
    engine: Mapping[str, Value] = field(default_factory=lambda: {"context_length": 1024})


@dataclass(slots=True)
class Bench:
    """One table on one stream into one language.

    Attributes:
        extra: additional facts for the signature.
        style: how prompts are made.
        tasks: tasks other than translation, by the names of their utterances.
        left_out: name of a contender -> why the models cannot run it.
    """

    table: Table
    stream: Stream
    language: str
    models: BenchModels
    folder: Path
    extra: Mapping[str, object] = field(default_factory=dict)
    style: Style = Style()
    tasks: Mapping[str, TextTask] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def contenders(self) -> list[Contender]:
        """The contenders of the table that the models can run."""
        found = self.table.contenders(self.language, self.models.smalls)
        return [each for each in found if each.name not in self.left_out]

    def leave_out(self) -> None:
        """Find the contenders that the models cannot run: without a small model, trees or the model's first layers.

        Raises:
            RedraftError: a model cannot be opened, or cannot be prompted, or what scores the tasks is not installed.
        """
        require_scores(self.tasks.values())
        with ExitStack() as stack:
            target = stack.enter_context(closing(self._open(1, BRANCHES_OF_A_TREE)))
            smalls = {name: stack.enter_context(closing(open_backend(name))) for name in self._smalls()}
            for each in self.contenders:
                try:
                    self._check(each, target, smalls.get(each.small))
                except (CapabilityError, MissingExtra) as error:
                    self.left_out[each.name] = str(error)

    def _check(self, contender: Contender, target: Backend, small: Backend | None) -> None:
        if contender.method in PEERS:
            if self.tasks:
                raise CapabilityError(f"{contender.method!r} can only translate")
            if on_transformers(self.models.model) and PEERS[contender.method].packages:
                raise CapabilityError(f"{contender.method!r} needs a GGUF file")
            if PEERS[contender.method].drafts and not self.models.smalls:
                raise CapabilityError(f"{contender.method!r} needs a small model: name it with --draft-model")
            version(contender.method)
            return
        if self.tasks:
            TaskSystem(target, contender, self.tasks, small).close()
        else:
            MethodSystem(target, replace(contender, batch=1), self.style, small).close()

    def file(self, ending: str) -> Path:
        """Return the path of a file of the run, such as ``.records.jsonl``."""
        stem = f"{self.table.name}-{self.stream.name}-{self.language}"
        return self.folder / (re.sub(r"[^\w.-]+", "-", stem) + ending)

    @property
    def signature(self) -> str:
        """Settings and versions that reproduce the rows; metrics add theirs."""
        small = {f"small{n or ''}": model_label(_path(name)) for n, name in enumerate(self._smalls())}
        engine = {each: value for each, value in self.models.engine.items() if each != "context_length"}
        peers = "; ".join(dict.fromkeys(version(each.method) for each in self.contenders if each.method in PEERS))
        return signature(
            _path(self.models.model),
            self.stream.name,
            self.stream.hash,
            seed=None,
            segments=len(self.stream.segments),
            threads=engine.pop("threads", 0) or "adaptive",
            exact=bool(engine.pop("exact", False)),
            **small,
            **({"peers": peers} if peers else {}),
            **engine,
            **self.extra,
        )

    def _smalls(self) -> list[str]:
        drafting = any(each.method in PEERS and PEERS[each.method].drafts for each in self.contenders)
        named = [*(each.small for each in self.contenders if each.small), *(self.models.smalls[:1] if drafting else ())]
        return list(dict.fromkeys(named))

    def run(self, show: Callable[[Sequence[int]], Iterable[int]] = iter) -> list[TableLine]:
        """Run the segments that are not recorded yet; return all contenders with all records.

        Raises:
            InputError: the folder contains another run.
        """
        done = self._begin()
        left = [number for number in range(len(self.stream.segments)) if number not in done]
        if left:
            if left[0] == 0:  # warm-up, not recorded
                with self._systems() as systems:
                    for number in range(min(WARM_UP, len(self.stream.segments))):
                        self._segment(systems, number)
            with self._systems() as systems, closing(self._open(1)) as alone:
                # Repeat the previous segments, so that caches hold what they would in an uninterrupted run.
                for number in range(max(0, left[0] - WARM_UP), left[0]):
                    self._segment(systems, number)
                slot = alone.open_slot()
                costs.sample(alone, slot)
                every = max(1, len(self.stream.segments) // SAMPLES)
                for turn, number in enumerate(show(left)):
                    if turn % every == 0:
                        self._add_sample(costs.sample(alone, slot))
                    write_records(self.file(".records.jsonl"), self._segment(systems, number))
        return self.lines()

    def _begin(self) -> set[int]:
        """Record what is run; return the segments that are already recorded."""
        times = {update.time is None for update in self.stream.updates}
        if len(times) > 1:
            raise InputError(f"updates of {self.stream.name!r} must all have a time, or none")
        facts = {"signature": self.signature, "lines": [each.name for each in self.contenders]}
        path = self.file(".run.json")
        self.folder.mkdir(parents=True, exist_ok=True)
        if path.exists() and json.loads(path.read_text(encoding="utf-8")) != facts:
            raise InputError(f"{path} is of another run: choose another --out, or delete the files of that run")
        path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        self.stream.save(self.file(".stream.jsonl"))
        samples = self.file(".costs.jsonl")
        if samples.exists() and not (text := samples.read_text(encoding="utf-8")).endswith("\n"):
            samples.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")  # the next sample would continue it
        records = self.file(".records.jsonl")
        if not records.exists():
            return set()
        kept = self._complete()
        # An incomplete segment is run again.
        replace_records(records, (record for segment in kept.values() for record in segment))
        return set(kept)

    def _complete(self) -> dict[int, list[Record]]:
        """Return the records of the segments that every contender has completed, in the order of the stream."""
        found: dict[int, list[Record]] = {}
        for record in read_records(self.file(".records.jsonl")):
            found.setdefault(record.segment, []).append(record)
        lines = len(self.contenders)
        return {number: found[number] for number in sorted(found) if len(found[number]) == lines}

    def lines(self) -> list[TableLine]:
        """Return every contender with its records so far."""
        complete = [record for segment in self._complete().values() for record in segment]
        return [TableLine(each, [r for r in complete if r.contender == each.name]) for each in self.contenders]

    def curve(self) -> CostCurve:
        """Return T(n): the medians of all samples of the run."""
        lines = self.file(".costs.jsonl").read_text(encoding="utf-8").splitlines()
        return costs.curve_of([json.loads(line) for line in lines], statistics.median)

    def _add_sample(self, seconds: Sequence[float]) -> None:
        with self.file(".costs.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps([round(each, 7) for each in seconds]) + "\n")

    def _segment(self, systems: Sequence[tuple[Contender, System]], number: int) -> list[Record]:
        """Run one segment with every contender."""
        runs = [Run(contender, system) for contender, system in systems]
        segment = self.stream.segments[number]
        compare(runs, segment.updates, segment=number)
        return [run.records[0] for run in runs]

    def _slots(self, small: str) -> int:
        return sum(each.batch for each in self.contenders if each.small == small)

    def _open(self, slots: int, branches: int = 0, threads: int | None = None) -> Backend:
        more = {} if threads is None else {"threads": threads}
        return open_backend(self.models.model, {**self.models.engine, **more}, slots=slots, branches=branches)

    @contextmanager
    def _systems(self) -> Iterator[list[tuple[Contender, System]]]:
        """Open the system of every contender."""
        with ExitStack() as stack:
            sharing: dict[tuple[int | None, bool], list[Contender]] = {}
            for each in self.contenders:
                sharing.setdefault(self._cache(each), []).append(each)
            backends = {
                cache: stack.enter_context(
                    closing(
                        self._open(
                            sum(each.batch for each in group),
                            sum(each.batch * _branches(each) for each in group) if cache[1] else 0,
                            cache[0],
                        )
                    )
                )
                for cache, group in sharing.items()
            }
            smalls = {
                name: stack.enter_context(
                    closing(open_backend(name, fitting(name, self.models.engine), slots=self._slots(name)))
                )
                for name in self._smalls()
                if self._slots(name)  # peers open theirs
            }
            systems: list[tuple[Contender, System]] = []
            for each in self.contenders:
                backend, small = backends[self._cache(each)], smalls.get(each.small)
                system: System
                if each.method in PEERS:
                    system = self._peer(each, backend)
                elif self.tasks:
                    system = TaskSystem(backend, each, self.tasks, small)
                else:
                    system = MethodSystem(backend, each, self.style, small, beside=partial(self._beside, each.batch))
                stack.callback(system.close)
                systems.append((each, system))
            yield systems

    def _cache(self, contender: Contender) -> tuple[int | None, bool]:
        """Return what contenders with a common cache have in common: threads, and whether it is for trees.

        A cache for trees is slower.
        """
        return contender.threads, bool(_branches(contender)) and not on_transformers(self.models.model)

    def _beside(self, batch: int, update: Update) -> list[Update]:
        """Return the updates of the next segments that are translated together with one."""
        segments = self.stream.segments
        own = next(number for number, each in enumerate(segments) if each.utterance == update.utterance)
        place = segments[own].updates.index(update)
        others = [segments[number % len(segments)].updates for number in range(own + 1, own + batch)]
        return [each[-1] if update.final else each[min(place, len(each) - 1)] for each in others]

    def _peer(self, contender: Contender, backend: Backend) -> System:
        task = Task(backend, contender.language, contender.max_tokens, self.style)
        small = _path(self.models.smalls[0]) if self.models.smalls else None
        models = Models(_path(self.models.model), small, self.models.engine)
        return open_peer(contender.method, task, models, dict(contender.options))


def _branches(contender: Contender) -> int:
    """Return the number of further branches that a contender needs for trees."""
    if contender.method in PEERS:
        return 0
    return BRANCHES_OF_A_TREE if Capability.TREES in get_method(contender.method).needs else 0


def _path(name: str) -> Path:
    """Return the path of a model's file or folder, or the name of a model on the hub."""
    return Path(name.removeprefix(HF_PREFIX)) if on_transformers(name) else resolve(name)
