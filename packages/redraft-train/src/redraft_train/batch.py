"""Batches of training examples as tensors, and the logits of their targets.

Sequences are padded on the right, so that every id has the same position as in live decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from redraft.decoding.types import Prompt
from redraft_train.prefixes import Ids

#: Maximum number of ids scored together, including padding.
TOKENS = 2048

#: A prompt, and the ids to learn (or score) after it.
Example: TypeAlias = tuple[Prompt, Ids]


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """Several examples.

    Attributes:
        ids: (rows, length) decoder input.
        seen: the attention mask, of the same shape; 0 for padding.
        rows: (n,) row of each target's predecessor.
        columns: (n,) its column.
        encoder: (rows, length of the sources) encoder input; None for decoder-only models.
        encoder_seen: its attention mask.
    """

    ids: Tensor
    seen: Tensor
    rows: Tensor
    columns: Tensor
    encoder: Tensor | None = None
    encoder_seen: Tensor | None = None

    @property
    def targets(self) -> Tensor:
        """The (n,) target ids, row by row."""
        return self.ids[self.rows, self.columns + 1]


def length(example: Example) -> int:
    """Return the length of the longer of encoder and decoder input."""
    prompt, learnt = example
    return max(len(prompt.ids) + len(learnt), len(prompt.encoder))


def grouped(lengths: Sequence[int], most: int, rounded: Callable[[int], int] = int) -> Iterator[list[int]]:
    """Yield indices of sequences of similar length, in groups of at most ``most`` ids with padding.

    A longer sequence gets a group of its own.

    Args:
        lengths: lengths of the sequences.
        most: maximum ids of a group.
        rounded: returns the length to which a sequence is padded.
    """
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) + 1) * rounded(lengths[place]) > most:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def collate(examples: Sequence[Example], pad: int, device: torch.device) -> TrainingBatch:
    """Make a batch of at least one example on the model's device; ``pad`` is the padding id."""
    ids, seen = padded([prompt.ids + learnt for prompt, learnt in examples], pad)
    rows = torch.tensor([row for row, (_prompt, learnt) in enumerate(examples) for _ in learnt], dtype=torch.long)
    columns = [len(prompt.ids) - 1 + place for prompt, learnt in examples for place in range(len(learnt))]
    tensors = [ids, seen, rows, torch.tensor(columns, dtype=torch.long)]
    if examples[0][0].encoder:
        tensors += padded([prompt.encoder for prompt, _learnt in examples], pad)
    return TrainingBatch(*(tensor.to(device) for tensor in tensors))


def padded(sequences: Sequence[Ids], pad: int, *, left: bool = False) -> tuple[Tensor, Tensor]:
    """Return sequences as one (rows, longest) tensor, and the attention mask of the same shape."""
    width = max(map(len, sequences))

    def table(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
        gaps = [[filler] * (width - len(row)) for row in rows]
        return torch.tensor([[*gap, *row] if left else [*row, *gap] for row, gap in zip(rows, gaps, strict=True)])

    return table(sequences, pad), table([[1] * len(sequence) for sequence in sequences], 0)


def logits(model: Any, batch: TrainingBatch) -> Tensor:
    """Return the (n, vocabulary) logits for `TrainingBatch.targets`, in 32 bits."""
    if batch.encoder is not None:
        # Passed as embeddings, because M2M-100 assigns no position to padding ids; live decoding does the same.
        embedded = model.get_decoder().embed_tokens(batch.ids[:, :-1])
        output = model(
            input_ids=batch.encoder,
            attention_mask=batch.encoder_seen,
            decoder_inputs_embeds=embedded,
            use_cache=False,
        )
        return output.logits[batch.rows, batch.columns].float()
    first = int(batch.columns.min()) if len(batch.columns) else 0
    wanted = torch.arange(first, batch.ids.shape[1] - 1, device=batch.ids.device)  # skips logits of the shared prefix
    output = model(input_ids=batch.ids, attention_mask=batch.seen, use_cache=False, logits_to_keep=wanted)
    return output.logits[batch.rows, batch.columns - first].float()
