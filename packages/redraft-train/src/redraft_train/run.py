"""Fine-tune a model, and measure re-translation, and drafts for another model, on held-out sources before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder
from redraft.backends.load import HF_PREFIX, open_transformers
from redraft.backends.options import HfOptions
from redraft.decoding.backend import Backend
from redraft.signature import signature, text_hash
from redraft_train.adapt import ROWS, FineTuning, adapt
from redraft_train.agreement import Agreement, agreement
from redraft_train.sources import Sentence
from redraft_train.steadiness import LAG, Steadiness, steadiness
from redraft_train.teacher import HfTeacher


@dataclass(frozen=True, slots=True)
class LanguageOutcome:
    """The result for one target language.

    Attributes:
        sources: number of translations trained on.
        unfinished: number of outputs left out.
        before: stability on the held-out sources before training; None without held-out sources.
        after: the same after training.
        drafts_before: agreement of the model, or of its first layers, with the model that they draft for, before
            training; None if they draft for none.
        drafts_after: the same after training.
    """

    target_language: str
    sources: int
    unfinished: int
    before: Steadiness | None
    after: Steadiness | None
    drafts_before: Agreement | None = None
    drafts_after: Agreement | None = None

    def flat(self) -> dict[str, Any]:
        """Return a row for tables and JSON."""
        row: dict[str, Any] = {
            "target_language": self.target_language,
            "sources": self.sources,
            "unfinished": self.unfinished,
            "held_out": self.before.sentences if self.before else 0,
        }
        stability, drafts = (self.before, self.after), (self.drafts_before, self.drafts_after)
        for figures, measured in ((("ne", "chrf", "length"), stability), (("agreement", "cross_entropy"), drafts)):
            for figure in figures:
                for when, found in zip(("before", "after"), measured, strict=True):
                    value = getattr(found, figure, None)
                    row[f"{figure}_{when}"] = value if value is None else round(value, 4)
        return row


def train(
    model: str,
    options: HfOptions,
    learnt: Sequence[Sentence],
    held_out: Sequence[Sentence],
    settings: FineTuning,
    teacher: str | None = None,
) -> tuple[list[LanguageOutcome], str]:
    """Fine-tune a transformers model; return the results by language, and the signature.

    Args:
        model: ``hf:NAME``, or the model's folder.
        options: options of the backend.
        learnt: sources to train on.
        held_out: other sources to measure on; either all sources have references or none has.
        settings: settings of the run.
        teacher: the model whose outputs it learns, named like ``model``; None for itself.

    Raises:
        OptionError: the model does not support a language.
        CapabilityError: the teacher has another vocabulary, or the model no such early exit.
        ModelError: the model ended none of its outputs, or LoRA cannot be applied to it.
    """
    backend = open_transformers(model, options)
    large = None if teacher is None else open_transformers(teacher, options)
    before, drafts = _measure(backend, held_out, settings, "before"), _drafts(backend, large, held_out, settings)
    adapted = adapt(backend, learnt, settings, large)
    after = _measure(adapted.backend, held_out, settings, "after")
    better = _drafts(adapted.backend, large, held_out, settings)
    outcomes = [
        LanguageOutcome(
            tag, adapted.learnt[tag], adapted.unfinished[tag], before[tag], after[tag], drafts[tag], better[tag]
        )
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
        teacher="itself" if teacher is None else Path(teacher.removeprefix(HF_PREFIX)).name,
        early_exit=lora.early_exit,
        lora=f"rank{lora.rank},rate{lora.rate:g},x{lora.epochs}",
    )
    return outcomes, line


def _drafts(
    backend: HfDecoder | HfEncoderDecoder,
    large: HfDecoder | HfEncoderDecoder | None,
    held_out: Sequence[Sentence],
    settings: FineTuning,
) -> Mapping[str, Agreement | None]:
    """Return, by target language, how well the model follows ``large``, or its first layers the whole model."""
    exits = settings.lora.early_exit
    if not held_out or (large is None and not exits):
        return dict.fromkeys(settings.languages)
    drafting, target = (backend, large) if large is not None else (backend.early_exit(exits), backend)
    small, teacher = (HfTeacher(each, settings.languages, settings.style) for each in (drafting, target))
    found = {}
    for tag in settings.languages:
        texts = [source.text for source in held_out]
        outputs = [
            output
            for start in range(0, len(texts), ROWS)
            for output in teacher.outputs([teacher.prompt(text, tag) for text in texts[start : start + ROWS]])
        ]
        examples = [(small.prompt(text, tag), output) for text, output in zip(texts, outputs, strict=True) if output]
        found[tag] = agreement(small, examples)
    if large is None:
        drafting.close()
    return found


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
