"""Measure models of the recipe on held-out pairs: loss, and chrF of greedy outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from sacrebleu.metrics import CHRF
from tokenizers import Tokenizer

from redraft.captions.sentence import DEFAULT_MARK, as_sentence
from redraft_bench.eval.losses import has_number, losses
from redraft_train.recipe.agreement import GivenExamples, agreement
from redraft_train.recipe.calibrate import Calibration, batches, limit, outputs
from redraft_train.recipe.corpus import Pair
from redraft_train.recipe.examples import MAX_LENGTH, SAID, SAID_WORDS
from redraft_train.recipe.generate import generate
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


class Watch:
    """Counts what the translations of held-out utterances have lost (`redraft_bench.eval.losses`) during a training."""

    #: Utterances of a language.
    EACH = 200

    def __init__(self, tokenizer: Tokenizer, pairs: Mapping[str, Sequence[Pair]]) -> None:
        self._tokenizer = tokenizer
        self._pairs = {language: watched(of_language)[: self.EACH] for language, of_language in pairs.items()}

    def __call__(self, model: Decoder) -> dict[str, object]:
        """Return chrF and the counts of each language."""
        found: dict[str, object] = {}
        teacher = RecipeTeacher(model, self._tokenizer)
        for language, pairs in self._pairs.items():
            if not pairs:
                continue
            sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
            prompts = [teacher.prompt(as_sentence(source, DEFAULT_MARK), language) for source in sources]
            texts = self._translations(model, prompts, teacher.end)
            chrf = CHRF().corpus_score(texts, [references]).score
            found[language] = {"chrf": round(chrf, 2), **losses(sources, texts, references, language)}
        return found

    def _translations(self, model: Decoder, prompts: Sequence[tuple[int, ...]], end: int) -> list[str]:
        """Return greedy translations, all at once for a GPU; empty ones for those that do not end."""
        longest = max(map(len, prompts))
        device = model.embedding.weight.device
        padding = torch.tensor([longest - len(prompt) for prompt in prompts], device=device)
        ids = torch.tensor([[end] * (longest - len(prompt)) + [*prompt] for prompt in prompts], device=device)
        found = generate(model, ids, end, limit(range(longest)), padding=padding)
        return ["" if output is None else self._tokenizer.decode(output) for output in found]


def watched(pairs: Sequence[Pair]) -> list[Pair]:
    """Return pairs that people say: every second one with a number, as far as there are any."""
    chosen = [pair for pair in pairs if pair.kind in SAID and len(pair.source.split()) <= SAID_WORDS]
    chosen.sort(key=lambda pair: len(pair.source))  # those translated together have similar lengths
    numbered = [pair for pair in chosen if has_number(pair.source)]
    others = [pair for pair in chosen if not has_number(pair.source)]
    step = max(1, len(others) * 2 // max(1, Watch.EACH))
    return [*numbered[:: max(1, 2 * len(numbered) // Watch.EACH)][: Watch.EACH // 2], *others[::step]]


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
