"""One rule for the previous output, and another for what a drafter adds to it."""

from __future__ import annotations

from collections.abc import Mapping

from redraft.decoding.types import Draft, Provenance, Rows, Rule, Verdict, biases_of


class ByProvenance:
    """Judges a draft by the rule for the provenance of its first token.

    Args:
        rules: the rules by provenance.
        otherwise: the rule for all other drafts, including the empty one.
    """

    def __init__(self, rules: Mapping[Provenance, Rule], otherwise: Rule) -> None:
        self._rules, self._otherwise = rules, otherwise

    def biases(self, draft: Draft) -> tuple[float, ...] | None:
        """Return the bias of the rule for this draft towards each token; None if it has none."""
        return biases_of(self._rule(draft), draft)

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Return the verdict of the rule for this draft."""
        return self._rule(draft).judge(draft, rows)

    def _rule(self, draft: Draft) -> Rule:
        return self._rules.get(draft.provenance[0], self._otherwise) if len(draft) else self._otherwise
