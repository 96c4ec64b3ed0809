"""Latency metrics, computed from the delays of one translation.

A delay is how much of the source (in words or seconds) had been read when a unit of the translation last changed.
Computation-aware values use the same functions with the times at which units were shown.  |X| is the length of the
source in the unit of the delays; |Y| and |Y*| are the lengths of translation and reference in words or characters. Each
function returns None if the metric is undefined, as for an empty translation.  `redraft_bench.eval.delays` computes
delays from records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def al(delays: Sequence[float], source: float, reference: int) -> float | None:
    """Average lagging behind an ideal translator (Ma et al. 2019).

    AL = 1/tau sum_{i<=tau} [d_i - (i - 1) |X| / |Y*|], where tau is the first i with d_i >= |X|, or |Y| if there is
    none.

    Args:
        delays: d_1 .. d_|Y|, not descending.
        source: |X|.
        reference: |Y*|; without a reference use |Y|, as SimulEval does.
    """
    return _lagging(delays, source, reference)


def laal(delays: Sequence[float], source: float, reference: int) -> float | None:
    """Length-adaptive average lagging (Papi et al. 2022): AL with max(|Y|, |Y*|) instead of |Y*|."""
    return _lagging(delays, source, max(len(delays), reference))


def mean_lag(delays: Sequence[float], source: float, reference: int) -> float | None:
    """LAAL over all units, including those shown at or after the end of the source.

    AL and LAAL stop at the first unit shown at the end of the source, so they skip most of a translation that is held
    back until then.
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
    """Differentiable average lagging (Cherry and Foster 2019): units are shown no faster than at a steady pace.

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
    """Average token delay (Kano et al. 2023): between the ends of corresponding source and target tokens.

    Target token t corresponds to source token t, or to an earlier one if more target tokens than source tokens came
    before its chunk, and never to a token that had not been read.  A chunk is what was read or shown at one delay.

    Args:
        delays: d_1 .. d_|Y|, not descending.
        shown: when each token was shown, for the computation-aware value; None uses the delays.
        source_unit: length of a source token: 1 if delays count words, 0.3 for seconds (as in SimulEval).
        target_unit: time to read a target token: 1 if delays count words, 0 for seconds.
    """
    if not delays:
        return None
    ends = [0.0]  # ends of the source tokens; the first entry means nothing was read
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
    """Return the ends of the tokens between two points; the last token may be short."""
    count = math.ceil(round((end - start) / unit, 6))  # rounded, so that 0.9 s are three tokens of 0.3 s
    return [*(start + unit * number for number in range(1, count)), end] if count > 0 else []
