"""The previous update's output as the draft, once: self-speculation (SSBD v2, section 3.2 and Algorithm 1, line 1)."""

from __future__ import annotations

from redraft.decoding.types import EMPTY_DRAFT, Asking, Context, Draft, Provenance, Rows, Verdict


class PreviousOutput:
    """Proposes the whole previous output for the first pass and nothing after it.

    Outputs do not include the end token, so a finished translation can always be continued for a longer source.
    """

    def __init__(self) -> None:
        self._proposed = False

    def propose(self, context: Context) -> Asking[Draft]:
        """The previous output, or the empty draft after the first call."""
        yield from ()
        if self._proposed:
            return EMPTY_DRAFT
        self._proposed = True
        return Draft.chain(context.previous, Provenance.PREVIOUS)

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Nothing to learn: decoding after the divergence is autoregressive."""
