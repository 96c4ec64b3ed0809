"""Choose among candidate outputs: minimum Bayes risk decoding (Eikema and Aziz 2022) with chrF as the utility.

The chosen output is the one most like all others.  A model trained on such outputs writes better ones greedily
(Finkelstein and Freitag 2024, "MBR and QE finetuning").  Outputs that repeat themselves or lose a clause are rarely
like the others, so they are unlearnt.
"""

from __future__ import annotations

from collections.abc import Sequence


def consensus(candidates: Sequence[str]) -> int:
    """Return the position of the candidate with the highest chrF against all of them together.

    Args:
        candidates: outputs for one source, at least one; equal ones count as often as they occur.
    """
    if len(candidates) == 1:
        return 0
    from fastchrf import aggregate_chrf  # only stages with samples need it

    [scores] = aggregate_chrf([list(candidates)], [list(candidates)])
    return max(range(len(candidates)), key=scores.__getitem__)
