"""What the target nearly chose instead of ending its output."""

from __future__ import annotations

from redraft.decoding.types import ROOT, Context, Draft, Rows, Verdict

#: Maximum number of continuations.
MOST = 6
#: Number of best tokens among which they are looked for.  Those that end an output may be thousands, of which few are
#: here, and servers report 20 at most.
_RANKED = 12


class Continuations:
    """The most probable continuations of the latest output; kept for the whole stream.

    SSBD drafts nothing for new words.  But the row at which the target ended its output also has the next most likely
    tokens, and once the source has grown the output often continues with one of them.
    """

    def __init__(self) -> None:
        self._output: tuple[int, ...] = ()
        self._tokens: tuple[int, ...] = ()

    def learn(self, context: Context, draft: Draft, rows: Rows, verdict: Verdict, ends: frozenset[int]) -> None:
        """Learn from the last pass of an output; other passes are ignored."""
        if verdict.token not in ends:
            return
        node = verdict.accepted[-1] if verdict.accepted else ROOT
        self._output = (*context.output, *[draft.tokens[each] for each in verdict.accepted])
        self._tokens = tuple([token for token in rows.best(node, _RANKED) if token not in ends][:MOST])

    def after(self, output: tuple[int, ...]) -> tuple[int, ...]:
        """Return the tokens that may follow ``output``, most probable first.

        Empty unless it is the latest finished output.
        """
        return self._tokens if output == self._output else ()
