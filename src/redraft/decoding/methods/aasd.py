"""Alignment-Augmented Speculative Decoding with Alignment Sampling and Conditional Verification (AASD; Wang et al.).

**Drafts** (`Aligned`): n-grams of prompt and output, merged into a tree and extended by alignment sampling (sections
3.1 and 3.2, equation 2, Figure 2, Algorithm 1).

The prefill computes a row for every position of the prompt.  If a retrieved token is not the most probable one of the
row before it (*misaligned*), tokens that rank above it are drafted as its siblings, at most ``width`` of them.

Choices that the paper leaves open:

* The n-gram continues below the siblings too: a sibling is a substitution, and the text after it may be the same.
* A node costs a position of a pass, on a processor more than most siblings save.  So ``least`` leaves out nodes whose
  joint probability in the prompt's rows is lower; 0 leaves none out, as in the paper.  N-grams are always whole.
* Leaves and nodes are limited.  N-grams come first, earlier occurrences before later ones; then siblings, shallow ones
  before deep ones, since a deep one is useful only if everything above it is accepted.
* The prompt's rows arrive with the first pass, so the first draft is extended only at positions in the prefix that the
  prompt shares with the previous one.  If another drafter makes the first draft, the prompt would have to be computed
  again, so no draft is extended.
* Tokens from generated text are not extended: except for those that a lenient rule accepted, they are the most probable
  of their rows.

**Verification** (`Conditional`; section 3.3, equations 3-6).

A draft token from a trusted source passes if its probability reaches a threshold, which is higher if the target model
is uncertain:

    p >= min(alpha * H + beta, p_max),    H = -sum(P log P)

Because of the minimum, the target's most probable token always passes.  Other draft tokens are verified strictly: only
the most probable token passes.  The longest path of passing tokens is accepted; of equally long ones, the most
probable.

Choices that the paper leaves open:

* H is in nats.
* Of equally probable tokens, only the one with the lowest id counts as the most probable.  So alpha = 0 and beta = 1
  are exact acceptance, including ties.
* The most probable token passes every test, including a fixed threshold (equation 3): if rejected, it would be
  generated anyway.
* A drafted end token passes only as the most probable token, so that a copied end does not cut the output short.
  Nothing is accepted after it.
* A passing token may override an end token that the target prefers.  ``end_guard`` (from the authors' earlier CASD: p
  must also exceed the probability of the end token) prevents that; AASD has no such guard, so it is off by default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

from redraft.decoding.backend import Capability
from redraft.decoding.drafters import Tree
from redraft.decoding.method import Choice, Method, Option, Setup
from redraft.decoding.methods.lookup import KEY, NGRAM, Pool, Step
from redraft.decoding.rules import Exact
from redraft.decoding.types import (
    EMPTY_DRAFT,
    ROOT,
    Context,
    Draft,
    Drafter,
    Provenance,
    Rows,
    Rule,
    Verdict,
    common_prefix,
    top_k,
)

#: Maximum leaves of a tree; more would need more branches of the cache than a backend has by default.
MOST_LEAVES = 16
#: Maximum nodes of a tree; every node costs time, accepted or not.
MOST_NODES = 64


class PromptRows:
    """The most probable tokens at each position of the last prompt after the first, with their probabilities.

    They are kept for the whole stream.

    A row depends only on the ids up to it, so the rows of a shared prefix are valid for the next prompt too.
    """

    def __init__(self) -> None:
        self._prompt: tuple[int, ...] = ()
        #: By position, the first being that of the second id: tokens with their probabilities, best first.
        self.best: list[dict[int, float]] = []

    def begin(self, prompt: tuple[int, ...]) -> int:
        """Start a prompt; return how many rows are missing at its end."""
        self.best = self.best[: common_prefix(self._prompt, prompt)]  # not in place, see `Setup.recall`
        self._prompt = prompt
        return len(prompt) - len(self.best)

    def at(self, place: int) -> dict[int, float]:
        """Return the most probable tokens for a position, at least 1, with probabilities; empty if unknown."""
        return self.best[place - 1] if place <= len(self.best) else {}

    def probability(self, place: int, token: int) -> float:
        """Return the most that the probability of a token at a position can be: 1 if nothing is known."""
        best = self.at(place)
        return best.get(token, max(0.0, 1 - sum(best.values())))


@dataclass
class Aligned(Drafter):
    """Proposes a tree of all n-grams that follow occurrences of the longest key found.

    Attributes:
        key_length: maximum length of a key, at least 1; ``l`` = 6 in the paper.
        ngram: maximum length of an n-gram, at least 1; ``n`` = 6 in the paper.
        width: maximum number of siblings of a token by alignment sampling; 2 in the paper, 0 for none.
        end_tokens: ids that end an output; they are not drafted.
        leaves: maximum leaves of a tree.
        nodes: maximum nodes of a tree.
        rows: the stream's prompt rows.
        least: least joint probability of a sibling and of what follows it, from 0 to 1.
    """

    key_length: int = 6
    ngram: int = 6
    width: int = 2
    end_tokens: frozenset[int] = frozenset()
    leaves: int = MOST_LEAVES
    nodes: int = MOST_NODES
    rows: PromptRows = field(default_factory=PromptRows)
    least: float = 0.0

    def __post_init__(self) -> None:
        self._pool, self._rows_awaited = Pool(self.key_length, self.end_tokens), 0

    def propose(self, context: Context) -> Draft:
        """Return the tree; for the first pass, also request the missing rows of the prompt."""
        self._pool.read(context)
        if context.room < 1:
            return EMPTY_DRAFT
        if self.width and not context.output:
            self._rows_awaited = self.rows.begin(context.prompt.ids)
        return self._tree().draft(max(1, self._rows_awaited))

    def _tree(self) -> Tree:
        # A token taken both from the prompt and from generated text counts as the prompt's.
        tree = Tree(self.leaves, self.nodes, Provenance.PROMPT)
        ngrams = [(place, self._pool.ngram(place, self.ngram)) for place in self._pool.find()[: self.leaves]]
        paths = [tree.add_path(ROOT, ngram) for _, ngram in ngrams]
        for depth in range(self.ngram):
            for (place, ngram), path in zip(ngrams, paths, strict=True):
                if depth < len(path):
                    for sibling in self._siblings(place, ngram, depth):
                        tree.add_path(path[depth - 1] if depth else ROOT, sibling)
        return tree

    def _siblings(self, place: int, ngram: Sequence[Step], depth: int) -> Iterator[list[Step]]:
        """Yield the tokens that rank above one of an n-gram, each with the rest of it as long as that is probable.

        Args:
            place: position of the n-gram in the text.
            depth: that of the token in the n-gram.
        """
        for token, probability in self.rows.at(place + depth).items():
            if token == ngram[depth][0]:
                break
            if token in self.end_tokens:
                continue
            chances = [self.rows.probability(at, each) for at, (each, _) in enumerate(ngram, place)]
            joint = accumulate(chances[depth + 1 :], mul, initial=probability * math.prod(chances[:depth]))
            steps = (token, Provenance.PROMPT), *ngram[depth + 1 :]
            yield [step for step, chance in zip(steps, joint, strict=True) if chance >= self.least]

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Record the most probable tokens for every position of the prompt after the first."""
        for node in range(-self._rows_awaited, ROOT):
            self.rows.best.append({token: math.exp(log) for token, log in top_k(rows, node, self.width)})
        self._rows_awaited = 0


#: ``test(rows, node, token)`` returns whether a trusted token other than the most probable one may follow ``node``.
Test = Callable[[Rows, int, int], bool]


def entropy_threshold(alpha: float, beta: float) -> Test:
    """p >= alpha * H + beta (equations 4 and 5), with alpha and beta at least 0.

    The paper uses alpha = 0.1 for LLaMA 3.1 and 0.2 for Qwen 2.5, and beta = 0.1.
    """

    def test(rows: Rows, node: int, token: int) -> bool:
        probability = math.exp(rows.logprob(node, token))
        # H needs the whole vocabulary; since it is at least 0, the first comparison often suffices.
        return probability >= beta and probability >= alpha * rows.entropy(node) + beta

    return test


def fixed_threshold(delta: float) -> Test:
    """p >= delta (equation 3); 0.1 in the paper's ablation (Table 4)."""
    return lambda rows, node, token: math.exp(rows.logprob(node, token)) >= delta


def among_best(k: int) -> Test:
    """The token is among the ``k`` most probable ones; 5 in the paper's ablation (Table 4)."""
    return lambda rows, node, token: token in rows.best(node, k)


@dataclass
class Conditional(Rule):
    """Accepts trusted draft tokens that pass a test, and other draft tokens that are the target's argmax.

    Attributes:
        test: `entropy_threshold`, `fixed_threshold` or `among_best`.
        trusted: provenances to which the test applies; the prompt in the paper.
        end_tokens: ids that end an output.
        end_guard: whether a token must also be more probable than every end token.
        line_ends: ids of line breaks, which may end an output.
    """

    test: Test
    trusted: Collection[str]
    end_tokens: frozenset[int]
    end_guard: bool = False
    line_ends: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        self._ends = self.end_tokens | self.line_ends

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the longest path of passing tokens; of equally long ones, the most probable."""
        reached: dict[int, tuple[int, float]] = {ROOT: (0, 0.0)}  # depth and log-probability of the path to each node
        for child, node in enumerate(draft.parents):
            if node in reached and self._passes(draft, rows, node, child):
                depth, logprob = reached[node]
                reached[child] = (depth + 1, logprob + rows.logprob(node, draft.tokens[child]))
        last = max(reached, key=reached.__getitem__)
        return Verdict(tuple(draft.path(last)), rows.argmax(last))

    def _passes(self, draft: Draft, rows: Rows, node: int, child: int) -> bool:
        token = draft.tokens[child]
        if node >= 0 and draft.tokens[node] in self.end_tokens:
            return False
        if token == rows.argmax(node):
            return True
        if draft.provenance[child] not in self.trusted or token in self._ends:
            return False
        if self.end_guard and any(rows.logprob(node, end) >= rows.logprob(node, token) for end in self._ends):
            return False
        return self.test(rows, node, token)


WIDTH = Option("width", 2, 0, 2, "siblings of a token by alignment sampling; 0 turns it off", whole=True)
LEAST = Option(
    "least", 0.2, 0.0, 1.0, "least joint probability, in the prompt, of drafted siblings; 0 drafts all, as in the paper"
)
END_GUARD = Choice(
    "end_guard", "off", ("off", "on"), "on rejects tokens that are less probable than the end token (CASD)"
)
HOW = "verified: by the threshold alpha * entropy + beta, a fixed threshold, their rank, or exactly"
VERIFICATION = (
    Choice(
        "verification",
        "entropy",
        ("entropy", "threshold", "top-k", "exact"),
        f"how tokens from the prompt are {HOW}",
    ),
    Option(
        "alpha",
        0.1,
        0.0,
        10.0,
        "with verification=entropy: growth of the threshold with the entropy, in nats; the paper has 0.2 for Qwen 2.5",
    ),
    Option("beta", 0.1, 0.0, 1.0, "with verification=entropy: threshold at entropy 0"),
    Option("threshold", 0.1, 0.0, 1.0, "with verification=threshold: the threshold"),
    Option("top_k", 5, 1, 1000, "with verification=top-k: lowest rank that is kept", whole=True),
)


def conditional(setup: Setup, trusted: Collection[str]) -> Rule:
    """Return the rule that the options `VERIFICATION` and `END_GUARD` describe, for drafts from ``trusted``."""
    tests = {
        "entropy": entropy_threshold(setup["alpha"], setup["beta"]),
        "threshold": fixed_threshold(setup["threshold"]),
        "top-k": among_best(setup["top_k"]),
    }
    test = tests.get(setup["verification"])
    guard = setup["end_guard"] == "on"
    return Exact() if test is None else Conditional(test, trusted, setup.end_tokens, guard, setup.line_ends)


METHODS = (
    Method(
        "aasd",
        "drafts a tree of n-grams with the model's alternatives; accepts tokens from the prompt leniently",
        "AASD, Algorithm 1, equations 2-6",
        "n-grams, alignment sampling",
        "conditional",
        lambda setup: (
            Aligned(
                setup["key"],
                setup["ngram"],
                setup["width"],
                setup.ends,
                rows=setup.recall(PromptRows),
                least=setup["least"],
            ),
            conditional(setup, {Provenance.PROMPT}),
        ),
        (KEY, NGRAM, WIDTH, LEAST, *VERIFICATION, END_GUARD),
        needs=frozenset({Capability.TREES, Capability.PROMPT_ROWS}),
    ),
)
