"""Generate outputs for many prompts at once, in torch with a key/value cache: training data from our own models.

The prompts of a batch have the same length, so all rows are at the same position and need neither padding nor masks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from recipe.model import Decoder, Layer, rotation_table

#: Keys and values of every layer, (rows, heads, capacity, head) each.
Cache: TypeAlias = list[tuple[Tensor, Tensor]]

#: Steps between two checks which outputs have ended; a GPU runs ahead in between.
LOOK = 4

#: Minimum probability of a sampled token, and the most tokens that can reach it.
FLOOR, CANDIDATES = 0.02, 50


def greedy(logits: Tensor) -> Tensor:
    """Return the most probable token of each row of ``logits`` (rows, vocabulary)."""
    return logits.float().argmax(-1)


def epsilon_sample(logits: Tensor) -> Tensor:
    """Draw a token for each row of ``logits`` (rows, vocabulary) from those with a probability of at least `FLOOR`.

    Epsilon sampling (Hewitt et al. 2022) gives the best candidates for minimum Bayes risk decoding (Freitag et al.
    2023).
    """
    probable, tokens = torch.softmax(logits.float(), -1).topk(CANDIDATES)
    probable[:, 1:] *= probable[:, 1:] >= FLOOR
    return tokens.gather(1, torch.multinomial(probable, 1)).squeeze(1)


@torch.inference_mode()
def generate(
    model: Decoder,
    prompts: Tensor,
    end: int,
    limit: int,
    spare: float = 0.0,
    choose: Callable[[Tensor], Tensor] = greedy,
) -> list[list[int] | None]:
    """Return an output for every prompt, the greedy one by default.

    Args:
        model: the model.
        prompts: (rows, length) ids.
        end: id that ends an output.
        limit: maximum length of an output, including its end.
        spare: share of outputs, 0-1, that may be left unfinished, since a few are much longer than the others.
        choose: chooses the next tokens (rows,) by their logits (rows, vocabulary): `greedy` or `epsilon_sample`.

    Returns:
        Ids without the end; None if the output did not end within the limit, or was not waited for.
    """
    written = prompts.new_full((len(prompts), limit), -1)
    device = prompts.device
    rows = torch.arange(len(prompts), device=device)
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    cache = _empty_cache(model, prompts, prompts.shape[1] + limit)
    new, past = prompts, 0
    for step in range(limit):
        tokens = choose(_advance(model, new, cache, past))
        past += new.shape[1]
        written[rows, step] = tokens
        ended |= tokens == end
        new = tokens[:, None]
        if step % LOOK != LOOK - 1:
            continue
        done = int(ended.sum())
        if len(ended) - done <= spare * len(prompts):
            break
        if 4 * done >= len(ended):  # smaller batches are faster, but shrinking one copies the cache
            going = (~ended).nonzero().squeeze(1)
            rows, new, ended = rows[going], new[going], ended[going]
            cache = [(keys[going], values[going]) for keys, values in cache]
    return [ids[: ids.index(end)] if end in ids else None for ids in written.tolist()]


def _empty_cache(model: Decoder, prompts: Tensor, capacity: int) -> Cache:
    shape = (len(prompts), model.shape.heads, capacity, model.shape.head)
    like = model.embedding.weight
    return [(like.new_empty(shape), like.new_empty(shape)) for _ in model.layers]


def _advance(model: Decoder, ids: Tensor, cache: Cache, past: int) -> Tensor:
    """Run ``ids`` (rows, new) after ``past`` cached positions.

    Return the logits (rows, vocabulary) after the last one.
    """
    x = model.embedding(ids)
    cosines, sines = rotation_table(past + ids.shape[1], model.shape.head, x.dtype, x.device)
    for layer, (keys, values) in zip(model.layers, cache, strict=True):
        x = _through_layer(layer, x, (cosines[past:], sines[past:]), keys, values, past)
    return model.logits(model.norm(x[:, -1]))


def _through_layer(
    layer: Layer, x: Tensor, rotation: tuple[Tensor, Tensor], keys: Tensor, values: Tensor, past: int
) -> Tensor:
    """Run a layer with the keys and values of ``past`` earlier positions, and add the new ones to them."""
    new = x.shape[1]
    query, key, value = (each.transpose(1, 2) for each in layer.project(x, rotation))
    seen = slice(0, past + new)
    keys[:, :, past : past + new], values[:, :, past : past + new] = key, value
    mask = None if new == 1 else torch.ones(new, past + new, dtype=torch.bool, device=x.device).tril(past)
    mixed = F.scaled_dot_product_attention(query, keys[:, :, seen], values[:, :, seen], mask)
    return layer.combine(x, mixed.transpose(1, 2))
