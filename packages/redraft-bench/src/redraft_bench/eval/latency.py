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


def laal(delays: Sequence[float], source: float, reference: int) -> float | None:
    """Length-adaptive average lagging behind an ideal translator (Papi et al. 2022).

    LAAL = 1/tau sum_{i<=tau} [d_i - (i - 1) |X| / max(|Y|, |Y*|)], where tau is the first i with d_i >= |X|, or |Y| if
    there is none.

    Args:
        delays: d_1 .. d_|Y|, not descending.
        source: |X|.
        reference: |Y*|; without a reference use |Y|.
    """
    target = max(len(delays), reference)
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
