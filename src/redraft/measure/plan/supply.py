"""What engines run on: hardware by name, given costs, or this machine."""

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
from redraft.measure.plan.formula import Crowd, Engine, most_carried
from redraft.measure.plan.hardware import Hardware
from redraft.measure.plan.model import ModelSize
from redraft.measure.plan.rehearse import fitted, rehearse
from redraft.measure.plan.stage import Scene, need_simpy
from redraft.measure.plan.trace import Trace
from redraft.serve.batch import MOST_LANES, USUAL_LANES, budget


@dataclass(frozen=True, slots=True)
class Supply:
    """What serves.

    Attributes:
        unit: what runs one engine, in words, such as ``h200`` or ``core``.
        cost: of a pass on it.
        in_process: whether engine and scheduler share a process (`redraft.measure.plan.formula.Engine`).
        memory: of a unit in bytes; 0 if it does not limit.
        per_machine: units in a machine; they share the weights.
        batch_lanes: lanes in a pass.
    """

    unit: str
    cost: PassCost
    in_process: bool
    memory: float
    per_machine: int
    batch_lanes: int


def of_hardware(hardware: Hardware, cost: PassCost) -> Supply:
    """Hardware by name: a model server on each GPU, or one engine on each processor."""
    lanes = MOST_LANES if hardware.gpu else USUAL_LANES
    return Supply(hardware.name, cost, not hardware.gpu, hardware.memory, 1, lanes)


def of_machine(cores: int, small: bool, cost: PassCost) -> Supply:
    """A machine with processors only: one engine per core for a small model, else one engine.

    Args:
        cores: of the machine.
        small: whether a server runs an engine per core (`redraft.backends.load.usual_contexts`).
    """
    return Supply("core" if small else "machine", cost, True, 0.0, cores if small else 1, USUAL_LANES)


def is_small(model: ModelSize) -> bool:
    """Whether a server runs a model with one engine per core, which waits for no other thread."""
    return usable_cores() == 1 or model.weight_bytes <= SMALL_MODEL


@contextmanager
def opened(model: ModelSize, slots: int) -> Iterator[LlamaCpp]:
    """A model as an engine of a server runs it."""
    options = LlamaOptions(context_length=512, slots=slots, threads=1 if is_small(model) else 0, gpu_layers=0)
    with closing(open_model(model.name, options)) as backend:
        yield backend


def stored(model: ModelSize) -> LinearCost:
    """The costs that follow from the cost curve of a model on this machine; measured, and kept, the first time.

    Raises:
        ModelError: there is no such model, or its file is unfit.
    """
    with opened(model, 1) as backend:
        curve = known_curve(backend)
    source = f"cost curve of one language, measured here on {processor().label}; several are assumed to share nothing"
    return from_curve(curve, f"{source}; change with --measure" if is_small(model) else source)


#: Of a measurement: simulated seconds of each scene, and until it counts.
SECONDS, WARM_UP = 25.0, 5.0
#: Loads that are rehearsed, as parts of what the cost curve lets expect: one light, one beyond what can be carried.
LOADS = (0.3, 1.6)


def measured(
    model: ModelSize, methods: Sequence[str], trace: Trace, rate: float, language: str, tell: Callable[[str], None]
) -> LinearCost:
    """The costs of passes as the real scheduler makes them, on one thread of this machine.

    Args:
        methods: decoding methods.
        rate: words per second of the talks.
        language: to translate into.
        tell: told what is being done.

    Raises:
        OptionError: the model is too large to be run on one thread.
        ModelError: it is unfit.
        MissingExtra: simpy is not installed.
    """
    if not is_small(model):
        raise OptionError(
            f"--measure needs a model that a server runs with one engine per core, and {model.name!r} is too large; "
            "leave it out, and the cost curve is taken"
        )
    need_simpy()
    guess, script, found = stored(model), trace.script(rate), {}
    with opened(model, MOST_LANES - 1) as backend:
        room = budget(known_curve(backend))
        for method in methods:
            engine = Engine(guess, USUAL_LANES, trace.work(method).host)
            carried = most_carried(Crowd(trace.work(method), script, engine).lag, 1.0, MOST_LANES)
            talks = [max(1, min(round(load * carried), MOST_LANES - 2)) for load in LOADS]
            tell(f"{method}: {' and '.join(map(str, talks))} talks, {SECONDS:g} s of the processor's time each at most")
            scenes = [Scene(script, number, 1, SECONDS, WARM_UP, MOST_LANES - 2, USUAL_LANES, room) for number in talks]
            found[method] = [rehearse(each, backend, method, language) for each in scenes]
    return fitted(found, f"measured here on one core of {processor().label}")
