"""What passes cost, learned or measured, and whether a model keeps up with live speech."""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redraft.decoding.backend import Backend, CostCurve
from redraft.decoding.types import ROOT, Draft, Provenance, Score

#: Number of the latest passes of a size that count, and the number of passes of all sizes after which one is forgotten.
LATEST, FORGOTTEN = 12, 500
#: Number of passes from which a size is believed to be as slow as it seems.
SURE = 3
#: Passes between two computations of the curve.
REFRESH = 8
#: Sizes up to this are told apart, and larger ones in groups that grow by the fourth root of 2.
APART = 8


class _Pass(NamedTuple):
    """Seconds of a pass over ``new`` tokens, and its number."""

    seconds: float
    new: int
    number: int


class LearnedCosts:
    """T(n) of a model, learned from its passes; thread-safe.

    Other load only adds to times, so of the latest passes of a size the fastest quarter counts (not the fastest one,
    which is the faster the more passes there are), and a pass costs no more than a longer one.  Where few passes have
    been seen, they can only lower what their neighbours suggest: a size that was disturbed once is tried again.
    """

    def __init__(self) -> None:
        self._groups: dict[int, deque[_Pass]] = {}
        self._count = self._computed = 0
        self._curve: CostCurve | None = None
        self._lock = threading.Lock()

    def took(self, new: int, seconds: float) -> None:
        """Learn from a pass over ``new`` tokens, of all its requests together."""
        group = new if new <= APART else APART + math.ceil(4 * math.log2(new / APART))
        with self._lock:
            self._count += 1
            self._groups.setdefault(group, deque(maxlen=LATEST)).append(_Pass(seconds, new, self._count))

    def curve(self) -> CostCurve | None:
        """Return T(n) as far as it is known; None before passes of two sizes."""
        with self._lock:
            if self._curve is None or self._count >= self._computed + REFRESH:
                self._curve, self._computed = self._fitted(), self._count
            return self._curve

    def _fitted(self) -> CostCurve | None:
        found: list[_Pass] = []
        sure: list[_Pass] = []
        for _, passes in sorted(self._groups.items()):
            known = [each for each in passes if each.number > self._count - FORGOTTEN]
            if known:
                found.append(sorted(known)[len(known) // 4])
                sure += found[-1:] if len(known) >= SURE else []
        if len(found) < 2:
            return None
        sure = [each for each in found if each in (found[0], *sure, found[-1])]
        believed = _curve_through(sure)
        return _curve_through([each for each in found if each in sure or each.seconds < believed(each.new)])


def _curve_through(passes: Sequence[_Pass]) -> CostCurve:
    """Return the curve through two passes or more, in order of size, none of which costs more than a longer one."""
    sizes, seconds = [each.new for each in passes], [each.seconds for each in passes]
    for place in reversed(range(len(seconds) - 1)):
        seconds[place] = min(seconds[place], seconds[place + 1])
    if sizes[0] > 1:  # where requests share all passes: the slope of the first two, but no less than in proportion
        slope = (seconds[1] - seconds[0]) / (sizes[1] - sizes[0])
        seconds.insert(0, max(seconds[0] - slope * (sizes[0] - 1), seconds[0] / sizes[0]))
        sizes.insert(0, 1)
    return CostCurve(tuple(sizes), tuple(seconds))


SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96)
#: Number of ids in the cache before the measured pass: about a prompt with half of its translation.
CONTEXT = 100
#: Number of rounds of a measurement, and seconds after which no further round starts, once there are two.
ROUNDS, PATIENCE = 5, 10.0
#: Seconds after which no further pass of a measurement starts, once there are two sizes.
MEASURED = 60.0


def sample(
    backend: Backend, slot: int, clock: Callable[[], float] | None = None, until: float = math.inf
) -> list[float]:
    """Time one pass of each size in `sizes_for`, with `CONTEXT` ids (or as many as fit) in the slot's cache.

    A pass includes the argmax of every row, which rows compute at once.  Times are wall times unless a ``clock`` is
    given: with one thread, `time.process_time` excludes other programs.  After ``until``, by `time.monotonic`, larger
    sizes than the first two are left out.
    """
    length, different = min(CONTEXT, backend.context_length // 2), min(200, backend.vocabulary_size - 1)
    prefix = tuple(1 + position % different for position in range(length))
    now, seconds = clock or time.perf_counter, list[float]()
    for size in (1, *sizes_for(backend)):
        if len(seconds) > 2 and time.monotonic() > until:
            break
        # The last prefix token is always run again, so a pass over n tokens has a draft of n - 1.
        draft = Draft.chain((prefix[0],) * (size - 1), Provenance.PREVIOUS)
        backend.score([(slot, Score(prefix, encoder=prefix))])  # models without an encoder do not read its input
        started = now()
        (rows,) = backend.score([(slot, Score(prefix, draft, encoder=prefix))])
        rows.argmax(ROOT)
        seconds.append(now() - started)
    return seconds[1:]  # the first pass takes longer if one over many tokens came before


def sizes_for(backend: Backend) -> tuple[int, ...]:
    """Return those of `SIZES` that fit into the other half of a backend's context."""
    return tuple(size for size in SIZES if size <= max(2, backend.context_length // 2 - 1))


def curve_of(samples: Sequence[Sequence[float]], pick: Callable[[Iterable[float]], float] = min) -> CostCurve:
    """Return the curve of several samples, by default of their minimums: other load only adds to times."""
    return CostCurve(SIZES[: len(samples[0])], tuple(map(pick, zip(*samples, strict=True))))


@dataclass(frozen=True, slots=True)
class Measured:
    """T(n) of a backend.

    Attributes:
        curve: the fastest times; without the larger sizes, if the measurement took too long.
        spread: for each size, the distance of the median from the fastest, relative to the fastest.
    """

    curve: CostCurve
    spread: tuple[float, ...]


def measure(backend: Backend, show: Callable[[Iterable[int]], Iterable[int]] = iter) -> Measured:
    """Measure T(n) in `ROUNDS` rounds after a warm-up; fewer on a slow model, for about `MEASURED` seconds at most.

    Args:
        show: wraps the round numbers, for a progress bar.
    """
    slot, started = backend.open_slot(), time.monotonic()
    until = started + MEASURED
    try:
        warm_up = sample(backend, slot, until=until)
        rounds = list[list[float]]()
        for done in show(range(1, ROUNDS + 1)):
            if time.monotonic() > (until if done < 3 else started + PATIENCE):
                break
            rounds.append(sample(backend, slot, until=until))
    finally:
        backend.close_slot(slot)
    rounds = [each for each in rounds if len(each) == len(warm_up)] or [warm_up]
    curve, usual = curve_of(rounds), curve_of(rounds, statistics.median)
    spread = tuple(each / low - 1 if low > 0 else 0.0 for each, low in zip(usual.seconds, curve.seconds, strict=True))
    return Measured(curve, spread)


#: Updates a second of live speech: 2.5 words a second, and an update every two words.
UPDATES_A_SECOND = 1.25
#: An update without drafts: new ids of the prompt, and tokens of the translation.
PROMPT, TOKENS = 8, 16
#: Passes over one token that follow the one that verifies the previous translation, as real models need them.
FURTHER = 4
#: Maximum number of languages that is reported.
_MOST = 64


def update_seconds(curve: CostCurve, languages: int = 1, *, drafts: bool = True) -> float:
    """Return how many seconds an update takes.

    Args:
        curve: cost of a pass.
        languages: number of languages into which it is translated at the same time, in shared passes.
        drafts: whether the method drafts the previous translation.
    """
    if drafts:
        return curve((PROMPT + TOKENS) * languages) + FURTHER * curve(languages)
    return curve(PROMPT * languages) + (TOKENS - 1) * curve(languages)


def busy_share(curve: CostCurve, languages: int = 1, *, drafts: bool = True) -> float:
    """Return the share of its time that live speech in several languages keeps a model busy; above 1 is too much."""
    return UPDATES_A_SECOND * update_seconds(curve, languages, drafts=drafts)


def languages_in_time(curve: CostCurve, *, drafts: bool = True) -> int:
    """Return into how many languages a model translates every update of live speech in time, at most 64."""
    return next((n for n in range(_MOST) if busy_share(curve, n + 1, drafts=drafts) > 1), _MOST)


def pace(curve: CostCurve, languages: int | None = None, *, drafts: bool = True) -> str:
    """Return one sentence on what a model can do here, without a full stop.

    Args:
        curve: cost of a pass.
        languages: number of languages that are wanted; None says where the limit is.
        drafts: whether the method drafts the previous translation.
    """
    most = languages_in_time(curve, drafts=drafts)
    rate = 1 / update_seconds(curve, drafts=drafts)
    said = f"this model translates about {rate:.{0 if rate >= 10 else 1}f} updates a second here"
    remedy = "a smaller model, a GPU or more cores"
    if most == 0:
        return f"{said}, too few for live speech, so captions come late: try {remedy}"
    able = min(languages or most, most)
    enough = f"{said}, enough for live speech in {able} language{'s' * (able > 1)}"
    if most == _MOST or (languages and languages <= most):
        return enough
    if languages is None:
        return f"{enough}; for more, use {remedy}"
    return f"{enough}, but not in {languages}: try fewer languages, {remedy}"
