"""AASD's drafter: n-grams of prompt and output, merged into one tree and widened by alignment sampling.

Wang et al., Alignment-Augmented Speculative Decoding: sections 3.1 and 3.2, equation 2, Figure 2, Algorithm 1.

The prefill has computed a row for every position of the prompt.  Where a retrieved token is not the best one of the row
before it (*misaligned*), the tokens that rank above it are drafted as its siblings, at most ``width`` of them.

What the paper leaves open, and what is done here:

* The n-gram goes on below the siblings as well: a sibling is a substitution, after which the text may well be the same.
* Caps on leaves and nodes.  N-grams come first, earlier occurrences before later ones; then siblings, shallow before
  deep ones, since a deep one is of use only where everything above it is accepted.
* The rows of the prompt come with the first pass, so its draft is widened only where a place belongs to the beginning
  that the prompt shares with the last one.  Where another drafter makes the first draft, the prompt would have to be
  computed again, so no draft is widened.
* Tokens from generated text are not widened: they are the best of their rows, but for those that a lenient rule kept.
"""

from __future__ import annotations

from redraft.decoding.draft.pool import Pool
from redraft.decoding.draft.tree import Tree
from redraft.decoding.types import EMPTY_DRAFT, ROOT, Asking, Context, Draft, Provenance, Rows, Verdict, common_prefix

#: A tree of more leaves needs more branches of the cache than a backend is opened with.
MOST_LEAVES = 16
#: Each token of a tree costs time, used or not.
MOST_NODES = 64


class PromptRows:
    """The best tokens for the places of the last prompt; lasts as long as a stream.

    A row depends on the ids up to it only, so what the beginning of a prompt has said holds for the next one too.
    """

    def __init__(self) -> None:
        self._prompt: tuple[int, ...] = ()
        self._best: dict[int, list[int]] = {}

    def begin(self, prompt: tuple[int, ...]) -> int:
        """How many rows are missing, counted from the end of a prompt, that of its last id included."""
        known = min(common_prefix(self._prompt, prompt), max(0, len(self._prompt) - 1))
        self._prompt = prompt
        self._best = {place: best for place, best in self._best.items() if place <= known}
        known = max(self._best, default=0)  # of an update that was cut off there may be fewer
        return max(1, len(prompt) - known)

    def learn(self, place: int, best: list[int]) -> None:
        """The best tokens for a place of the prompt; places from the first missing one on come in their order."""
        self._best[place] = best

    def at(self, place: int) -> list[int]:
        """The best tokens for a place, best first; none where they are not known."""
        return self._best.get(place, [])


class Aligned:
    """Proposes a tree of all n-grams that followed the longest key that is found.

    Args:
        key_length: the longest key, at least 1; the paper's ``l`` is 6.
        ngram: the most tokens of an n-gram, at least 1; the paper's ``n`` is 6.
        width: the most siblings of a token by alignment sampling; the paper's are 2, and 0 is none.
        end_tokens: ids that end an output; they are not drafted.
        leaves: maximum leaves of a tree.
        nodes: maximum nodes of a tree.
        rows: of the stream.
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
        """The tree; for the first pass with the request for the rows of the prompt that are not known yet."""
        yield from ()
        self._pool.read(context)
        if context.room < 1:
            return EMPTY_DRAFT
        if self._width and not context.output:
            self._rows_awaited = self._rows.begin(context.prompt)
        tree = self._tree(min(self._ngram, context.room))
        return tree.draft(tree.marks, max(1, self._rows_awaited))

    def _tree(self, length: int) -> Tree[Provenance]:
        # A token that was taken both from the prompt and from generated text counts as the prompt's.
        tree = Tree(self._leaves, self._nodes, Provenance.PROMPT)
        places = self._pool.find()[: self._leaves]
        paths = [tree.hang(ROOT, self._pool.ngram(place, length)) for place in places]
        for depth in range(length):
            for place, path in zip(places, paths, strict=True):
                if depth < len(path):
                    rest = self._pool.ngram(place + depth + 1, length - depth - 1)
                    for token in self._above(place + depth):
                        tree.hang(path[depth - 1] if depth else ROOT, [(token, Provenance.PROMPT), *rest])
        return tree

    def _above(self, place: int) -> list[int]:
        """The best tokens that rank above the one at ``place``."""
        best, token = self._rows.at(place), self._pool.text[place]
        above = best[: best.index(token)] if token in best else best
        return [each for each in above if each not in self._end_tokens]

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Keeps the best tokens for every place of the prompt but the first, whose row nothing stands before."""
        after = self._pool.given + 1
        for node in range(-self._rows_awaited, ROOT):
            self._rows.learn(after + node, rows.best(node, self._width))
        self._rows_awaited = 0
