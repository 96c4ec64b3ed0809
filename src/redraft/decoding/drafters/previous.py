"""The previous output as the draft: SSBD."""

from __future__ import annotations

from dataclasses import replace

from redraft.decoding.types import EMPTY_DRAFT, Asking, Context, Draft, Drafter


class PreviousOutput(Drafter):
    """Proposes the whole previous output for the first pass, then nothing (SSBD v2, section 3.2; Algorithm 1, line 1).

    Outputs do not include the end token, so a finished translation can be continued for a longer source.

    Args:
        settled: whether it is kept without a look, as in continuous decoding (CD).
    """

    def __init__(self, *, settled: bool = False) -> None:
        self._proposed, self._settled = False, settled

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the previous output; after the first call, the empty draft."""
        yield from ()
        if self._proposed:
            return EMPTY_DRAFT
        self._proposed = True
        return replace(Draft.previous(context.previous, context.shown), settled=self._settled)
