"""One rule per draft source, such as SSBD's bias for the previous output and exact acceptance for other drafts."""

from __future__ import annotations

from collections.abc import Mapping

from redraft.decoding.types import Draft, Provenance, Rows, Rule, Verdict


class ByProvenance:
    """Judges a draft by the rule for the provenance of its first token.

    Args:
        rules: the rules by provenance.
        otherwise: the rule for all other drafts, including the empty one.
    """

    def __init__(self, rules: Mapping[Provenance, Rule], otherwise: Rule) -> None:
        self._rules, self._otherwise = rules, otherwise

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Return the verdict of the rule for this draft."""
        rule = self._rules.get(draft.provenance[0], self._otherwise) if len(draft) else self._otherwise
        return rule.judge(draft, rows)
