"""Measure models of the recipe on held-out pairs: loss, and chrF of greedy outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from sacrebleu.metrics import CHRF
from tokenizers import Tokenizer

from redraft_train.recipe.agreement import GivenExamples, agreement
from redraft_train.recipe.calibrate import Calibration, batches, outputs
from redraft_train.recipe.corpus import Pair
from redraft_train.recipe.examples import MAX_LENGTH
from redraft_train.recipe.model import Decoder
from redraft_train.recipe.restart import read_model
from redraft_train.recipe.teach import RecipeTeacher

#: Ids scored together, including padding.
TOKENS = 2048


def measure(
    model: Path, tokenizer: Tokenizer, pairs: Mapping[str, Sequence[Pair]], greedy: int
) -> Iterator[dict[str, Any]]:
    """Yield a row for each language with pairs; those that are too long for training are left out.

    Args:
        model: a checkpoint or a GGUF, whose weights are dequantised.
        tokenizer: its tokenizer.
        pairs: held-out pairs by language.
        greedy: number of pairs of a language that are translated, the first ones.

    Returns:
        ``loss`` is the mean in nats per target token over ``pairs``, ends included; ``chrf`` is of ``greedy``
        outputs, of which ``empty`` have no text and ``unended`` did not end within twice the source's length.
    """
    decoder = read_model(model).eval()
    teacher = RecipeTeacher(decoder, tokenizer)
    for language, of_language in pairs.items():
        prompts = [teacher.prompt(pair.source, language) for pair in of_language]
        examples = [
            ([*prompt, *tokenizer.encode(pair.target).ids, teacher.end], len(prompt) - 1)
            for prompt, pair in zip(prompts, of_language, strict=True)
        ]
        fitting = [place for place, (ids, _start) in enumerate(examples) if len(ids) <= MAX_LENGTH]
        if not fitting:
            continue
        scored = GivenExamples([examples[place] for place in fitting], tokenizer, TOKENS, seed=0)
        loss = agreement(decoder, scored.once()).cross_entropy
        texts = translations(decoder, tokenizer, language, [prompts[place] for place in fitting[:greedy]], teacher.end)
        references = [of_language[place].target for place in fitting[:greedy]]
        chrf = CHRF().corpus_score([text or "" for text in texts], [references]).score
        yield {
            "model": model.stem,
            "to": language,
            "pairs": len(fitting),
            "loss": round(loss, 4),
            "greedy": len(texts),
            "chrf": round(chrf, 2),
            "empty": sum(text is not None and not text.strip() for text in texts),
            "unended": texts.count(None),
        }


@torch.inference_mode()
def translations(
    decoder: Decoder, tokenizer: Tokenizer, language: str, prompts: Sequence[tuple[int, ...]], end: int
) -> list[str | None]:
    """Return the greedy translation for each prompt; None if it did not end."""
    found: dict[tuple[int, ...], str | None] = {}
    asked = [Calibration(language, True, prompt) for prompt in dict.fromkeys(prompts)]
    for group in batches(asked):
        for each, output in zip(group, outputs(decoder, end, group), strict=True):
            found[each.prompt] = None if output is None else tokenizer.decode(output)
    return [found[prompt] for prompt in prompts]
