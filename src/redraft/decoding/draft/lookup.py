"""Prompt lookup: draft the n-gram that followed an earlier occurrence of the last tokens.

Saxena, Prompt lookup decoding (2023), and Yang et al., Inference with reference (LLMA, 2023, arXiv 2304.04487).
"""

from __future__ import annotations

from redraft.decoding.draft.pool import Pool
from redraft.decoding.types import EMPTY_DRAFT, Asking, Context, Draft, Rows, Verdict


class Lookup:
    """Proposes one n-gram of prompt and output, from the first occurrence of the longest key found.

    Args:
        key_length: maximum length of a key, at least 1; 3 in Saxena.
        ngram: maximum length of a draft, at least 1; 10 in Saxena.
        end_tokens: ids that end an output; they are not drafted.
    """

    def __init__(self, key_length: int = 3, ngram: int = 10, end_tokens: frozenset[int] = frozenset()) -> None:
        self._pool, self._ngram = Pool(key_length, end_tokens), ngram

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the n-gram, or the empty draft if no key is found."""
        yield from ()
        self._pool.read(context)
        places = self._pool.find()
        if not places:
            return EMPTY_DRAFT
        # The first occurrence has the most tokens after it, and text is usually copied from the prompt.
        steps = self._pool.ngram(places[0], min(self._ngram, context.room))
        return Draft(
            tuple(token for token, _ in steps), tuple(range(-1, len(steps) - 1)), tuple(source for _, source in steps)
        )

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Do nothing: the next context has everything."""
