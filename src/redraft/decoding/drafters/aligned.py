"""AASD's drafter: n-grams of prompt and output, merged into a tree and extended by alignment sampling.

Wang et al., Alignment-Augmented Speculative Decoding: sections 3.1 and 3.2, equation 2, Figure 2, Algorithm 1.

The prefill computes a row for every position of the prompt.  If a retrieved token is not the most probable one of the
row before it (*misaligned*), tokens that rank above it are drafted as its siblings, at most ``width`` of them.

Choices that the paper leaves open:

* The n-gram continues below the siblings too: a sibling is a substitution, and the text after it may be the same.
* Leaves and nodes are limited.  N-grams come first, earlier occurrences before later ones; then siblings, shallow ones
  before deep ones, since a deep one is useful only if everything above it is accepted.
* The prompt's rows arrive with the first pass, so the first draft is extended only at positions in the prefix that the
  prompt shares with the previous one.  If another drafter makes the first draft, the prompt would have to be computed
  again, so no draft is extended.
* Tokens from generated text are not extended: except for those that a lenient rule accepted, they are the most probable
  of their rows.
"""

from __future__ import annotations

from redraft.decoding.drafters.lookup import Pool
from redraft.decoding.drafters.tree import Tree
from redraft.decoding.types import (
    EMPTY_DRAFT,
    ROOT,
    Asking,
    Context,
    Draft,
    Drafter,
    Provenance,
    Rows,
    Verdict,
    common_prefix,
)

#: Maximum leaves of a tree; more would need more branches of the cache than a backend has by default.
MOST_LEAVES = 16
#: Maximum nodes of a tree; every node costs time, accepted or not.
MOST_NODES = 64


class PromptRows:
    """The most probable tokens at each position of the last prompt after the first; kept for the whole stream.

    A row depends only on the ids up to it, so the rows of a shared prefix are valid for the next prompt too.
    """

    def __init__(self) -> None:
        self._prompt: tuple[int, ...] = ()
        self._best: list[list[int]] = []

    def begin(self, prompt: tuple[int, ...]) -> int:
        """Start a prompt; return how many rows are missing at its end."""
        del self._best[common_prefix(self._prompt, prompt) :]
        self._prompt = prompt
        return len(prompt) - len(self._best)

    def learn(self, best: list[int]) -> None:
        """Record the most probable tokens, best first, for the first position without any."""
        self._best.append(best)

    def at(self, place: int) -> list[int]:
        """Return the most probable tokens for a position, at least 1; empty if unknown."""
        return self._best[place - 1] if place <= len(self._best) else []


class Aligned(Drafter):
    """Proposes a tree of all n-grams that follow occurrences of the longest key found.

    Args:
        key_length: maximum length of a key, at least 1; ``l`` = 6 in the paper.
        ngram: maximum length of an n-gram, at least 1; ``n`` = 6 in the paper.
        width: maximum number of siblings of a token by alignment sampling; 2 in the paper, 0 for none.
        end_tokens: ids that end an output; they are not drafted.
        leaves: maximum leaves of a tree.
        nodes: maximum nodes of a tree.
        rows: the stream's prompt rows.
    """

    def __init__(
        self,
        key_length: int = 6,
        ngram: int = 6,
        width: int = 2,
        end_tokens: frozenset[int] = frozenset(),
        leaves: int = MOST_LEAVES,
        nodes: int = MOST_NODES,
        rows: PromptRows | None = None,
    ) -> None:
        self._pool = Pool(key_length, end_tokens)
        self._ngram, self._width, self._end_tokens = ngram, width, end_tokens
        self._leaves, self._nodes = leaves, nodes
        self._rows_awaited = 0
        self._rows = rows or PromptRows()

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the tree; for the first pass, also request the missing rows of the prompt."""
        yield from ()
        self._pool.read(context)
        if context.room < 1:
            return EMPTY_DRAFT
        if self._width and not context.output:
            self._rows_awaited = self._rows.begin(context.prompt)
        tree = self._tree()
        return tree.draft(tree.marks, max(1, self._rows_awaited))

    def _tree(self) -> Tree[Provenance]:
        # A token taken both from the prompt and from generated text counts as the prompt's.
        tree, length = Tree(self._leaves, self._nodes, Provenance.PROMPT), self._ngram
        places = self._pool.find()[: self._leaves]
        paths = [tree.add_path(ROOT, self._pool.ngram(place, length)) for place in places]
        for depth in range(length):
            for place, path in zip(places, paths, strict=True):
                if depth < len(path):
                    rest = self._pool.ngram(place + depth + 1, length - depth - 1)
                    for token in self._above(place + depth):
                        tree.add_path(path[depth - 1] if depth else ROOT, [(token, Provenance.PROMPT), *rest])
        return tree

    def _above(self, place: int) -> list[int]:
        """Return the tokens that rank above the one at ``place``."""
        best, token = self._rows.at(place), self._pool.text[place]
        above = best[: best.index(token)] if token in best else best
        return [each for each in above if each not in self._end_tokens]

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Record the most probable tokens for every position of the prompt after the first."""
        for node in range(-self._rows_awaited, ROOT):
            self._rows.learn(rows.best(node, self._width))
        self._rows_awaited = 0
