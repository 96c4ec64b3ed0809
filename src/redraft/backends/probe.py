"""Try whether a model with recurrent layers goes back to an earlier token; run by `redraft.backends.going_back`.

    python -m redraft.backends.probe FILE GPU_LAYERS

It plays a few updates, which grow, shrink and reject drafts in two slots, and compares all rows with those of slots
that have read the same ids and nothing else, alone in a pass: of some models, llama.cpp also mixes up the states of
several slots that share one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import cast

from redraft.backends.going_back import GoesBack
from redraft.backends.llama_anchors import DISTANCE
from redraft.backends.llama_model import LlamaModel
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.numpy_rows import Matrix, NumpyRows
from redraft.backends.options import LlamaOptions
from redraft.decoding.types import Draft, Provenance, Score

_SLOTS = 2


def difference(path: Path, way: GoesBack, gpu_layers: int = 0) -> float:
    """Return how far rows after going back are from those of a fresh slot alone, in standard deviations of logits.

    Of the rows of a request the worst counts; of the requests, the middle one, since rounding may send a token to other
    experts.

    Raises:
        CapabilityError: llama.cpp itself says that the model does not go back in this way.
    """
    options = LlamaOptions(context_length=256, slots=2 * _SLOTS, gpu_layers=gpu_layers)
    with (
        closing(LlamaModel(path, options, way)) as model,
        closing(LlamaCpp(path, options, model)) as backend,
    ):
        slots = [backend.open_slot() for _ in range(_SLOTS)]
        apart = []
        for scores in _script(backend.vocabulary_size):
            found = _logits(backend, list(zip(slots, scores, strict=True)))
            for rows, score in zip(found, scores, strict=True):
                fresh = backend.open_slot()
                (others,) = _logits(backend, [(fresh, score)])
                backend.close_slot(fresh)
                apart.append(max(float(abs(a - b).max() / b.std()) for a, b in zip(rows, others, strict=True)))
        return median(apart)


def _script(vocabulary: int) -> Iterator[list[Score]]:
    """Yield requests for all slots: drafts and their rejections, while the sources grow, shrink and change."""

    def some(start: int, count: int) -> tuple[int, ...]:
        return tuple([37 * (start + place + 1) % vocabulary for place in range(count)])

    def score(prefix: tuple[int, ...], draft: tuple[int, ...]) -> Score:
        return Score(prefix, Draft.chain(draft, Provenance.PREVIOUS))

    after, drafted, other = some(60, 2 * DISTANCE), some(80, 5), some(90, 3)
    for source in (some(0, 12), some(0, 24), some(0, 9) + some(30, 6)):
        prompts = [(slot, *source, *after) for slot in range(_SLOTS)]
        yield [score(prompt, drafted) for prompt in prompts]
        yield [score(prompt + drafted[: 1 + slot] + other[:1], other[:slot]) for slot, prompt in enumerate(prompts)]


def _logits(backend: LlamaCpp, requests: Sequence[tuple[int, Score]]) -> list[list[Matrix]]:
    """Return copies of the rows of requests, which are lost at the next pass."""
    answers = zip(cast(list[NumpyRows], backend.score(requests)), requests, strict=True)
    return [[rows.row(node).copy() for node in range(-1, len(score.draft))] for rows, (_, score) in answers]


if __name__ == "__main__":
    print(difference(Path(sys.argv[1]), GoesBack.ANCHORS, int(sys.argv[2])), flush=True)
