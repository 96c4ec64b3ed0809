"""The empty draft: re-translation."""

from __future__ import annotations

from redraft.decoding.types import EMPTY_DRAFT, Asking, Context, Draft, Drafter


class Nothing(Drafter):
    """Proposes nothing.  With exact acceptance this is greedy re-translation (RT in the papers)."""

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the empty draft."""
        yield from ()
        return EMPTY_DRAFT
