"""One rule per kind of draft, such as SSBD's bias for the previous output and exact acceptance after it."""

from __future__ import annotations

from collections.abc import Mapping

from redraft.decoding.types import Draft, Provenance, Rows, Rule, Verdict


class ByProvenance:
    """Judges a draft by the rule for the provenance of its first token.

    Args:
        rules: the rules by provenance.
        otherwise: the rule for every other draft, the empty one included.
    """

    def __init__(self, rules: Mapping[Provenance, Rule], otherwise: Rule) -> None:
        self._rules, self._otherwise = rules, otherwise

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The verdict of the rule that the draft falls under."""
        rule = self._rules.get(draft.provenance[0], self._otherwise) if len(draft) else self._otherwise
        return rule.judge(draft, rows)
