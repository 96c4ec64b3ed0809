"""A line of ids with known rows, and the stream that extends it.

Later requests of the decoding loop are answered from the line as long as they follow it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from redraft.backends.remote.rows import UNLIKELY, ChosenToken, RemoteRow
from redraft.decoding.types import Score, common_prefix

#: Greedy tokens of the server as they arrive; closing the generator ends the request.
Steps = Generator[ChosenToken, None, None]


class RowLine:
    """Rows along a line of ids: the first is the row after the prefix, the others follow id by id.

    Args:
        prefix: at least one id; an empty one answers nothing.
        steps: the server's continuation.
        draft: a draft with known rows, instead of a continuation.
        rows: (n + 1,) rows of the root and of the draft.
    """

    def __init__(
        self,
        prefix: Sequence[int] = (),
        steps: Steps | None = None,
        draft: Sequence[int] = (),
        rows: Sequence[RemoteRow] = (),
    ) -> None:
        self._ids, self._start = [*prefix, *draft], len(prefix)
        self._rows, self._steps = list(rows), steps

    def answer(self, score: Score) -> tuple[RemoteRow, ...]:
        """Return the rows of a request, up to the draft token that leaves the line; waits for the server if necessary.

        Raises:
            ModelError: the server fails meanwhile.
        """
        prefix, draft = list(score.prefix), score.draft.tokens
        if not self._reaches(prefix):
            return ()
        first = len(prefix) - self._start
        while True:
            wanted = first + 1 + common_prefix(draft, tuple(self._ids[len(prefix) :]))
            if len(self._rows) >= wanted or not self._next():
                return tuple(self._rows[first:wanted])

    def close(self) -> None:
        """End the request if it is still running."""
        if self._steps is not None:
            self._steps.close()
            self._steps = None

    def _reaches(self, prefix: list[int]) -> bool:
        """Whether the line contains a whole prefix, or will."""
        if not self._start or len(prefix) < self._start:
            return False
        while len(self._ids) < len(prefix):
            if self._ids != prefix[: len(self._ids)] or not self._next():
                return False
        return self._ids[: len(prefix)] == prefix

    def _next(self) -> bool:
        """Wait for the next token; return False if there is none."""
        step = next(self._steps, None) if self._steps is not None else None
        if step is None:
            return False
        self._ids.append(step.token)
        self._rows.append(step.row)
        return True


def beside(steps: Steps, draft: Sequence[int], k: int) -> Steps:
    """Yield the tokens chosen along a draft, with rows that include the drafted token where it was not chosen.

    A drafted token that is not among the best has unknown probability, so no rule accepts it.
    """
    try:
        on_draft = True
        for number, step in enumerate(steps):
            if on_draft and number < len(draft):
                known = dict(step.row.best) | dict(step.row.others)
                yield ChosenToken(step.token, RemoteRow.of({draft[number]: UNLIKELY} | known, k))
                on_draft = step.token == draft[number]
            else:
                yield step
    finally:
        steps.close()
