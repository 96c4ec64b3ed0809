"""The hardware of engines: named hardware, given costs, or this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from redraft.backends.costs import known_curve
from redraft.backends.llama_model import usable_cores
from redraft.backends.llamacpp import SMALL_MODEL, LlamaCpp, LlamaOptions
from redraft.backends.load import open_model
from redraft.backends.machine import processor
from redraft.errors import OptionError
from redraft.measure.plan.costs import LinearCost, PassCost, from_curve
from redraft.measure.plan.formula import ClosedQueue, EngineModel, most_carried
from redraft.measure.plan.hardware import Hardware
from redraft.measure.plan.model import ModelSize
from redraft.measure.plan.rehearse import fitted, rehearse
from redraft.measure.plan.stage import TalkLoad, need_simpy
from redraft.measure.plan.trace import RecordedWork
from redraft.serve.scheduler import MOST_LANES, USUAL_LANES, budget


@dataclass(frozen=True, slots=True)
class Supply:
    """Hardware for engines.

    Attributes:
        unit: what runs one engine, such as ``h200`` or ``core``.
        cost: cost of a pass on it.
        in_process: whether engine and scheduler share a process (`redraft.measure.plan.formula.EngineModel`).
        memory: memory of a unit in bytes; 0 if it is not a limit.
        per_machine: units per machine; they share the weights.
        batch_lanes: maximum lanes per pass.
    """

    unit: str
    cost: PassCost
    in_process: bool
    memory: float
    per_machine: int
    batch_lanes: int


def of_hardware(hardware: Hardware, cost: PassCost) -> Supply:
    """Return named hardware: a model server on each GPU, or one engine on each processor."""
    lanes = MOST_LANES if hardware.gpu else USUAL_LANES
    return Supply(hardware.name, cost, not hardware.gpu, hardware.memory, 1, lanes)


def of_machine(cores: int, small: bool, cost: PassCost) -> Supply:
    """Return a machine without GPUs: one engine per core for a small model, otherwise one engine.

    Args:
        cores: number of cores.
        small: whether a server runs an engine per core (`redraft.backends.load.usual_contexts`).
        cost: cost of a pass.
    """
    return Supply("core" if small else "machine", cost, True, 0.0, cores if small else 1, USUAL_LANES)


def is_small(model: ModelSize) -> bool:
    """Whether a server runs a model with one single-threaded engine per core."""
    return usable_cores() == 1 or model.weight_bytes <= SMALL_MODEL


@contextmanager
def opened(model: ModelSize, slots: int) -> Iterator[LlamaCpp]:
    """Open a model as an engine of a server does."""
    options = LlamaOptions(context_length=512, slots=slots, threads=1 if is_small(model) else 0, gpu_layers=0)
    with closing(open_model(model.name, options)) as backend:
        yield backend


def stored(model: ModelSize) -> LinearCost:
    """Return the costs from a model's cost curve on this machine; it is measured and stored on first use.

    Raises:
        ModelError: the model does not exist, or its file is invalid.
    """
    with opened(model, 1) as backend:
        curve = known_curve(backend)
    source = f"cost curve of one language, measured here on {processor().label}; several are assumed to share nothing"
    return from_curve(curve, f"{source}; change with --measure" if is_small(model) else source)


#: Simulated seconds of each scene in a measurement, and of its warm-up.
SECONDS, WARM_UP = 25.0, 5.0
#: Loads to rehearse, relative to the capacity expected from the cost curve: a light one, and one beyond capacity.
LOADS = (0.3, 1.6)


def measured(
    model: ModelSize,
    methods: Sequence[str],
    trace: RecordedWork,
    rate: float,
    language: str,
    tell: Callable[[str], None],
) -> LinearCost:
    """Measure the costs of passes with the real scheduler, on one thread of this machine.

    Args:
        model: the model.
        methods: decoding methods.
        trace: the talk.
        rate: words per second of the talks.
        language: target language.
        tell: called with the current step.

    Raises:
        OptionError: the model is too large for one thread.
        ModelError: the model cannot be opened.
        MissingExtra: simpy is not installed.
    """
    if not is_small(model):
        raise OptionError(
            f"--measure needs a model that a server runs with one engine per core, and {model.name!r} is too large; "
            "leave it out to use the cost curve"
        )
    need_simpy()
    guess, script, found = stored(model), trace.script(rate), {}
    with opened(model, MOST_LANES - 1) as backend:
        room = budget(known_curve(backend))
        for method in methods:
            engine = EngineModel(guess, USUAL_LANES, trace.work(method).host)
            carried = most_carried(ClosedQueue(trace.work(method), script, engine).lag, 1.0, MOST_LANES)
            talks = [max(1, min(round(load * carried), MOST_LANES - 2)) for load in LOADS]
            tell(f"{method}: {' and '.join(map(str, talks))} talks, {SECONDS:g} s of the processor's time each at most")
            scenes = [
                TalkLoad(script, number, 1, SECONDS, WARM_UP, MOST_LANES - 2, USUAL_LANES, room) for number in talks
            ]
            found[method] = [rehearse(each, backend, method, language) for each in scenes]
    return fitted(found, f"measured here on one core of {processor().label}")
