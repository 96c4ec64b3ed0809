"""What a pass costs: measured on a machine, given, or estimated from a data sheet; one formula takes them all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from redraft.decoding.cost import CostCurve
from redraft.errors import InputError
from redraft.measure.plan.hardware import Hardware
from redraft.measure.plan.model import ModelSize


class PassCost(Protocol):
    """The cost of a pass."""

    @property
    def source(self) -> str:
        """Where it is from, for the list of assumptions."""

    def __call__(self, requests: float, tokens: float, cached: float) -> float:
        """Seconds of a pass.

        Args:
            requests: how many lanes it answers, 1 or more.
            tokens: new ones of all of them.
            cached: tokens that their caches hold, all together.
        """


@dataclass(frozen=True, slots=True)
class LinearCost:
    """So many seconds for the pass itself, for each request and for each new token.

    Attributes:
        base, request, token: seconds, 0 or more.
        host: by method, seconds that Python takes around the pass for each request: scheduler, drafter, acceptance
            rule, captions.
        source: where the numbers are from.
    """

    base: float
    request: float
    token: float
    host: dict[str, float] = field(default_factory=dict)
    source: str = "given"

    def __call__(self, requests: float, tokens: float, cached: float) -> float:
        """Seconds of a pass; what the caches hold is part of the other numbers."""
        return self.base + self.request * requests + self.token * tokens


def from_curve(curve: CostCurve, source: str) -> LinearCost:
    """Costs by the curve T(n) of passes with one request: the straight line through T(1) that fits best.

    Nothing is known of several requests then, so they share nothing: each costs what it costs alone.
    """
    first = curve.seconds[0]
    steps = [(size - 1, seconds - first) for size, seconds in zip(curve.sizes, curve.seconds, strict=True)]
    slope = max(0.0, sum(n * seconds for n, seconds in steps) / sum(n * n for n, _ in steps))
    return LinearCost(0.0, max(0.0, first - slope), min(slope, first), source=source)


def read_costs(path: Path) -> LinearCost:
    """Costs from a JSON file: seconds as ``base``, ``request``, ``token``, and optionally ``host`` by method.

    Raises:
        InputError: the file is missing, is no such object, or a number is not one of 0 or more.
    """
    try:
        fields: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"costs {str(path)!r} cannot be read: {error}") from None
    known = ("base", "request", "token", "host", "source")
    if not isinstance(fields, dict) or not {"base", "request", "token"} <= fields.keys() <= set(known):
        raise InputError(
            f"costs {str(path)!r} must be one object with base, request, token and optionally host, source"
        )
    host = fields.get("host", {})
    numbers = [fields[name] for name in known[:3]] + list(host.values() if isinstance(host, dict) else [None])
    if not all(isinstance(number, int | float) and 0 <= number < 1e6 for number in numbers):
        raise InputError(f"costs {str(path)!r}: base, request, token and host must be seconds, 0 or more")
    source = f"given in {path.name}" + (f": {fields['source']}" if fields.get("source") else "")
    base, request, token = map(float, numbers[:3])
    return LinearCost(base, request, token, {name: float(value) for name, value in host.items()}, source)


def write_costs(path: Path, cost: LinearCost) -> None:
    """Write costs for `read_costs`."""
    path.write_text(json.dumps(asdict(cost), indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Roofline:
    """An estimate: memory and arithmetic each reach a share of what the data sheet says, and the slower one counts.

    Attributes:
        hardware, model: of which it is.
        memory_share, compute_share: reached share of bandwidth and FLOPS, 0-1.
        overhead: seconds that every pass takes besides: launching kernels, and the engine's own work.
    """

    hardware: Hardware
    model: ModelSize
    memory_share: float = 0.6
    compute_share: float = 0.4
    overhead: float = 0.002

    @property
    def source(self) -> str:
        """What it is."""
        return f"estimated from the data sheet ({self.hardware.sheet}), not measured"

    def __call__(self, requests: float, tokens: float, cached: float) -> float:
        """Seconds of a pass: all weights and caches are read once, and each token takes two operations a weight."""
        read = self.model.weight_bytes + self.model.cell_bytes * (cached + tokens)
        memory = read / (self.hardware.bandwidth * self.memory_share)
        arithmetic = 2 * self.model.parameters * tokens / (self.hardware.flops * self.compute_share)
        return max(memory, arithmetic) + self.overhead
