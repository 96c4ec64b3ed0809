"""Fine-tune a model, and measure re-translation of held-out sources before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redraft.backends.hf.options import HfOptions
from redraft.backends.load import HF_PREFIX, open_transformers
from redraft.decoding.backend import Backend
from redraft.signature import signature, text_hash
from redraft_train.adapt import FineTuning, adapt
from redraft_train.sources import Sentence
from redraft_train.steadiness import LAG, Steadiness, steadiness


@dataclass(frozen=True, slots=True)
class LanguageOutcome:
    """The result for one target language.

    Attributes:
        sources: number of translations trained on.
        unfinished: number of outputs left out.
        before: stability on the held-out sources before training; None without held-out sources.
        after: the same after training.
    """

    target_language: str
    sources: int
    unfinished: int
    before: Steadiness | None
    after: Steadiness | None

    def flat(self) -> dict[str, Any]:
        """Return a row for tables and JSON."""
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
    """Fine-tune a transformers model; return the results by language, and the signature.

    Args:
        model: ``hf:NAME``, or the model's folder.
        options: options of the backend.
        learnt: sources to train on.
        held_out: other sources to measure on; either all sources have references or none has.
        settings: settings of the run.

    Raises:
        OptionError: the model does not support a language.
        ModelError: the model ended none of its outputs, or LoRA cannot be applied to it.
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
        lag=LAG,
        of=Path(model.removeprefix(HF_PREFIX)).name,
        learn="translations" if settings.given else "outputs",
        lora=f"rank{lora.rank},rate{lora.rate:g},x{lora.epochs}",
    )
    return outcomes, line


def _measure(
    backend: Backend, held_out: Sequence[Sentence], settings: FineTuning, when: str
) -> Mapping[str, Steadiness | None]:
    """Return the measurement by target language; None without sources."""
    sources = [source.text for source in held_out]
    references = [source.reference for source in held_out if source.reference is not None]
    return {
        tag: steadiness(backend, tag, sources, references or None, settings.style, f"{when}, to {tag}")
        if sources
        else None
        for tag in settings.languages
    }
