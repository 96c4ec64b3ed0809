"""`redraft`: SSBD, continued with guesses where the previous output ends or was rejected."""

from __future__ import annotations

from dataclasses import replace

from redraft.decoding.accept.biased import Biased, FirstStretch
from redraft.decoding.draft.priced import Acceptance, Pace
from redraft.decoding.draft.recycled import Beyond, Successors
from redraft.decoding.draft.redraft import LastPrompt, Redraft, TreeShape
from redraft.decoding.method import Choice, Method, Option, Setup
from redraft.decoding.methods.registry import BETA, FLOOR
from redraft.decoding.types import Drafter, Rule

#: Maximum cost of a pass over a whole tree, relative to T(1), for drafting trees.  Up to this cost, branches save more
#: than drafting them takes; at the cost with AMX (4.1) or without (7 to 9) they save nothing over a chain.
MAX_TREE_COST = 2.0


def _branches(setup: Setup) -> int:
    """Return the option ``branches`` if the backend scores trees and a pass over one is cheap, otherwise 1."""
    branches, curve = setup.whole("branches"), setup.curve
    if not setup.trees:
        return 1
    if curve is None or setup.word("cost") == "flat":
        return branches
    return branches if curve(1 + branches * setup.whole("length")) <= MAX_TREE_COST * curve(1) else 1


def _redraft(setup: Setup, branches: int) -> tuple[Drafter, Rule]:
    biased = Biased(setup.number("beta"), setup.number("floor"), setup.end_tokens)
    shape = TreeShape(branches, setup.whole("length"), *(setup.word(name) == "on" for name, _help in GUESSES))
    curve = setup.curve if setup.word("cost") == "measured" else None
    kept = (
        setup.recall(Successors),
        setup.recall(Beyond),
        setup.recall(Acceptance),
        setup.recall(LastPrompt),
        setup.recall(Pace),
    )
    drafter = Redraft(shape, *kept, curve, setup.end_tokens)
    return drafter, FirstStretch(biased)


GUESSES = (
    ("recycle", "guess what the model last predicted after the same tokens"),
    ("lookup", "guess what followed the same tokens in source and output"),
    ("beyond", "guess how the previous translation would have continued instead of ending"),
)
REDRAFT: tuple[Option | Choice, ...] = (
    BETA,
    FLOOR,
    Option("length", 6, 1, 64, "maximum tokens of a guess", whole=True),
    *(Choice(name, "on", ("off", "on"), what) for name, what in GUESSES),
    Choice(
        "cost",
        "measured",
        ("measured", "flat"),
        "draft only what saves time on this machine (measured), or everything (flat)",
    ),
)

BRANCHES = Option("branches", 6, 2, 16, "maximum branches of the tree", whole=True)

METHODS = (
    Method(
        "redraft",
        "SSBD's output in fewer passes: also drafts from the model's earlier predictions and from the text; faster "
        "than ssbd where a pass over four tokens costs little more than one over a single token",
        "SSBD v2, Algorithm 1; Luo et al. 2024 (token recycling); ours",
        "previous output, then the likeliest guess, or a tree of guesses where long passes are cheap",
        "biased for the previous output, exact after it",
        lambda setup: _redraft(setup, _branches(setup)),
        (*REDRAFT, replace(BRANCHES, low=1, help="maximum branches if a tree is drafted; 1 never drafts trees")),
        uses=frozenset({"trees"}),
    ),
    Method(
        "redraft-tree",
        "redraft that verifies several guesses at once",
        "SSBD v2, Algorithm 1; Luo et al. 2024 (token recycling); ours",
        "previous output, then a tree of guesses",
        "biased for the previous output, exact after it",
        lambda setup: _redraft(setup, setup.whole("branches")),
        (*REDRAFT, BRANCHES),
        needs=frozenset({"trees"}),
    ),
)
