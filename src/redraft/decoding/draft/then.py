"""Two drafters in turn, so that the previous output, say, can stand in front of any drafter."""

from __future__ import annotations

from dataclasses import replace

from redraft.decoding.types import Asking, Context, Draft, Drafter, Rows, Verdict


class Then:
    """Proposes what ``first`` proposes, and where that is nothing, what ``second`` does.

    Both are told what came of every pass, so each must bear with drafts that are not its own.
    """

    def __init__(self, first: Drafter, second: Drafter) -> None:
        self._first, self._second = first, second

    def propose(self, context: Context) -> Asking[Draft]:
        """The draft of the first that has one; prompt rows for whoever wants the most."""
        draft = yield from self._first.propose(context)
        if len(draft):
            return draft
        other = yield from self._second.propose(context)
        return replace(other, prompt_rows=max(draft.prompt_rows, other.prompt_rows))

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Tells both."""
        self._first.observe(draft, rows, verdict)
        self._second.observe(draft, rows, verdict)
