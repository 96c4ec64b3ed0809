"""Beam search in the loop: never less probable than greedy decoding, and equal to a search without trees."""

from __future__ import annotations

import math

import pytest

from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.ends import LineBreaks
from redraft.decoding.method import Setup
from redraft.decoding.methods import get_method
from redraft.decoding.methods.beam import Beam
from redraft.decoding.methods.ssbd import Biased
from redraft.decoding.types import ROOT, Prompt, Score, common_prefix, top_k
from redraft.errors import OptionError
from tests.fakes import RandomModel

Ids = tuple[int, ...]
LIMIT = 12


def row(model: RandomModel, ids: Ids) -> list[tuple[int, float]]:
    (rows,) = model.score([(0, Score(ids))])
    return top_k(rows, ROOT, model.vocabulary_size)


def biased(model: RandomModel, best: list[tuple[int, float]], drafted: int, beta: float) -> list[tuple[int, float]]:
    """SSBD v2, equation 3, except where the model would end the output."""
    if best[0][0] in model.end_tokens:
        return best
    mixed = [(token, (1 - beta) * math.exp(log) + beta * (token == drafted)) for token, log in best]
    return sorted([(token, math.log(p)) for token, p in mixed if p > 0], key=lambda each: -each[1])


def reference(model: RandomModel, prompt: Ids, width: int, previous: Ids = (), beta: float = 0.0) -> Ids:
    """The search as it is in books, a pass per hypothesis."""
    live: list[tuple[Ids, float]] = [((), 0.0)]
    done: tuple[Ids, float] | None = None
    for _ in range(LIMIT):
        found = []
        for ids, total in live:
            best = row(model, prompt + ids)
            if ids == previous[: len(ids)] and len(ids) < len(previous):
                best = biased(model, best, previous[len(ids)], beta)
            found += [((*ids, token), total + log) for token, log in best[: 2 * width]]
        found.sort(key=lambda each: -each[1])
        for ids, total in found[:width]:
            if ids[-1] in model.end_tokens and (done is None or total / len(ids) > done[1]):
                done = ids[:-1], total / len(ids)
        live = [each for each in found if each[0][-1] not in model.end_tokens][:width]
        if done and all(total / len(ids) <= done[1] for ids, total in live):
            return done[0]
    return max(live, key=lambda each: each[1] / len(each[0]))[0]


@pytest.mark.parametrize(("seed", "end_bias", "outputs"), [(0, 0.0, 5), (0, 2.0, 2), (9, 1.0, 3)])
@pytest.mark.parametrize("width", [2, 3, 5])
def test_beam(width: int, seed: int, end_bias: float, outputs: int) -> None:
    model = RandomModel(seed, end_bias=end_bias)
    model.open_slot()
    found = set()
    for first in range(1, 9):
        prompt = (first, 2, 3)
        beam = Beam(width, model.end_tokens)
        output = run(decode(Prompt(prompt), beam, beam, end_tokens=model.end_tokens, limit=LIMIT), model, 0)
        assert output.tokens == reference(model, prompt, width)
        assert output.passes <= LIMIT
        found.add(output.tokens)
    assert len(found) >= outputs


@pytest.mark.parametrize("beta", [0.0, 0.2, 0.6, 1.0])
def test_bias(beta: float) -> None:
    """Like the search in books with the biased target; a stronger bias changes less of the previous output."""
    kept = 0
    for seed in range(12):
        model, prompt = RandomModel(seed, end_bias=-1.5), (1, 2, 3)
        model.open_slot()
        previous = reference(RandomModel(seed + 100, end_bias=-1.5), prompt, 2)
        width = 3 - seed % 2
        beam = Beam(width, model.end_tokens, towards=Biased(beta))
        asking = decode(
            Prompt(prompt), beam, beam, previous=previous, shown=len(previous), end_tokens=model.end_tokens, limit=LIMIT
        )
        output = run(asking, model, 0).tokens
        assert output == reference(model, prompt, width, previous, beta)
        kept += common_prefix(output, previous)
    assert (kept > 90) == (beta > 0.5)


def test_line_breaks() -> None:
    """A break ends a hypothesis with text before it; one at the beginning, which many models write, does not."""
    model = RandomModel()
    model.open_slot()
    breaks = LineBreaks(before=frozenset({4, 5, 6, 7, 8}), blank=frozenset({4, 5, 6, 7, 8}))
    begun = 0
    for first in range(1, 12):
        beam = Beam(3, model.end_tokens, breaks.ends)
        asking = decode(
            Prompt((first, 2, 3)), beam, beam, end_tokens=model.end_tokens, line_end=breaks.end, limit=LIMIT
        )
        tokens = run(asking, model, 0).tokens
        assert breaks.end(tokens) is None and tokens[:1] * LIMIT != tokens
        begun += tokens[:1] != () and tokens[0] in breaks.before
    assert begun


@pytest.mark.parametrize("width", [2, 4])
def test_likelihood(width: int) -> None:
    """That of the output without the bias, end included, as the model gives it in one pass."""
    finished = 0
    for seed in range(20):
        model, prompt = RandomModel(seed, end_bias=0.5), (1, 2, 3)
        model.open_slot()
        beam = Beam(width, model.end_tokens, towards=Biased(0.4))
        output = run(
            decode(Prompt(prompt), beam, beam, previous=(4, 5), shown=1, end_tokens=model.end_tokens, limit=LIMIT),
            model,
            0,
        )
        found = beam.of(len(output.tokens), finished=output.finished)
        assert (found is not None) == output.finished
        if found is None:
            continue
        finished += 1
        ids = prompt + output.tokens
        total = 0.0
        for place, token in enumerate((*output.tokens, *model.end_tokens)):
            total += dict(row(model, ids[: len(prompt) + place]))[token]
        assert found.mean == pytest.approx(total / (len(output.tokens) + 1))
    assert finished > 10


def test_method() -> None:
    """`beam` searches from scratch, whatever was translated before."""
    model = RandomModel(9, end_bias=1.0)
    model.open_slot()
    method = get_method("beam")
    drafter, rule = method.build(Setup(method.check({"width": 3}), model.end_tokens))
    asking = decode(
        Prompt((1, 2, 3)), drafter, rule, previous=(7, 8, 9), shown=3, end_tokens=model.end_tokens, limit=LIMIT
    )
    assert run(asking, model, 0).tokens == reference(model, (1, 2, 3), 3)
    with pytest.raises(OptionError, match="width must be a whole number from 2 to 16, not 1"):
        method.check({"width": 1})
