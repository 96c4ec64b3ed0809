"""Fine-tunes a model, and measures re-translation of held-out sources before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redraft.backends.hf.options import HfOptions
from redraft.backends.load import HF_PREFIX, open_transformers
from redraft.decoding.backend import Backend
from redraft.finetune.adapt import FineTuning, adapt
from redraft.finetune.sources import Sentence
from redraft.measure.eval.signature import signature, text_hash
from redraft.measure.eval.steadiness import Steadiness, steadiness


@dataclass(frozen=True, slots=True)
class LanguageOutcome:
    """What came of one target language.

    Attributes:
        sources: how many translations were learnt.
        unfinished: outputs left out.
        before, after: measured on the held-out sources; None if there are none.
    """

    target_language: str
    sources: int
    unfinished: int
    before: Steadiness | None
    after: Steadiness | None

    def flat(self) -> dict[str, Any]:
        """The row for tables and JSON."""
        row: dict[str, Any] = {
            "target_language": self.target_language,
            "sources": self.sources,
            "unfinished": self.unfinished,
            "held_out": self.before.sentences if self.before else 0,
        }
        for figure in ("ne", "chrf", "length"):
            for when, found in (("before", self.before), ("after", self.after)):
                value = getattr(found, figure, None)
                row[f"{figure}_{when}"] = value if value is None else round(value, 4)
        return row


def train(
    model: str, options: HfOptions, learnt: Sequence[Sentence], held_out: Sequence[Sentence], settings: FineTuning
) -> tuple[list[LanguageOutcome], str]:
    """Fine-tune a model of transformers; returns the outcome for each language, and the signature.

    Args:
        model: ``hf:NAME``, or the model's folder.
        learnt, held_out: different sources; all of them have references, or none.

    Raises:
        ModelError, OptionError: as `redraft.finetune.adapt.adapt`.
    """
    backend = open_transformers(model, options)
    before = _measure(backend, held_out, settings, "before")
    adapted = adapt(backend, learnt, settings)
    after = _measure(adapted.backend, held_out, settings, "after")
    outcomes = [
        LanguageOutcome(tag, len(learnt) - adapted.unfinished[tag], adapted.unfinished[tag], before[tag], after[tag])
        for tag in settings.languages
    ]
    lora = settings.lora
    line = signature(
        settings.out,
        "held-out",
        text_hash(json.dumps([[source.text, source.reference] for source in held_out])),
        settings.seed,
        method="ar",
        lag=3,
        of=Path(model.removeprefix(HF_PREFIX)).name,
        lora=f"rank{lora.rank},rate{lora.rate:g},x{lora.epochs}",
    )
    return outcomes, line


def _measure(
    backend: Backend, held_out: Sequence[Sentence], settings: FineTuning, when: str
) -> Mapping[str, Steadiness | None]:
    """By target language; None without sources."""
    sources = [source.text for source in held_out]
    references = [source.reference for source in held_out if source.reference is not None]
    return {
        tag: steadiness(backend, tag, sources, references or None, settings.style, f"{when}, to {tag}")
        if sources
        else None
        for tag in settings.languages
    }
