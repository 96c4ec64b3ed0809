"""Prefix pairs whose targets end where the source that has been heard ends to support them.

A cut in proportion (`redraft.train.examples.cut_in_proportion`) asks a model to guess words that it has not heard, or
to hold back words that it could say.  Here the cut follows the alignment of the two sentences as the model itself
knows it: the translation of the whole sentence is scored after the beginning of the source, token by token, and ends
before the first token of which the beginning says much less than the whole does:

    log p(y_t | whole source, y_<t) - log p(y_t | its beginning, y_<t) > tolerance

The end token is left out of both distributions, since a model that knows prefix pairs ends where it has been taught
to.  So all targets of one sentence are beginnings of one translation, and a growing source takes nothing back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from redraft.train.examples import SPACED, padded
from redraft.train.model import Decoder

#: (prompt ids, output ids without the end)
Pair: TypeAlias = tuple[Sequence[int], Sequence[int]]

#: In nats, by target language.  More lets more be guessed: a shorter lag and more that is taken back.  Into Japanese,
#: whose verb comes last, hardly a sentence could begin at the tolerance of the others.
TOLERANCES = {"de": 1.0, "zh": 1.0, "ja": 2.5}
#: Ids that are scored together, padding included.
TOKENS = 4096


def supported(whole: NDArray[np.float32], beginning: NDArray[np.float32], tolerance: float) -> int:
    """How many tokens of an output the beginning of its source supports.

    Args:
        whole, beginning: (length,) log-probabilities of the output's tokens after either source, from `score`.
        tolerance: in nats, 0 or more.
    """
    missing = np.flatnonzero(whole - beginning > tolerance)
    return int(missing[0]) if len(missing) else len(whole)


def at_word_end(output: Sequence[int], length: int, language: str, tokenizer: Tokenizer) -> int:
    """The most tokens, at most ``length``, that end a word of ``language``, or a character where it has no spaces."""
    if length >= len(output):
        return len(output)
    for kept in range(length, 0, -1):
        text = tokenizer.decode(output[:kept])
        following = tokenizer.decode(output[: kept + 1])
        if not text.endswith("\N{REPLACEMENT CHARACTER}") and (
            language not in SPACED or not following[len(text) : len(text) + 1].isalnum()
        ):
            return kept
    return 0


@torch.inference_mode()
def score(model: Decoder, pairs: Sequence[Pair], end: int) -> list[NDArray[np.float32]]:
    """For every pair, the (length,) log-probabilities of the output's tokens, the end token ruled out."""
    found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(pairs)
    for group in _groups(pairs):
        length = padded(max(len(prompt) + len(output) for prompt, output in (pairs[place] for place in group)))
        ids = torch.zeros(len(group), length, dtype=torch.long)
        rows: list[int] = []
        columns: list[int] = []
        for row, place in enumerate(group):
            prompt, output = pairs[place]
            ids[row, : len(prompt) + len(output)] = torch.tensor([*prompt, *output])
            rows += [row] * len(output)
            columns += range(len(prompt) - 1, len(prompt) - 1 + len(output))
        logs = _log_probabilities(model, ids, torch.tensor(rows), torch.tensor(columns), end)
        lengths = [len(pairs[place][1]) for place in group]
        for place, part in zip(group, np.split(logs, np.cumsum(lengths)[:-1]), strict=True):
            found[place] = part
    return found


def _groups(pairs: Sequence[Pair]) -> Iterator[list[int]]:
    """Places of pairs of similar length, `TOKENS` ids together."""
    lengths = [padded(len(prompt) + len(output)) for prompt, output in pairs]
    group: list[int] = []
    for place in sorted(range(len(pairs)), key=lengths.__getitem__):
        if group and (len(group) + 1) * lengths[place] > TOKENS:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _log_probabilities(
    model: Decoder, ids: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, end: int
) -> NDArray[np.float32]:
    with torch.autocast(ids.device.type, torch.bfloat16):
        hidden = model.hidden(ids)[rows, columns]
    parts = []
    for start in range(0, len(hidden), 256):  # logits of more rows leave the processor's cache
        here = slice(start, start + 256)
        logits = model.logits(hidden[here].float())
        logits[:, end] = float("-inf")
        following = ids[rows[here], columns[here] + 1]
        parts.append(torch.log_softmax(logits, -1).gather(1, following[:, None]).squeeze(1))
    logs: NDArray[np.float32] = torch.cat(parts).numpy() if parts else np.empty(0, np.float32)
    return logs
