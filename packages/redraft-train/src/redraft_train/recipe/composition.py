"""What the corpus consists of: ids by kind of text, as they are and as they are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from tokenizers import Tokenizer

from redraft_train.recipe.corpus import SOURCE_WEIGHTS, Pair

#: Pairs tokenized at a time.
GROUP = 20_000


def composition(pairs: Mapping[str, Sequence[Pair]], tokenizer: Tokenizer) -> dict[str, dict[str, tuple[int, float]]]:
    """Return ``(ids, weighted ids)`` of every kind of text and language; both sides of a pair and its 3 marks count."""
    found: dict[str, dict[str, tuple[int, float]]] = {kind: dict.fromkeys(pairs, (0, 0.0)) for kind in SOURCE_WEIGHTS}
    for language, of_language in pairs.items():
        remaining = iter(of_language)
        while group := list(islice(remaining, GROUP)):
            encoded = tokenizer.encode_batch_fast([side for pair in group for side in (pair.source, pair.target)])
            lengths = np.array([len(each.ids) for each in encoded]).reshape(-1, 2).sum(axis=1) + 3
            for pair, length in zip(group, lengths.tolist(), strict=True):
                ids, weighted = found[pair.kind][language]
                found[pair.kind][language] = ids + length, weighted + pair.weight * length
    return found


def table(found: Mapping[str, Mapping[str, tuple[int, float]]]) -> Iterator[str]:
    """Yield the lines of a Markdown table: per language the ids of a kind, their share, and their share of draws."""
    languages = list(next(iter(found.values())))
    sums = {of: [sum(row[of][part] for row in found.values()) or 1 for part in (0, 1)] for of in languages}
    yield f"| | {' | '.join(languages)} |"
    yield f"|---{'|---' * len(languages)}|"
    for kind, row in found.items():
        cells = [
            f"{row[of][0] / 1e6:.2f}M, {row[of][0] / sums[of][0]:.1%} → {row[of][1] / sums[of][1]:.1%}"
            for of in languages
        ]
        yield f"| {kind} | {' | '.join(cells)} |"
    yield f"| all | {' | '.join(f'{sums[of][0] / 1e6:.1f}M' for of in languages)} |"
