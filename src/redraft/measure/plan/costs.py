"""The cost of a pass: measured on a machine, given, or estimated from a data sheet."""

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
        """Where it comes from, for the list of assumptions."""

    def __call__(self, requests: float, tokens: float, cached: float) -> float:
        """Return the seconds of a pass.

        Args:
            requests: number of lanes that it answers, at least 1.
            tokens: total number of new tokens.
            cached: total number of tokens in their caches.
        """


@dataclass(frozen=True, slots=True)
class LinearCost:
    """A constant plus terms for each request and each new token.

    Attributes:
        base: seconds per pass, at least 0.
        request: seconds per request, at least 0.
        token: seconds per new token, at least 0.
        host: method -> seconds of Python per request around the pass: scheduler, drafter, acceptance rule, captions.
        source: source of the numbers.
    """

    base: float
    request: float
    token: float
    host: dict[str, float] = field(default_factory=dict)
    source: str = "given"

    def __call__(self, requests: float, tokens: float, cached: float) -> float:
        """Return the seconds of a pass; the cost of cached tokens is part of the other numbers."""
        return self.base + self.request * requests + self.token * tokens


def from_curve(curve: CostCurve, source: str) -> LinearCost:
    """Fit costs to the curve T(n) of passes with one request: the best straight line through T(1).

    The curve says nothing about several requests, so each is assumed to cost as much as alone.
    """
    first = curve.seconds[0]
    steps = [(size - 1, seconds - first) for size, seconds in zip(curve.sizes, curve.seconds, strict=True)]
    slope = max(0.0, sum(n * seconds for n, seconds in steps) / sum(n * n for n, _ in steps))
    return LinearCost(0.0, max(0.0, first - slope), min(slope, first), source=source)


def read_costs(path: Path) -> LinearCost:
    """Read costs from a JSON file: seconds as ``base``, ``request``, ``token``, and optionally ``host`` by method.

    Raises:
        InputError: the file is missing, is not such an object, or a number is negative.
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
    """A roofline estimate: memory and arithmetic reach a share of the data sheet's values, and the slower one counts.

    Attributes:
        hardware: the hardware.
        model: the model.
        memory_share: share of the bandwidth that is reached, 0-1.
        compute_share: share of the FLOPS that is reached, 0-1.
        overhead: additional seconds per pass: kernel launches and the engine's own work.
    """

    hardware: Hardware
    model: ModelSize
    memory_share: float = 0.6
    compute_share: float = 0.4
    overhead: float = 0.002

    @property
    def source(self) -> str:
        """Description of the estimate."""
        return f"estimated from the data sheet ({self.hardware.sheet}), not measured"

    def __call__(self, requests: float, tokens: float, cached: float) -> float:
        """Return the seconds of a pass: weights and caches are read once, with two operations per weight and token."""
        read = self.model.weight_bytes + self.model.cell_bytes * (cached + tokens)
        memory = read / (self.hardware.bandwidth * self.memory_share)
        arithmetic = 2 * self.model.parameters * tokens / (self.hardware.flops * self.compute_share)
        return max(memory, arithmetic) + self.overhead
