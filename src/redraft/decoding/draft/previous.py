"""The previous update's output as the first draft: self-speculation (SSBD v2, section 3.2 and Algorithm 1, line 1)."""

from __future__ import annotations

from redraft.decoding.types import EMPTY_DRAFT, Asking, Context, Draft, Provenance, Rows, Verdict


class PreviousOutput:
    """Proposes the whole previous output for the first pass, and nothing afterwards.

    Outputs do not include the end token, so a finished translation can be continued for a longer source.
    """

    def __init__(self) -> None:
        self._proposed = False

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the previous output; after the first call, the empty draft."""
        yield from ()
        if self._proposed:
            return EMPTY_DRAFT
        self._proposed = True
        return Draft.chain(context.previous, Provenance.PREVIOUS)

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Do nothing: decoding after the divergence is autoregressive."""
