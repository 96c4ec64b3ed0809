"""Looks for rows of exact backends that depend on anything but their prefix.

``python -m tests.backends.exactness FORMAT FOLDER [FAMILY ...]`` plays random scripts of requests on random models
with the heads of every family, in one slot and in two, with chains and with trees, and compares every row bit for bit
with that of a slot that has read the same ids alone and in one go. Half of the scripts pad their passes. In a process
of its own, since llama.cpp chooses its kernels once a process.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.numpy_rows import NumpyRows
from redraft.backends.options import LlamaOptions
from redraft.decoding.backend import Capability
from redraft.decoding.drafters import Tree
from redraft.decoding.types import EMPTY_DRAFT, ROOT, Draft, Provenance, Score
from redraft_bench.quantise import quantise
from tests.gguf_models import CONTROL, FAMILIES, VOCABULARY, write_family

Ids = tuple[int, ...]
#: Requests of a script, and the most ids of a prefix.
REQUESTS, LONGEST = 4, 45
BRANCHES = 3


def some(choose: random.Random, most: int, least: int = 1) -> Ids:
    """At least ``least`` and at most ``most`` ordinary ids."""
    return tuple(choose.choices(range(len(CONTROL), VOCABULARY), k=choose.randint(least, most)))


def draft_of(choose: random.Random, trees: bool) -> Draft:
    """No draft, a chain, or a tree of which any path may be the longest."""
    kind = choose.random()
    if kind < 0.3:
        return EMPTY_DRAFT
    if kind < 0.5 or not trees:
        return Draft.chain(some(choose, 20), Provenance.MODEL)
    tree = Tree(BRANCHES + 1, 24)
    parents = [ROOT]
    for _ in range(BRANCHES + 1):
        parents += tree.add_path(choose.choice(parents), [(token, Provenance.MODEL) for token in some(choose, 6)])
    return tree.draft()


def path_of(draft: Draft, node: int) -> Ids:
    """The tokens from the root to a node."""
    found: Ids = ()
    while node != ROOT:
        found, node = (draft.tokens[node], *found), draft.parents[node]
    return found


def next_prefix(choose: random.Random, prefix: Ids, draft: Draft) -> Ids:
    """What is asked after a request: some path of its draft goes on, or the source has grown, shrunk or changed."""
    if len(draft) and choose.random() < 0.7:
        prefix += path_of(draft, choose.randrange(len(draft)))
    elif choose.random() < 0.5:
        prefix = prefix[: choose.randint(1, len(prefix))]
    return (prefix + some(choose, 3))[-LONGEST:] if len(prefix) < LONGEST else some(choose, 30, 2)


class Reference:
    """Rows of prefixes, each read by a slot that holds nothing else."""

    def __init__(self, path: Path) -> None:
        self.backend = LlamaCpp(path, LlamaOptions(context_length=256, threads=1, exact=True))
        self._known: dict[Ids, bytes] = {}

    def row(self, prefix: Ids) -> bytes:
        if prefix not in self._known:
            slot = self.backend.open_slot()
            (rows,) = self.backend.score([(slot, Score(prefix))])
            self._known[prefix] = bits(rows, ROOT)
            self.backend.close_slot(slot)
        return self._known[prefix]


def bits(rows: object, node: int) -> bytes:
    """The logits of a row as they are in memory."""
    assert isinstance(rows, NumpyRows)
    row = rows.row(node)
    assert np.isfinite(row).all()
    return bytes(row.tobytes())


def play(backend: LlamaCpp, reference: Reference, seed: int) -> Iterator[bool]:
    """Whether each row of a script of requests is that of the reference."""
    choose = random.Random(seed)
    slots = [backend.open_slot() for _ in range(backend.options.slots)]
    prefixes = {slot: some(choose, 30, 2) for slot in slots}
    for _ in range(REQUESTS):
        chosen = choose.sample(slots, choose.randint(1, len(slots)))
        drafts = [draft_of(choose, Capability.TREES in backend.capabilities) for _ in chosen]
        if sum(not draft.is_chain for draft in drafts) > 1:
            drafts[0] = EMPTY_DRAFT
        requests = []
        for slot, draft in zip(chosen, drafts, strict=True):
            rows = 1 if choose.random() < 0.8 else choose.randint(1, len(prefixes[slot]))
            requests.append((slot, Score(prefixes[slot], draft, rows)))
        answers = backend.score(requests)
        for rows_, (slot, score) in zip(answers, requests, strict=True):
            for node in range(-score.prompt_rows, ROOT):
                yield bits(rows_, node) == reference.row(score.prefix[: len(score.prefix) + 1 + node])
            for node in range(ROOT, len(score.draft)):
                yield bits(rows_, node) == reference.row(score.prefix + path_of(score.draft, node))
            prefixes[slot] = next_prefix(choose, score.prefix, score.draft)
    for slot in slots:
        backend.close_slot(slot)


def main(format: str, folder: Path, families: Sequence[str]) -> int:
    """Print how many rows differ, for every family and kind of backend; how many do in all."""
    wrong = 0
    for family in families or FAMILIES:
        path, source = folder / "model.gguf", write_family(folder / "drawn.gguf", FAMILIES[family])
        quantise(source, path, format)
        reference = Reference(path)
        with closing(reference.backend):
            for slots in (1, 2):
                for branches in (0, BRANCHES):
                    options = LlamaOptions(context_length=256, slots=slots, branches=branches, threads=1, exact=True)
                    with closing(LlamaCpp(path, options)) as backend:
                        same = list(play(backend, reference, seed=slots + branches))
                    wrong += same.count(False)
                    print(f"{format} {family}, {slots} slots, {branches} branches: {same.count(False)} of {len(same)}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]) > 0)
