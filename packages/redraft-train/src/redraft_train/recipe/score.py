"""Log-probabilities of given outputs under a model of the recipe, in batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from redraft_train.batch import grouped
from redraft_train.recipe.examples import padded
from redraft_train.recipe.model import Decoder, product_type

#: Maximum ids scored together, including padding, and rows of logits, by device: they fit a CPU's cache or fill a GPU.
TOKENS = {"cpu": 4096, "cuda": 65_536}
ROWS = {"cpu": 256, "cuda": 8192}


@torch.inference_mode()
def score(model: Decoder, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], end: int) -> list[NDArray[np.float32]]:
    """For each prompt and output, return the (length,) log-probabilities of the output's tokens, without ``end``."""
    found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(pairs)
    device = model.embedding.weight.device
    for group in grouped([len(prompt) + len(output) for prompt, output in pairs], TOKENS[device.type], padded):
        length = padded(max(len(prompt) + len(output) for prompt, output in (pairs[place] for place in group)))
        ids = torch.zeros(len(group), length, dtype=torch.long)
        rows: list[int] = []
        columns: list[int] = []
        for row, place in enumerate(group):
            prompt, output = pairs[place]
            ids[row, : len(prompt) + len(output)] = torch.tensor([*prompt, *output])
            rows += [row] * len(output)
            columns += range(len(prompt) - 1, len(prompt) - 1 + len(output))
        logs = _log_probabilities(model, ids.to(device), torch.tensor(rows), torch.tensor(columns), end)
        lengths = [len(pairs[place][1]) for place in group]
        for place, part in zip(group, np.split(logs, np.cumsum(lengths)[:-1]), strict=True):
            found[place] = part
    return found


def _log_probabilities(
    model: Decoder, ids: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, end: int
) -> NDArray[np.float32]:
    lower = product_type(ids.device.type)
    with torch.autocast(ids.device.type, lower, enabled=lower != torch.float32):
        hidden = model.hidden(ids)[rows, columns]
    parts = []
    chunk = ROWS[ids.device.type]
    for start in range(0, len(hidden), chunk):
        here = slice(start, start + chunk)
        logits = model.logits(hidden[here].to(model.embedding.weight.dtype)).float()
        logits[:, end] = float("-inf")
        following = ids[rows[here], columns[here] + 1]
        parts.append(torch.log_softmax(logits, -1).gather(1, following[:, None]).squeeze(1))
    logs: NDArray[np.float32] = torch.cat(parts).cpu().numpy() if parts else np.empty(0, np.float32)
    return logs
