"""The formula for the lag of one engine with a number of lanes.

An engine and its sessions are a closed queueing network.  A session waits for its next update, then its ``k`` languages
take part in passes until the update is translated, then it waits again.  All running sessions share the passes, so with
``n`` of them a pass takes ``T(kn)`` and an update of ``p`` passes ``p T(kn)``.  If sessions wait ``Z`` seconds on
average, the probability that ``n`` of ``N`` are running is

    P(n) = P(0) * product over i = 1..n of (N - i + 1) / Z * p T(ki) / i

for any distribution of waits and work (machine repair with a shared server; product form).  If more lanes run than fit
into a pass, ``T`` grows proportionally, since they take turns.  The average ``n`` gives the time of a pass as seen by a
session.

``Z``, ``p`` and the lag in turn follow from that time, by playing the recorded talk alone with passes of this duration
(`redraft.measure.plan.alone`): the longer they take, the more updates are skipped for newer ones.  The result is the
fixed point at which both agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from redraft.measure.loadtest.script import Script
from redraft.measure.plan.alone import alone
from redraft.measure.plan.costs import PassCost
from redraft.measure.plan.trace import Work

#: Share of the updates that must be answered in time.
IN_TIME = 0.95
#: Number of bisections for the time of a pass, which is found to a thousandth of its range.
_STEPS = 12
#: The talk is played with passes of this number to integer powers, in seconds; other durations are interpolated.
RATIO = 1.15
_LEAST_WAIT = 1e-6
#: Events less likely than this are ignored for the lag.
_RARE = 1e-4


@dataclass(frozen=True, slots=True)
class EngineModel:
    """One engine: a GPU, or a context of llama.cpp on some cores.

    Attributes:
        cost: cost of its passes.
        most: maximum lanes per pass, at least 1.
        host: seconds of Python per request of a pass.
        in_process: whether the engine waits for Python between its passes, as llama.cpp does.  A model server does not:
            its clients compute meanwhile, and each is delayed only by its own time.
    """

    cost: PassCost
    most: int
    host: float = 0.0
    in_process: bool = True

    def round_seconds(self, lanes: float, tokens: float, cached: float) -> float:
        """Return the seconds from one pass to the next with ``lanes`` lanes, each with these new and cached tokens."""
        host = self.host * (lanes if self.in_process else 1)
        return self.cost(lanes, lanes * tokens, lanes * cached) + host


@dataclass(frozen=True, slots=True)
class Estimate:
    """One engine with a number of sessions.

    Attributes:
        sessions: number of sessions.
        busy: share of time that the engine works, 0-1.
        running: average number of sessions with an update in progress.
        pass_seconds: average seconds between passes as seen by such an update.
        lag: seconds within which 95 % of the updates are answered.
    """

    sessions: int
    busy: float
    running: float
    pass_seconds: float
    lag: float


class ClosedQueue:
    """A closed queueing network: one engine and its identical sessions.

    Args:
        work: recorded work in one language.
        script: the talk with its pace.
        engine: the engine.
        targets: number of target languages per session.
    """

    def __init__(self, work: Work, script: Script, engine: EngineModel, targets: int = 1) -> None:
        self._targets, self._most = targets, engine.most
        self._alone = cache(lambda power: alone(work, script, RATIO**power))
        sizes = range(1, engine.most + 1)
        self._rounds = np.array([engine.round_seconds(n, work.tokens, work.cached) for n in sizes])

    def estimate(self, sessions: int) -> Estimate:
        """Return the formula's estimate for ``sessions`` sessions."""
        lanes = self._targets * np.arange(1, sessions + 1)
        together = np.minimum(lanes, self._most)
        # Seconds between passes as seen by a session, by the number of sessions that run or wait for a place.
        seconds = self._rounds[together - 1] * lanes / together
        low, high = float(seconds[0]), float(seconds[-1])
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._seen(seconds, middle) > middle else (low, middle)
        chances = self._chances(seconds, high)
        running = float(chances @ np.arange(sessions + 1))
        return Estimate(sessions, float(1 - chances[0]), running, high, self._lag(seconds, chances))

    def lag(self, sessions: int) -> float:
        """Return the seconds within which 95 % of the updates are answered with ``sessions`` sessions."""
        return self.estimate(sessions).lag

    def _cycle(self, pass_seconds: float) -> tuple[float, float]:
        """Return a session's seconds without work and passes, from one answer to the next."""
        power = math.log(pass_seconds, RATIO)
        low, high = (self._alone(math.floor(power) + each) for each in (0, 1))
        share = power - math.floor(power)
        wait, passes = (
            (1 - share) * getattr(low, name) / low.updates + share * getattr(high, name) / high.updates
            for name in ("idle", "passes")
        )
        return max(_LEAST_WAIT, wait), passes

    def _chances(self, seconds: np.ndarray, assumed: float) -> np.ndarray:
        """Return the probabilities of 0 to all sessions running, if they wait and work as with the assumed time."""
        wait, passes = self._cycle(assumed)
        sizes = np.arange(1, len(seconds) + 1)
        logs = np.log((len(seconds) - sizes + 1) / wait * passes * seconds / sizes)
        logs = np.concatenate([[0.0], np.cumsum(logs)])
        chances = np.exp(logs - logs.max())
        return np.asarray(chances / chances.sum())

    def _seen(self, seconds: np.ndarray, assumed: float) -> float:
        """Return the time of a pass that follows from the assumed one."""
        wait, passes = self._cycle(assumed)
        running = float(self._chances(seconds, assumed) @ np.arange(len(seconds) + 1))
        return running * wait / ((len(seconds) - running) * passes)

    def _lag(self, seconds: np.ndarray, chances: np.ndarray) -> float:
        """Return the lag, if an update always sees as many others as at the start."""
        weights = chances[1:] * np.arange(1, len(chances)) / seconds
        powers = np.round(np.log(seconds) / math.log(RATIO))
        lags, shares = [], []
        for power in np.unique(powers[weights > _RARE * weights.sum()]):
            these = powers == power
            pass_seconds = float(np.average(seconds[these], weights=weights[these]))
            talk = self._alone(int(power))
            # On average an update arrives in the middle of a pass and waits for its end.
            lags.append(np.array(talk.lags) * pass_seconds / RATIO**power + pass_seconds / 2)
            shares.append(np.full(len(talk.lags), weights[these].sum() / len(talk.lags)))
        lag, share = np.concatenate(lags), np.concatenate(shares)
        order = np.argsort(lag)
        place = np.searchsorted(np.cumsum(share[order]), IN_TIME * share.sum())
        return float(lag[order][min(place, len(lag) - 1)])


def most_carried(lag: Callable[[int], float], deadline: float, most: int, close: float = 0.0) -> int:
    """Return the approximate maximum number whose lag is within the deadline, 0 if not even 1 is; at most ``most``.

    Args:
        lag: returns the lag in seconds for a number.
        deadline: maximum lag in seconds.
        most: maximum number to consider.
        close: relative precision.
    """
    low, high = 0, 1
    while high <= most and lag(high) <= deadline:
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > max(1, close * low):
        middle = (low + high) // 2
        low, high = (middle, high) if lag(middle) <= deadline else (low, middle)
    return low
