"""Two drafters, of which the second drafts where the first has nothing."""

from __future__ import annotations

from dataclasses import replace

from redraft.decoding.types import Asking, Context, Draft, Drafter, Rows, Verdict


class FirstNonEmpty(Drafter):
    """Proposes the draft of ``first``, or that of ``second`` if it is empty.

    Both observe every pass, so they must handle drafts of each other.
    """

    def __init__(self, first: Drafter, second: Drafter) -> None:
        self._first, self._second = first, second

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the first non-empty draft, with the larger of both numbers of prompt rows."""
        draft = yield from self._first.propose(context)
        if len(draft):
            return draft
        other = yield from self._second.propose(context)
        return replace(other, prompt_rows=max(draft.prompt_rows, other.prompt_rows))

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Pass the result on to both."""
        self._first.observe(draft, rows, verdict)
        self._second.observe(draft, rows, verdict)
