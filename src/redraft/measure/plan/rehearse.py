"""Rehearse a load on a real model: the real scheduler translates, in the CPU time of its thread.

While the engine's thread works, simulated time advances with the thread's CPU time; waiting takes no real time.  So
other programs on the machine do not matter, and one core is enough.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from redraft.backends.costs import known_curve
from redraft.captions.languages import parse_language
from redraft.captions.session import Translation
from redraft.captions.settings import Settings
from redraft.captions.style import Style
from redraft.decoding.backend import Backend
from redraft.decoding.methods import get_method
from redraft.decoding.types import TARGET
from redraft.measure.plan.costs import LinearCost
from redraft.measure.plan.stage import LoadResult, TalkLoad, play
from redraft.serve.scheduler import PassReport
from redraft.translator import prompt_encoder, vocabulary_of


class ThreadTime:
    """CPU time of this thread."""

    def __init__(self) -> None:
        self._started = time.thread_time()

    def start(self) -> None:
        """Start a round."""
        self._started = time.thread_time()

    def seconds(self) -> float:
        """Return the seconds since it started."""
        return time.thread_time() - self._started


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Results of a scene on a model: figures, and the duration of each pass."""

    played: LoadResult
    passes: Sequence[PassReport]

    @property
    def host(self) -> float:
        """Seconds outside the model per request."""
        return max(0.0, self.played.busy - sum(each.seconds for each in self.passes)) / max(1, self.played.requests)


def rehearse(scene: TalkLoad, backend: Backend, method: str, language: str) -> Rehearsal:
    """Play a scene on a model with one thread and enough slots.

    Raises:
        MissingExtra: simpy is not installed.
        OptionError: the method or the language is unknown.
        ModelError: the model cannot translate into the language.
    """
    encode = prompt_encoder(backend, Style(), parse_language(language, "target"))
    vocabulary, chosen = vocabulary_of({TARGET: backend}), get_method(method)
    chosen.require(backend.capabilities)
    options = chosen.check({})
    settings = Settings(chosen, options, curve=known_curve(backend) if chosen.by_cost(options) else None)
    passes: list[PassReport] = []
    played = play(
        scene, backend, lambda *_: Translation(language, encode, vocabulary, settings), ThreadTime(), passes.append
    )
    return Rehearsal(played, passes)


def fitted(rehearsals: Mapping[str, Sequence[Rehearsal]], source: str) -> LinearCost:
    """Fit the costs to the passes of some rehearsals by least squares; those of Python by method.

    Args:
        rehearsals: by method, at least one with passes of several sizes.
        source: where they were measured.
    """
    passes = [each for found in rehearsals.values() for rehearsal in found for each in rehearsal.passes]
    costs = positive_fit([(each.requests, each.tokens) for each in passes], [each.seconds for each in passes])
    host = {method: _host(found) for method, found in rehearsals.items()}
    return LinearCost(*costs, host, source)


def _host(found: Sequence[Rehearsal]) -> float:
    requests = sum(each.played.requests for each in found)
    return sum(each.host * each.played.requests for each in found) / max(1, requests)


def positive_fit(sizes: Sequence[tuple[int, int]], seconds: Sequence[float]) -> tuple[float, float, float]:
    """Return non-negative seconds per pass, per request and per new token, by least squares.

    Args:
        sizes: requests and new tokens of each pass.
        seconds: duration of each pass.
    """
    columns, kept = np.array([(1, *size) for size in sizes], float), [0, 1, 2]
    costs = np.zeros(3)
    while kept:
        costs[:] = 0
        costs[kept] = np.linalg.lstsq(columns[:, kept], np.array(seconds), rcond=None)[0]
        if (costs >= 0).all():
            break
        kept.remove(int(np.argmin(costs)))
    return float(costs[0]), float(costs[1]), float(costs[2])
