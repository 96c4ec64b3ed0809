"""Training sentences of the user: one per line, or a sentence and its translation separated by a tab."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redraft.captions.prompt import clean
from redraft.errors import InputError

#: Minimum number of sources for training.
FEWEST = 20
#: Minimum words of a held-out source; at a lag of 3 words, shorter ones have no partial updates.
LEAST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as in prompts, and its translation if the file has one."""

    text: str
    reference: str | None = None


def read_sources(path: Path) -> list[Sentence]:
    """Read the sentences of a UTF-8 file in order, without duplicates and blank lines.

    Raises:
        InputError: the file cannot be read, or a line differs in form from the others.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"data: file {str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"data: file {str(path)!r} is not UTF-8 text") from error
    found: dict[str, Sentence] = {}
    fields = 0
    for number, line in enumerate(lines, 1):
        texts = [clean(text) for text in line.split("\t")]
        if not any(texts):
            continue
        fields = fields or min(2, len(texts))
        if len(texts) != fields or not all(texts):
            wanted = ("a sentence", "a sentence and its translation with a tab between")[fields - 1]
            raise InputError(f"data: {path.name} must have {wanted} in every line", number)
        found.setdefault(texts[0], Sentence(*texts))
    return list(found.values())


def divided(sources: Sequence[Sentence], most: int, held_out: int, seed: int) -> tuple[list[Sentence], list[Sentence]]:
    """Split the sources: at most ``most`` for training, and ``held_out`` of at least `LEAST_WORDS` words for measuring.

    Raises:
        InputError: fewer than `FEWEST` are left for training.
    """
    shuffled = random.Random(seed).sample(sources, len(sources))
    kept_back = [source for source in shuffled if len(source.text.split(" ")) >= LEAST_WORDS][:held_out]
    measured = set(kept_back)
    learnt = [source for source in shuffled if source not in measured][:most]
    if len(learnt) < FEWEST:
        raise InputError(
            f"data: at least {FEWEST} sentences are needed for training, but of {len(sources)} different ones only "
            f"{len(learnt)} are left after {len(kept_back)} are held out"
        )
    return learnt, kept_back
