"""Trees with rows for leaves only: branches of the last tree are not computed again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from redraft.backends.options import LlamaOptions
from redraft.decoding.decode import decode
from redraft.decoding.drafters import Tree
from redraft.decoding.drive import run
from redraft.decoding.methods.beam import Beam
from redraft.decoding.types import Context, Draft, Output, Prompt, Provenance, Score, top_k
from tests.backends.test_llamacpp import IDS, Ids, Watched
from tests.gguf_models import write_llama

BRANCHES = 6


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    path = write_llama(tmp_path_factory.mktemp("models") / "f32.gguf")
    found = Watched(path, LlamaOptions(context_length=256, slots=3, branches=BRANCHES, threads=1, gpu_layers=0))
    yield found
    found.close()


def tree_of(paths: Sequence[Ids]) -> Draft:
    tree = Tree(99)
    for path in paths:
        tree.add_path(-1, ((token, Provenance.MODEL) for token in path))
    return tree.draft(leaves_only=True)


def leaves(draft: Draft) -> list[int]:
    return sorted(set(range(len(draft))) - set(draft.parents))


class Stream:
    """A slot with hypotheses that are extended, dropped and accepted at random."""

    def __init__(self, backend: Watched, seed: int) -> None:
        self.backend, self.slot, self.random = backend, backend.open_slot(), random.Random(seed)
        self.prefix: Ids = IDS[:5]
        self.paths: list[Ids] = [()]

    def next(self) -> Score:
        """Extend some hypotheses, drop others, and accept what all have in common, or go on elsewhere."""
        draw = self.random
        kept = [path for path in self.paths if draw.random() < 0.7] or self.paths[:1]
        grown = {(*path, draw.choice(IDS)) for path in kept for _ in range(draw.randint(1, 2))}
        self.paths = sorted(grown)[: 1 + BRANCHES // 2]
        if draw.random() < 0.2:
            self.prefix, self.paths = (*self.prefix[: draw.randint(1, 5)], draw.choice(IDS)), [(1,), (2,)]
        if len(self.paths) == 1:
            self.prefix, self.paths = self.prefix + self.paths[0], [(draw.choice(IDS),), (3, 4)]
        return Score(self.prefix, tree_of(self.paths))


def same_as_alone(backend: Watched, score: Score, found: dict[int, list[tuple[int, float]]]) -> None:
    fresh = backend.open_slot()
    for node, best in found.items():
        path = tuple(score.draft.tokens[each] for each in score.draft.path(node))
        (rows,) = backend.score([(fresh, Score(score.prefix + path))])
        # But for the rounding of a 16-bit cache.
        assert dict(best) == pytest.approx({token: rows.logprob(-1, token) for token, _ in best}, abs=0.05)
    backend.close_slot(fresh)


@pytest.mark.parametrize("seed", range(8))
def test_rows_of_leaves(backend: Watched, seed: int) -> None:
    streams = [Stream(backend, seed), Stream(backend, seed + 100)]
    for step in range(12):
        # Both slots share the branches: a tree of one may push out those of the other.
        asked = [(each.slot, each.next()) for each in (streams if step % 3 else streams[step % 2 :][:1])]
        answers = backend.score(asked)
        found = [
            {node: top_k(rows, node, 3) for node in leaves(score.draft)}
            for (_, score), rows in zip(asked, answers, strict=True)
        ]
        for (_, score), rows in zip(asked, found, strict=True):
            same_as_alone(backend, score, rows)
    for each in streams:
        backend.close_slot(each.slot)
    assert len(backend._places[0].spare) == BRANCHES


def beam(backend: Watched, prompt: Ids) -> tuple[Output, int]:
    slot, search = backend.open_slot(), Beam(4, backend.end_tokens)
    del backend.feeds[:]
    output = run(decode(Prompt(prompt), search, search, end_tokens=backend.end_tokens, limit=24), backend, slot)
    backend.close_slot(slot)
    return output, sum(backend.fed)


def test_beam(backend: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same outputs as with every node computed in every pass, at the cost of a token a hypothesis."""
    found = [beam(backend, IDS[at : at + 6]) for at in range(0, 60, 6)]
    propose = Beam.propose

    def whole(self: Beam, context: Context) -> Draft:
        return replace(propose(self, context), leaves_only=False)

    monkeypatch.setattr(Beam, "propose", whole)
    expected = [beam(backend, IDS[at : at + 6]) for at in range(0, 60, 6)]
    assert [output for output, _ in found] == [output for output, _ in expected]
    passes = sum(output.passes for output, _ in found)
    assert sum(fed for _, fed in found) <= 6 * len(found) + 5 * passes < sum(fed for _, fed in expected)
