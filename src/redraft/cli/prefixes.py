"""The work of ``redraft train prefix``: training, and what plain re-translation makes of held-out sources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redraft.backends.hf.options import HfOptions
from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import HF_PREFIX, open_model, open_transformers
from redraft.decoding.types import Backend
from redraft.measure.eval.signature import signature, text_hash
from redraft.measure.eval.steadiness import Steadiness, steadiness
from redraft.translator import Style

if TYPE_CHECKING:
    from recipe.prefix import Settings as RecipeSettings
    from redraft.finetune.adapt import Settings as LoraSettings
    from redraft.finetune.sources import Source

#: Held-out sources and, if there are any, their translations.
Measured = tuple[list[str], list[str] | None]


@dataclass(frozen=True, slots=True)
class Row:
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


def train_recipe(settings: RecipeSettings, held_out: int) -> tuple[list[Row], str]:
    """Train a model of the recipe; returns a row a language, and the signature.

    Raises:
        ModelError, OptionError: as `recipe.prefix.train_prefix`.
    """
    from recipe.prefix import held_out_pairs, train_prefix

    answered = train_prefix(settings)
    asked: dict[str, Measured] = {}
    for tag in settings.languages:
        pairs = held_out_pairs(settings.data, tag, held_out, settings.distillation.seed)
        asked[tag] = [pair.source for pair in pairs], [pair.target for pair in pairs]
    before, after = (
        _of_file(path, settings.processes, asked, when)
        for path, when in ((settings.model, "before"), (settings.out, "after"))
    )
    rows = []
    for tag in settings.languages:
        outputs = [each.output for each in answered if each.language == tag]
        unfinished = sum(not output for output in outputs)
        rows.append(Row(tag, len(outputs) - unfinished, unfinished, before[tag], after[tag]))
    more = {"of": settings.model.name, "tokens": settings.tokens, "share": settings.share}
    return rows, _signature(settings.out, asked, settings.distillation.seed, more)


def _of_file(path: Path, threads: int, asked: Mapping[str, Measured], when: str) -> dict[str, Steadiness | None]:
    backend = open_model(str(path), LlamaOptions(context_length=1024, threads=threads))
    try:
        return _measure(backend, asked, Style(), when)
    finally:
        backend.close()


def train_lora(
    model: str, options: HfOptions, learnt: Sequence[Source], held_out: Sequence[Source], settings: LoraSettings
) -> tuple[list[Row], str]:
    """Train a model of transformers; returns a row a language, and the signature.

    Args:
        model: ``hf:NAME``, or the model's folder.
        learnt, held_out: different sources; all of them have references, or none.

    Raises:
        ModelError, OptionError: as `redraft.finetune.adapt.adapt`.
    """
    from redraft.finetune.adapt import adapt

    backend = open_transformers(model, options)
    references = [source.reference for source in held_out if source.reference is not None]
    asked: dict[str, Measured] = {
        tag: ([source.text for source in held_out], references or None) for tag in settings.languages
    }
    before = _measure(backend, asked, settings.style, "before")
    adapted = adapt(backend, learnt, settings)
    after = _measure(adapted.backend, asked, settings.style, "after")
    rows = [
        Row(tag, len(learnt) - adapted.unfinished[tag], adapted.unfinished[tag], before[tag], after[tag])
        for tag in settings.languages
    ]
    lora = settings.lora
    more = {"of": Path(model.removeprefix(HF_PREFIX)).name, "lora": f"rank{lora.rank},rate{lora.rate:g},x{lora.epochs}"}
    return rows, _signature(settings.out, asked, settings.seed, more)


def _measure(backend: Backend, asked: Mapping[str, Measured], style: Style, when: str) -> dict[str, Steadiness | None]:
    return {
        tag: steadiness(backend, tag, sources, references, style, f"{when}, to {tag}") if sources else None
        for tag, (sources, references) in asked.items()
    }


def _signature(out: Path, asked: Mapping[str, Measured], seed: int, more: Mapping[str, object]) -> str:
    return signature(out, "held-out", text_hash(json.dumps(asked)), seed, method="ar", lag=3, **more)
