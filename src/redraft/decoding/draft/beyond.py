"""Draft beyond the end of the previous output: what the target nearly said instead of ending it.

SSBD drafts nothing for new words. But the row at which the target ended its output also has the next most likely
tokens, and once the source has grown the output often continues with one of them. The row exists anyway, so the guess
costs no pass.
"""

from __future__ import annotations

from redraft.decoding.types import ROOT, Context, Draft, Rows, Verdict

#: Continuations that are kept.
MOST = 6


class Beyond:
    """The likeliest continuations of the latest output; lasts as long as a stream."""

    def __init__(self) -> None:
        self._output: tuple[int, ...] = ()
        self._tokens: tuple[int, ...] = ()

    def learn(self, context: Context, draft: Draft, rows: Rows, verdict: Verdict, ends: frozenset[int]) -> None:
        """Learn from the last pass of an output; an output that continues teaches nothing."""
        if verdict.token not in ends:
            return
        node = verdict.accepted[-1] if verdict.accepted else ROOT
        self._output = (*context.output, *[draft.tokens[each] for each in verdict.accepted])
        # As many as a tree has leaves at most, whatever ends stand between them.
        self._tokens = tuple([token for token in rows.best(node, MOST + len(ends)) if token not in ends][:MOST])

    def after(self, output: tuple[int, ...]) -> tuple[int, ...]:
        """The tokens that may follow ``output``, the likeliest first; none if it is not the latest that was ended."""
        return self._tokens if output == self._output else ()
