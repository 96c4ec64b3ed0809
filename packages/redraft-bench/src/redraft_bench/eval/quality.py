"""BLEU and chrF of final translations, computed by sacrebleu.  Needs the ``eval`` extra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from redraft_bench.eval.bootstrap import Array, Statistic

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF


@dataclass(frozen=True, slots=True)
class Quality:
    """``bleu`` and ``chrf`` from 0 to 100, with sacrebleu's ``signature`` of both."""

    bleu: float
    chrf: float
    signature: str


def quality(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Quality:
    """Compute corpus scores of translations.

    Args:
        hypotheses: translations, one per segment.
        references: references, one per segment.
        language: primary subtag of the target language; chooses the `bleu_tokenizer`.
    """
    bleu, chrf = _metrics(language)
    scores = [metric.corpus_score(list(hypotheses), [list(references)]) for metric in (bleu, chrf)]
    return Quality(scores[0].score, scores[1].score, f"bleu[{bleu.get_signature()}] chrf[{chrf.get_signature()}]")


def statistics(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> dict[str, tuple[Array, Statistic]]:
    """For ``bleu`` and ``chrf``, return the arguments of `bootstrap.interval`: segment statistics and a function.

    Arguments are those of `quality`.
    """
    bleu, chrf = _metrics(language)
    return {name: _statistics(each, hypotheses, references) for name, each in (("bleu", bleu), ("chrf", chrf))}


def _statistics(metric: Any, hypotheses: Sequence[str], references: Sequence[str]) -> tuple[Array, Statistic]:
    # sacrebleu's own paired tests call this method; it has no public one for segment statistics.
    found = metric._extract_corpus_statistics(list(hypotheses), [list(references)])
    return np.array(found, dtype=np.float64), lambda sums: float(metric._compute_score_from_stats(sums.tolist()).score)


def _metrics(language: str) -> tuple[BLEU, CHRF]:
    from sacrebleu.metrics import BLEU, CHRF

    return BLEU(tokenize=bleu_tokenizer(language)), CHRF()


def bleu_tokenizer(language: str) -> str:
    """Return the name of sacrebleu's tokenizer for a language; Japanese characters need no dictionary."""
    return {"zh": "zh", "ja": "char"}.get(language, "13a")
