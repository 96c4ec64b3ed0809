"""Prompts with what is learnt after them as tensors, and the logits where it is learnt.

Sequences are padded on the right, so that every id has the position that it has when it is decoded live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from redraft.decoding.types import Prompt
from redraft.finetune.prefixes import Ids

#: A prompt, and the ids that are learnt (or scored) after it.
Example: TypeAlias = tuple[Prompt, Ids]


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """Several examples.

    Attributes:
        ids: (rows, length) what a decoder reads.
        seen: of the same shape; 0 for padding.
        rows, columns: (n,) where the ids are learnt that follow.
        encoder, encoder_seen: (rows, length of the sources) what an encoder reads; None for decoder-only models.
    """

    ids: Tensor
    seen: Tensor
    rows: Tensor
    columns: Tensor
    encoder: Tensor | None = None
    encoder_seen: Tensor | None = None

    @property
    def targets(self) -> Tensor:
        """(n,) the ids that are learnt, row by row."""
        return self.ids[self.rows, self.columns + 1]


def length(example: Example) -> int:
    """Ids of the longer side."""
    prompt, learnt = example
    return max(len(prompt.ids) + len(learnt), len(prompt.encoder))


def grouped(lengths: Sequence[int], most: int, rounded: Callable[[int], int] = int) -> Iterator[list[int]]:
    """Places of things of similar length, groups of at most ``most`` ids with padding; a longer one stands alone.

    Args:
        rounded: the length that a sequence of some length is padded to.
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
    """The batch of one or more examples of one model, on its device; ``pad`` is the id of padding."""
    ids, seen = padded([prompt.ids + learnt for prompt, learnt in examples], pad)
    rows = torch.tensor([row for row, (_prompt, learnt) in enumerate(examples) for _ in learnt], dtype=torch.long)
    columns = [len(prompt.ids) - 1 + place for prompt, learnt in examples for place in range(len(learnt))]
    tensors = [ids, seen, rows, torch.tensor(columns, dtype=torch.long)]
    if examples[0][0].encoder:
        tensors += padded([prompt.encoder for prompt, _learnt in examples], pad)
    return TrainingBatch(*(tensor.to(device) for tensor in tensors))


def padded(sequences: Sequence[Ids], pad: int, *, left: bool = False) -> tuple[Tensor, Tensor]:
    """Sequences as one (rows, longest) tensor, and one of the same shape with 0 for padding."""
    width = max(map(len, sequences))

    def table(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
        gaps = [[filler] * (width - len(row)) for row in rows]
        return torch.tensor([[*gap, *row] if left else [*row, *gap] for row, gap in zip(rows, gaps, strict=True)])

    return table(sequences, pad), table([[1] * len(sequence) for sequence in sequences], 0)


def logits(model: Any, batch: TrainingBatch) -> Tensor:
    """(n, vocabulary) logits of a transformers model for `TrainingBatch.targets`, in 32 bits."""
    if batch.encoder is not None:
        # As embeddings, since M2M-100 counts no position for padding among ids; live decoding does the same.
        embedded = model.get_decoder().embed_tokens(batch.ids[:, :-1])
        output = model(
            input_ids=batch.encoder,
            attention_mask=batch.encoder_seen,
            decoder_inputs_embeds=embedded,
            use_cache=False,
        )
        return output.logits[batch.rows, batch.columns].float()
    first = int(batch.columns.min()) if len(batch.columns) else 0
    wanted = torch.arange(first, batch.ids.shape[1] - 1, device=batch.ids.device)  # no logits of what all prompts share
    output = model(input_ids=batch.ids, attention_mask=batch.seen, use_cache=False, logits_to_keep=wanted)
    return output.logits[batch.rows, batch.columns - first].float()
