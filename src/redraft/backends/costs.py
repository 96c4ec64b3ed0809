"""The cost curves of the models that have run on this machine, kept in the user's cache."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol, runtime_checkable

from redraft import cost
from redraft.cost import CostCurve
from redraft.types import Backend

#: Rounds of a measurement that somebody waits for.
ROUNDS = 5


@runtime_checkable
class Identified(Protocol):
    """A backend that can say which model it runs, and how."""

    @property
    def identity(self) -> str:
        """The model and every option that its speed depends on."""


def known_curve(backend: Backend) -> CostCurve:
    """The curve of a model with its options on this machine; measured, and kept, the first time."""
    if not isinstance(backend, Identified):
        return _measured(backend)
    found = _read().get(_key(backend))
    return found or keep(backend, _measured(backend))


def keep(backend: Backend, curve: CostCurve) -> CostCurve:
    """Keep a curve for the next time, in place of what is kept for this model."""
    if isinstance(backend, Identified):
        _write({**_read(), _key(backend): curve})
    return curve


def _key(backend: Identified) -> str:
    return f"{backend.identity} {platform.node()} {platform.machine()} {os.cpu_count()}"


def _measured(backend: Backend) -> CostCurve:
    slot = backend.open_slot()
    samples = [cost.sample(backend, slot) for _round in range(ROUNDS)]
    backend.close_slot(slot)
    return cost.least(samples)


def cache_file() -> Path:
    """Where the curves are kept."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "redraft" / "costs.json"


def _read() -> dict[str, CostCurve]:
    """What is kept; nothing if it cannot be read, since it can be measured again."""
    try:
        kept = json.loads(cache_file().read_text(encoding="utf-8"))
        return {name: CostCurve(tuple(each["sizes"]), tuple(each["seconds"])) for name, each in kept.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write(known: Mapping[str, CostCurve]) -> None:
    kept = {name: {"sizes": each.sizes, "seconds": each.seconds} for name, each in known.items()}
    path = cache_file()
    # Where it cannot be kept, it is measured again next time.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
