"""BLEU and chrF of final translations, by sacrebleu.  Needs the ``eval`` extra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redraft.errors import MissingExtra

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF

#: sacrebleu's tokenizer for BLEU by target language; all others are split by its default, 13a.
TOKENIZERS = {"zh": "zh", "ja": "char"}


@dataclass(frozen=True, slots=True)
class Quality:
    """``bleu`` and ``chrf`` on their scales of 0 to 100, with sacrebleu's ``signature`` of both."""

    bleu: float
    chrf: float
    signature: str


def quality(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Quality:
    """Corpus scores of translations into ``language`` (a primary subtag).

    Japanese BLEU is by characters, which needs no dictionary.

    Raises:
        MissingExtra: sacrebleu is not installed.
    """
    bleu, chrf = _metrics(language)
    scores = [metric.corpus_score(list(hypotheses), [list(references)]) for metric in (bleu, chrf)]
    return Quality(scores[0].score, scores[1].score, f"bleu[{bleu.get_signature()}] chrf[{chrf.get_signature()}]")


def _metrics(language: str) -> tuple[BLEU, CHRF]:
    try:
        from sacrebleu.metrics import BLEU, CHRF
    except ImportError as error:
        raise MissingExtra("BLEU and chrF need the eval extra: pip install 'redraft[eval]'") from error
    return BLEU(tokenize=TOKENIZERS.get(language, "13a")), CHRF()
