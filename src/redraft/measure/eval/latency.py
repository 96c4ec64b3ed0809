"""Metrics of latency, from the delays of one translation.

A delay says how much of the source had been read when a unit of the translation came to stand as it is: source words,
or seconds.  Computation-aware values come from the same functions with the times at which units were shown.  |X| is the
length of the source in the unit of the delays, |Y| and |Y*| are the lengths of translation and reference in words or
characters.  Every function returns None where the metric is not defined, and so for an empty translation.
`redraft.measure.eval.delays` makes delays from records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def al(delays: Sequence[float], source: float, reference: int) -> float | None:
    """Average lagging behind a translator who keeps pace (Ma et al. 2019).

    AL = 1/tau sum_{i<=tau} [d_i - (i - 1) |X| / |Y*|], where tau is the first i with d_i >= |X|, else |Y|.

    Args:
        delays: d_1 .. d_|Y|, none smaller than the one before.
        source: |X|.
        reference: |Y*|; without a reference take |Y|, as SimulEval does.
    """
    return _lagging(delays, source, reference)


def laal(delays: Sequence[float], source: float, reference: int) -> float | None:
    """Length-adaptive average lagging (Papi et al. 2022): AL with max(|Y|, |Y*|) in place of |Y*|."""
    return _lagging(delays, source, max(len(delays), reference))


def mean_lag(delays: Sequence[float], source: float, reference: int) -> float | None:
    """LAAL over all units, those that came with the end of the source or after it included.

    AL and LAAL stop at the first unit that came with the end of the source.  So they leave out most of a translation
    that is held back until then.
    """
    return _mean(delays, source, max(len(delays), reference))


def yaal(delays: Sequence[float], source: float, reference: int) -> float | None:
    """Yet another average lagging (Polak et al. 2025): LAAL over the units that came before the end of the source."""
    return _mean([delay for delay in delays if delay < source], source, max(len(delays), reference))


def _mean(delays: Sequence[float], source: float, target: int) -> float | None:
    if not delays or target <= 0:
        return None
    return sum(delay - index * source / target for index, delay in enumerate(delays)) / len(delays)


def _lagging(delays: Sequence[float], source: float, target: int) -> float | None:
    if not delays or target <= 0:
        return None
    total, count = 0.0, 0
    for count, delay in enumerate(delays, 1):
        total += delay - (count - 1) * source / target
        if delay >= source:
            break
    return total / count


def dal(delays: Sequence[float], source: float) -> float | None:
    """Differentiable average lagging (Cherry and Foster 2019): nothing is shown faster than a steady pace allows.

    DAL = 1/|Y| sum_i [g_i - (i - 1) |X| / |Y|] with g_1 = d_1 and g_i = max(d_i, g_{i-1} + |X| / |Y|).
    """
    if not delays:
        return None
    pace = source / len(delays)
    total, shown = 0.0, -math.inf
    for index, delay in enumerate(delays):
        shown = max(delay, shown + pace)
        total += shown - index * pace
    return total / len(delays)


def ap(delays: Sequence[float], source: float, reference: int) -> float | None:
    """Average proportion (Cho and Esipova 2016): sum_i d_i / (|X| |Y*|)."""
    return sum(delays) / (source * reference) if delays and source > 0 and reference > 0 else None


def atd(
    delays: Sequence[float],
    shown: Sequence[float] | None = None,
    *,
    source_unit: float = 1.0,
    target_unit: float = 1.0,
) -> float | None:
    """Average token delay (Kano et al. 2023): from the end of a source token to the end of the target token it answers.

    Target token t answers source token t, or an earlier one where more was shown than had been read before its chunk,
    and none that had not been read.  A chunk is what was read or shown at one delay.

    Args:
        delays: d_1 .. d_|Y|, none smaller than the one before.
        shown: when each token was shown, for the computation-aware value; None takes the delays.
        source_unit: how much of the source is a token: 1 where delays count words, 0.3 for seconds (as SimulEval does).
        target_unit: how long a token takes to be read: 1 where delays count words, 0 for seconds.
    """
    if not delays:
        return None
    ends = [0.0]  # of the source tokens; the first one stands for nothing read
    total = clock = read = 0.0
    lead = 0
    for number, (delay, when) in enumerate(zip(delays, delays if shown is None else shown, strict=True), 1):
        if number == 1 or delay > read:
            lead = max(0, (number - 1) - (len(ends) - 1))
            ends += _token_ends(read, delay, source_unit)
            read = delay
        clock = max(when, clock) + target_unit
        total += clock - ends[min(number - lead, len(ends) - 1)]
    return total / len(delays)


def _token_ends(start: float, end: float, unit: float) -> list[float]:
    """The ends of the tokens between two points; the last one may be short."""
    count = math.ceil(round((end - start) / unit, 6))  # 0.9 s are three tokens of 0.3 s, whatever floats make of it
    return [*(start + unit * number for number in range(1, count)), end] if count > 0 else []
