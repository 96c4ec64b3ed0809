"""Measure how well a small model follows a large one: how often both have the same most probable token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch.nn import functional as F

from redraft_train.agreement import Agreement
from redraft_train.batch import grouped
from redraft_train.recipe.calibrate import Calibration
from redraft_train.recipe.examples import Batch, Example, ExampleStream, Mixture, padded
from redraft_train.recipe.model import Decoder
from redraft_train.recipe.restart import read_model
from redraft_train.recipe.tokenizer import EOS


class GivenExamples(ExampleStream):
    """Endless batches of given examples; each round has all examples in a new order."""

    def __init__(self, examples: Sequence[Example], tokenizer: Tokenizer, tokens: int, seed: int) -> None:
        super().__init__({}, tokenizer, Mixture(0.0), tokens, seed, examples)

    def once(self) -> Iterator[Batch]:
        """Yield every example once, short ones first."""
        lengths = [len(ids) for ids, _ in self._given]
        for places in grouped(lengths, self._tokens, padded):
            yield self._batch([self._given[place] for place in places], padded(lengths[places[-1]]))

    def _endless(self) -> Iterator[Example]:
        while True:
            yield from self._random.sample(self._given, len(self._given))


def agreements(
    model: Path, answered: Sequence[Calibration], tokenizer: Tokenizer, languages: Sequence[str]
) -> dict[str, Agreement]:
    """Return the agreement of a model with the held-out outputs, by language."""
    decoder, end = read_model(model).eval(), tokenizer.token_to_id(EOS)
    found = {}
    for language in languages:
        wanted = [each for each in answered if each.held_out and each.language == language and each.output is not None]
        batches = GivenExamples([each.example(end) for each in wanted], tokenizer, 1024, seed=0).once()
        found[language] = agreement(decoder, batches)
    return found


@torch.inference_mode()
def agreement(model: Decoder, batches: Iterator[Batch]) -> Agreement:
    """Return how well ``model`` predicts the targets of all batches; zeros if there are none."""
    positions, same, loss = 0, 0, 0.0
    for batch in batches:
        hidden = model.hidden(torch.from_numpy(batch.ids))
        logits = model.logits(hidden[torch.from_numpy(batch.rows), torch.from_numpy(batch.columns)])
        targets = torch.from_numpy(batch.targets)
        positions += len(targets)
        same += int((logits.argmax(-1) == targets).sum())
        loss += float(F.cross_entropy(logits, targets, reduction="sum"))
    return Agreement(positions, same / max(1, positions), loss / max(1, positions))
