"""Two drafters in turn, so that, for example, the previous output can come before any other drafter."""

from __future__ import annotations

from dataclasses import replace

from redraft.decoding.types import Asking, Context, Draft, Drafter, Rows, Verdict


class Then:
    """Proposes the draft of ``first``, or that of ``second`` if it is empty.

    Both observe every pass, so each must cope with drafts that are not its own.
    """

    def __init__(self, first: Drafter, second: Drafter) -> None:
        self._first, self._second = first, second

    def propose(self, context: Context) -> Asking[Draft]:
        """The draft of the first that has one, with as many prompt rows as either requests."""
        draft = yield from self._first.propose(context)
        if len(draft):
            return draft
        other = yield from self._second.propose(context)
        return replace(other, prompt_rows=max(draft.prompt_rows, other.prompt_rows))

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Tells both."""
        self._first.observe(draft, rows, verdict)
        self._second.observe(draft, rows, verdict)
