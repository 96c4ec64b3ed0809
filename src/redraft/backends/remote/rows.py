"""Partial distributions from a server: the probabilities of a few tokens each.

`RemoteRows` answers from them.  Anything else is requested again, as far as the server can provide it, or rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from redraft.decoding.types import Score, WholeDistribution, common_prefix
from redraft.errors import CapabilityError

#: Maximum tokens per row: vLLM's default for ``--max-logprobs``.
MOST = 20


@dataclass(frozen=True, slots=True)
class RemoteRow:
    """Part of a distribution.

    Attributes:
        known: token -> log-probability, most probable first, lower ids first among equals.
        k: how many of these are the most probable ones; the others are tokens of a draft.
    """

    known: Mapping[int, float]
    k: int

    @classmethod
    def of(cls, known: Mapping[int, float], k: int) -> RemoteRow:
        """Make a row from the ``k`` best tokens and possibly others, in any order.

        Raises:
            ValueError, TypeError: there are fewer than ``k``, or a value is not a log-probability.
        """
        # Servers may round values near 0 up.  Of what is no number, the comparison fails.
        if len(known) < k or not all(value <= 1e-3 for value in known.values()):
            raise ValueError("no row")
        return cls(dict(sorted(known.items(), key=lambda item: (-item[1], item[0]))), k)


class RemoteRows:
    """Implements `redraft.decoding.types.Rows` for one request.

    Args:
        rows: the known rows, starting with the root's; n + 1 for a draft of n tokens.
        vocabulary_size: number of tokens in the vocabulary.
        ask_again: requests all rows again with at least the given number of best tokens.
    """

    def __init__(
        self, rows: Sequence[RemoteRow], vocabulary_size: int, ask_again: Callable[[int], Sequence[RemoteRow]]
    ) -> None:
        self._rows, self._size, self._ask_again = rows, vocabulary_size, ask_again

    def argmax(self, node: int) -> int:
        """Return the most probable token, the lowest id among equals."""
        return next(iter(self._row(node).known))

    def best(self, node: int, k: int) -> list[int]:
        """Return the ``k`` most probable tokens.

        Raises:
            CapabilityError: ``k`` is more than servers provide.
        """
        k = min(k, self._size)
        if k > MOST:
            raise CapabilityError(f"a remote model gives at most the {MOST} best tokens, not {k}")
        if k > self._row(node).k:
            self._rows = self._ask_again(k)
        return list(self._row(node).known)[:k]

    def logprob(self, node: int, token: int) -> float:
        """Return the natural log of the probability of a draft token or of one of the best.

        Raises:
            CapabilityError: the token is neither.
        """
        if token not in self._row(node).known:  # such as one of a new draft, in a row that is older
            self._rows = self._ask_again(min(MOST, self._size))
        if token not in self._row(node).known:
            raise CapabilityError(
                f"a remote model gives the probabilities of the draft and of the {MOST} best tokens only"
            )
        return self._row(node).known[token]

    def entropy(self, node: int) -> float:
        """Servers do not provide the entropy.

        Raises:
            CapabilityError: always.
        """
        raise CapabilityError("a remote model gives no entropy, which needs the whole distribution")

    def distribution(self, node: int, temperature: float) -> WholeDistribution:
        """Servers do not provide whole distributions.

        Raises:
            CapabilityError: always.
        """
        raise CapabilityError(f"a remote model gives at most the {MOST} best tokens, so set top_k")

    def _row(self, node: int) -> RemoteRow:
        if node < -1:
            raise CapabilityError("a remote model gives no rows of the prompt")
        while node + 1 >= len(self._rows):
            self._rows = self._ask_again(0)
        return self._rows[node + 1]


#: Greedy tokens of the server with their rows as they arrive; closing the generator ends the request.
Steps = Generator[tuple[int, RemoteRow], None, None]


class RowLine:
    """Rows along a line of ids: the first is the row after the prefix, the others follow id by id.

    Args:
        score: what it was requested for; without it, the line answers nothing.
        rows: (n + 1,) rows of the root and of the draft, if the server has scored the draft.
        steps: otherwise its continuation of the prefix; of the draft, a server that verifies drafts leaves out what
            follows a rejected token.
    """

    def __init__(self, score: Score | None = None, rows: Sequence[RemoteRow] = (), steps: Steps | None = None) -> None:
        self.score, self._rows, self._steps = score, list(rows), steps
        self._start = len(score.prefix) if score else 0
        self._draft = score.draft.tokens if score else ()
        self._ids = score.prefix + (self._draft if rows else ()) if score else ()

    def answer(self, score: Score) -> tuple[RemoteRow, ...]:
        """Return the rows of a request, up to the draft token that leaves the line; waits for the server if necessary.

        Raises:
            ModelError: the server fails meanwhile.
        """
        prefix, ids = len(score.prefix), score.prefix + score.draft.tokens
        if prefix < self._start:
            return ()
        while (shared := common_prefix(self._ids, ids)) - self._start >= len(self._rows) and self._next():
            pass
        return tuple(self._rows[prefix - self._start : shared - self._start + 1]) if shared >= prefix else ()

    def close(self) -> None:
        """End the request if it is still running."""
        if self._steps is not None:
            self._steps.close()
            self._steps = None

    def _next(self) -> bool:
        """Wait for the next token; return False if there is none."""
        step = next(self._steps, None) if self._steps is not None else None
        if step is None:
            return False
        (token, row), place = step, len(self._rows)
        if place < len(self._draft) and self._ids[self._start :] == self._draft[:place]:
            # What was drafted and not chosen.  If the server reports nothing of it, it counts as impossible, so no rule
            # accepts it.
            row = RemoteRow.of({self._draft[place]: -math.inf, **row.known}, row.k)
        self._ids += (token,)
        self._rows.append(row)
        return True
