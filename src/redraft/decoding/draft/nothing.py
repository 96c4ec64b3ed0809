"""The empty draft: plain autoregressive decoding, one target pass per token."""

from __future__ import annotations

from redraft.decoding.types import EMPTY_DRAFT, Asking, Context, Draft, Rows, Verdict


class Nothing:
    """Proposes nothing.  With exact acceptance this is greedy re-translation (RT in the papers)."""

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the empty draft."""
        yield from ()
        return EMPTY_DRAFT

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Do nothing."""
