"""A byte-level BPE for all four languages.

Digits are separate tokens and the rest is split as in GPT-2.  llama.cpp has this pre-tokenizer as ``smollm``, so the
exported GGUF tokenizes exactly as in training.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from redraft_train.recipe.corpus import Pair

LLAMA_CPP_PRE = "smollm"
BOS, EOS, PAD = "<s>", "</s>", "<pad>"


def target_tag(language: str) -> str:
    """Return the special token that ends the source and selects a language, e.g. ``<2de>``."""
    return f"<2{language}>"


def train_tokenizer(
    pairs: Mapping[str, Sequence[Pair]], vocabulary: int, characters_per_side: int = 8_000_000
) -> Tokenizer:
    """Train a BPE of ``vocabulary`` entries on equal amounts (in bytes) of every language's text."""
    tokenizer = blank_tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[BOS, EOS, PAD, *map(target_tag, pairs)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(_balanced_text(pairs, characters_per_side), trainer)
    return tokenizer


def blank_tokenizer(model: models.Model) -> Tokenizer:
    """Return a tokenizer that splits and decodes as ours do, for a given BPE model."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _balanced_text(pairs: Mapping[str, Sequence[Pair]], budget: int) -> Iterator[str]:
    """Yield texts by sampling weight until each target side and its English have used their budget in bytes."""
    generator = random.Random(0)
    for of_language in pairs.values():
        used = 0
        weights = [pair.weight for pair in of_language]
        while used < budget:
            for pair in generator.choices(of_language, weights, k=1000):
                used += len(pair.target.encode())
                yield pair.target
                if generator.random() < 0.4:  # three languages share one English side
                    yield pair.source


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a tokenizer saved as JSON."""
    return Tokenizer.from_file(str(path))
