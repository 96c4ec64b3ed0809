"""The cost curves of the models that have run on this machine, kept in the user's cache."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from redraft.backends.machine import cache_folder, library_hash, processor
from redraft.backends.stopwatch import Measured, best_of, measure, thread_counts
from redraft.decoding.backend import Backend
from redraft.decoding.cost import CostCurve

LOGGER = logging.getLogger("redraft.costs")


@runtime_checkable
class Identified(Protocol):
    """A backend that can say which model it runs, and how."""

    @property
    def identity(self) -> str:
        """The model and every option that its speed depends on, but the number of threads."""


@runtime_checkable
class Priced(Protocol):
    """A backend that measures its passes itself, because they do not run on this machine."""

    def curve(self) -> CostCurve:
        """What passes cost now; takes a slot meanwhile."""


def known_curve(backend: Backend) -> CostCurve:
    """The curve of a model with its options on this machine; measured, and kept, the first time.

    One that cannot be trusted is used, with a warning, and measured again the next time.  One of a server is measured
    every time.
    """
    if isinstance(backend, Priced):
        return backend.curve()
    return best_of([_known(backend, threads) for threads in thread_counts(backend)])


def _known(backend: Backend, threads: int) -> Measured:
    found = _kept().get(_key(backend, threads)) if isinstance(backend, Identified) else None
    if found is None:
        found = keep(backend, measure(backend, threads))
        if found.problem:
            LOGGER.warning("the cost of a pass could not be measured well: %s; it is not kept", found.problem)
    return found


def keep(backend: Backend, measured: Measured) -> Measured:
    """Keep what was measured for the next time, in place of what is kept for this model, if it can be trusted."""
    if isinstance(backend, Identified) and not measured.problem:
        curve = {"sizes": measured.curve.sizes, "seconds": measured.curve.seconds}
        fields = {**_here(), "curve": curve, "spread": measured.spread, "threads": measured.threads}
        _write({**_read(), _key(backend, measured.threads): fields})
    return measured


def _key(backend: Identified, threads: int) -> str:
    return f"{backend.identity}, {threads or 'own'} threads of {os.cpu_count()}"


def _here() -> dict[str, str]:
    """What a curve holds for: with another processor or another build of llama.cpp it is of no use."""
    return {"processor": processor().label, "library": library_hash()}


def cache_file() -> Path:
    """Where the curves are kept."""
    return cache_folder() / "costs.json"


def _kept() -> dict[str, Measured]:
    """What was measured here."""
    here, found = _here(), {}
    for name, fields in _read().items():
        # What cannot be read is measured again.
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            if {fact: fields[fact] for fact in here} == here:
                curve = CostCurve(tuple(fields["curve"]["sizes"]), tuple(fields["curve"]["seconds"]))
                found[name] = Measured(curve, tuple(fields["spread"]), int(fields["threads"]))
    return found


def _read() -> dict[str, dict[str, Any]]:
    try:
        kept = json.loads(cache_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _write(known: Mapping[str, Mapping[str, Any]]) -> None:
    path = cache_file()
    # Where it cannot be kept, it is measured again next time.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another process may read it meanwhile.
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        part.replace(path)
