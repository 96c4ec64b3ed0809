"""FLy: training-free loosely speculative decoding (Li et al. 2025, arXiv 2511.22972), on the previous output.

FLy keeps a draft token that is not the target's own if both hold (section 3):

* the target is undecided there: the entropy of its few most probable tokens is at least a threshold;
* the target agrees with the next ``window`` draft tokens once it has read this one.  So the difference is one of
  wording: a real error would make it go another way.

So a mismatch is decided by what follows it, where SSBD compares two probabilities.  In vLLM, which calls the rule
``fly``, the window counts the tokens after the mismatch, as here; in the authors' code it includes the mismatch itself.
The last ``window`` tokens of a draft are verified exactly, and so is a draft that ends the output.
"""

from __future__ import annotations

import math

from redraft.decoding.method import Method, Option
from redraft.decoding.methods.ssbd import PreviousOutput
from redraft.decoding.types import Draft, Rows, Rule, Verdict, top_k

ENTROPY = Option("entropy", 0.3, 0.0, 2.0, "least entropy, in nats, of the most probable tokens at a kept mismatch")
AFTER = Option("window", 6, 1, 32, "how many tokens after a kept mismatch must be the model's own", whole=True)
TOP = Option("top", 3, 2, 32, "number of most probable tokens whose entropy counts", whole=True)


class Deferred(Rule):
    """Accepts a chain up to the first mismatch that is no difference of wording; see the module.

    Args:
        entropy: least entropy at a kept mismatch, in nats.
        window: number of matches that must follow it, at least 1.
        top: number of most probable tokens whose -sum(p log p) is the entropy.
    """

    def __init__(self, entropy: float = 0.3, window: int = 6, top: int = 3) -> None:
        self._entropy, self._window, self._top = entropy, window, top

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept a beginning of the chain; the target's most probable token follows."""
        own = [token == rows.argmax(node - 1) for node, token in enumerate(draft.tokens)]
        kept = 0
        while kept < len(own) and (own[kept] or self._is_wording(rows, own, kept)):
            kept += 1
        return Verdict(tuple(range(kept)), rows.argmax(kept - 1))

    def _is_wording(self, rows: Rows, own: list[bool], node: int) -> bool:
        after = own[node + 1 : node + 1 + self._window]
        if len(after) < self._window or not all(after):
            return False
        return sum(-log * math.exp(log) for _token, log in top_k(rows, node - 1, self._top)) >= self._entropy


METHODS = (
    Method(
        "fly",
        "drafts the previous translation; keeps words where the model is undecided and agrees with what follows them",
        "FLy, section 3",
        "previous output",
        "deferred",
        lambda setup: (
            PreviousOutput(),
            Deferred(setup["entropy"], setup["window"], setup["top"]),
        ),
        (ENTROPY, AFTER, TOP),
    ),
)
