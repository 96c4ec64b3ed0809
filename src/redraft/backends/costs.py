"""Cost curves of the models that have run on this machine, stored in the user's cache."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import Protocol, runtime_checkable

from redraft.backends.machine import cached, keep_cached, library_hash, processor
from redraft.backends.stopwatch import Measured, best_of, measure, thread_counts
from redraft.decoding.backend import Backend
from redraft.decoding.cost import CostCurve

#: Name of the file with the curves in the cache.
FILE = "costs.json"
LOGGER = logging.getLogger("redraft.costs")


@runtime_checkable
class Local(Protocol):
    """A backend on this machine that identifies its model and settings, and pads passes that cost more than longer."""

    @property
    def identity(self) -> str:
        """The model and all options that affect its speed, except the number of threads."""

    def pad_by(self, curve: CostCurve) -> None:
        """Pad passes from now on."""


@runtime_checkable
class Priced(Protocol):
    """A backend that measures its passes itself, because they run on another machine."""

    def curve(self) -> CostCurve:
        """Return the current cost of passes, measured on first use."""


def known_curve(backend: Backend) -> CostCurve:
    """Return a model's cost curve on this machine; it is measured and stored on first use, and passes are padded by it.

    An unreliable curve is used with a warning, but not for padding, and measured again next time.  The curve of a
    server is measured once after connecting.
    """
    if isinstance(backend, Priced):
        return backend.curve()
    found = [_known(backend, threads) for threads in thread_counts(backend)]
    curve = best_of(found)
    if isinstance(backend, Local) and not any(each.problem for each in found):
        backend.pad_by(curve)
    return curve


def pad_by_stored(backend: Backend) -> None:
    """Pad a backend's passes if its curve has been measured before, on any number of threads."""
    if isinstance(backend, Local):
        found = [each for name, each in _kept().items() if name.startswith(f"{backend.identity}, ")]
        if found:
            backend.pad_by(best_of(found))


def _known(backend: Backend, threads: int) -> Measured:
    found = _kept().get(_key(backend, threads)) if isinstance(backend, Local) else None
    if found is None:
        found = keep(backend, measure(backend, threads))
        if found.problem:
            LOGGER.warning("the cost of a pass could not be measured well: %s; it is not kept", found.problem)
    return found


def keep(backend: Backend, measured: Measured) -> Measured:
    """Store a measurement in place of an older one for the same model, if it is reliable."""
    if isinstance(backend, Local) and not measured.problem:
        curve = {"sizes": measured.curve.sizes, "seconds": measured.curve.seconds}
        fields = {**_here(), "curve": curve, "spread": measured.spread, "threads": measured.threads}
        keep_cached(FILE, _key(backend, measured.threads), fields)
    return measured


def _key(backend: Local, threads: int) -> str:
    return f"{backend.identity}, {threads or 'own'} threads of {os.cpu_count()}"


def _here() -> dict[str, str]:
    """Return what a curve depends on: the processor and the build of llama.cpp."""
    return {"processor": processor().label, "library": library_hash()}


def _kept() -> dict[str, Measured]:
    """Return the curves measured here."""
    here, found = _here(), {}
    for name, fields in cached(FILE).items():
        # Unreadable entries are measured again.
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            if {fact: fields[fact] for fact in here} == here:
                curve = CostCurve(tuple(fields["curve"]["sizes"]), tuple(fields["curve"]["seconds"]))
                found[name] = Measured(curve, tuple(fields["spread"]), int(fields["threads"]))
    return found
