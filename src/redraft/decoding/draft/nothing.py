"""The empty draft: plain autoregressive decoding, one target pass a token."""

from __future__ import annotations

from redraft.decoding.types import EMPTY_DRAFT, Asking, Context, Draft, Rows, Verdict


class Nothing:
    """Never proposes anything.  With exact acceptance this is greedy re-translation (RT in the papers)."""

    def propose(self, context: Context) -> Asking[Draft]:
        """The empty draft."""
        yield from ()
        return EMPTY_DRAFT

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Nothing to learn."""
