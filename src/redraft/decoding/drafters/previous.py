"""Nothing, the previous output, or one drafter after another."""

from __future__ import annotations

from dataclasses import replace

from redraft.decoding.types import EMPTY_DRAFT, Asking, Context, Draft, Drafter, Rows, Verdict


class Nothing(Drafter):
    """Proposes nothing.  With exact acceptance this is greedy re-translation (RT in the papers)."""

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the empty draft."""
        yield from ()
        return EMPTY_DRAFT


class PreviousOutput(Drafter):
    """Proposes the whole previous output for the first pass, then nothing (SSBD v2, section 3.2; Algorithm 1, line 1).

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
        return Draft.previous(context.previous, context.shown)


class Then:
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
