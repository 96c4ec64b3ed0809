"""Generate outputs for many prompts at once, in torch with a key/value cache: training data from our own models.

Shorter prompts are padded on the left, so all rows are at the same position; rotary positions are relative, so this
changes nothing.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from redraft_train.recipe.model import Decoder, Layer, rotation_table

#: Keys and values of every layer, (rows, heads, capacity, head) each.
Cache: TypeAlias = list[tuple[Tensor, Tensor]]

#: Steps between two checks which outputs have ended; a GPU runs ahead in between.
LOOK = 4

#: Minimum probability of a sampled token, and the most tokens that can reach it.
FLOOR, CANDIDATES = 0.02, 50


def greedy(logits: Tensor) -> Tensor:
    """Return the most probable token of each row of ``logits`` (rows, vocabulary)."""
    return logits.float().argmax(-1)


def choose(logits: Tensor, rows: Tensor, count: int) -> Tensor:
    """Return the next tokens (rows,) of the prompts in these places: greedy below ``count``, sampled from there on."""
    return torch.where(rows < count, greedy(logits), epsilon_sample(logits))


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
    sampled_from: int | None = None,
    padding: Tensor | None = None,
) -> list[list[int] | None]:
    """Return an output for every prompt, the greedy one by default.

    Args:
        model: the model.
        prompts: (rows, length) ids.
        end: id that ends an output.
        limit: maximum length of an output, including its end.
        spare: share of outputs, 0-1, that may be left unfinished, since a few are much longer than the others.
        sampled_from: place of the first prompt whose output is sampled, as those after it are; None for none.
        padding: (rows,) number of ids on the left of each prompt that do not count; None for none.

    Returns:
        Ids without the end; None if the output did not end within the limit, or was not waited for.
    """
    written = prompts.new_full((len(prompts), limit), -1)
    device = prompts.device
    rows = torch.arange(len(prompts), device=device)
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    capacity = prompts.shape[1] + limit
    cache = _empty_cache(model, prompts, capacity)
    valid = None if padding is None else torch.arange(capacity, device=device) >= padding[:, None]
    new, past = prompts, 0
    for step in range(limit):
        logits = _advance(model, new, cache, past, valid)
        tokens = greedy(logits) if sampled_from is None else choose(logits, rows, sampled_from)
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
            valid = None if valid is None else valid[going]
            for place, (keys, values) in enumerate(cache):  # one after the other, to save memory
                cache[place] = keys[going], values[going]
    return [ids[: ids.index(end)] if end in ids else None for ids in written.tolist()]


def _empty_cache(model: Decoder, prompts: Tensor, capacity: int) -> Cache:
    shape = (len(prompts), model.shape.heads, capacity, model.shape.head)
    like = model.embedding.weight
    return [(like.new_empty(shape), like.new_empty(shape)) for _ in model.layers]


def _advance(model: Decoder, ids: Tensor, cache: Cache, past: int, valid: Tensor | None) -> Tensor:
    """Run ``ids`` (rows, new) after ``past`` cached positions.

    Return the logits (rows, vocabulary) after the last one.  Positions that are not ``valid`` (rows, capacity) are not
    attended to.
    """
    x = model.embedding(ids)
    mask = _mask(past, ids.shape[1], valid, ids.device)
    cosines, sines = rotation_table(past + ids.shape[1], model.shape.head, x.dtype, x.device)
    for layer, (keys, values) in zip(model.layers, cache, strict=True):
        x = _through_layer(layer, x, (cosines[past:], sines[past:]), keys, values, past, mask)
    return model.logits(model.norm(x[:, -1]))


def _mask(past: int, new: int, valid: Tensor | None, device: torch.device) -> Tensor | None:
    """Return what the ``new`` positions attend to, as `_advance` describes it; None for everything."""
    if new == 1:
        return None if valid is None else valid[:, None, None, : past + 1]
    causal = torch.ones(new, past + new, dtype=torch.bool, device=device).tril(past)
    if valid is None:
        return causal
    itself = torch.eye(new, past + new, dtype=torch.bool, device=device).roll(past, 1)
    # Padding attends to itself, since attention to nothing is not a number.
    return causal & (valid[:, None, None, : past + new] | itself)


def _through_layer(
    layer: Layer,
    x: Tensor,
    rotation: tuple[Tensor, Tensor],
    keys: Tensor,
    values: Tensor,
    past: int,
    mask: Tensor | None,
) -> Tensor:
    """Run a layer with the keys and values of ``past`` earlier positions, and add the new ones to them."""
    new = x.shape[1]
    query, key, value = (each.transpose(1, 2) for each in layer.project(x, rotation))
    seen = slice(0, past + new)
    keys[:, :, past : past + new], values[:, :, past : past + new] = key, value
    mixed = F.scaled_dot_product_attention(query, keys[:, :, seen], values[:, :, seen], mask)
    return layer.combine(x, mixed.transpose(1, 2))
