"""Where an output ends: at its line break, or before it repeats itself.

Detection works token by token on the decoded ids, so the result does not depend on the drafts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias, TypeVar

from redraft.decoding.types import NOTHING_BARRED, Asking, Barred, Output, Prompt

#: ``end(output)`` returns how many ids of an output belong to its line; None if the line has not ended.
LineEnd: TypeAlias = Callable[[Sequence[int]], int | None]


@dataclass(frozen=True, slots=True)
class LineBreaks:
    r"""The tokens of a vocabulary that hold a line break, by what precedes it in them.

    Attributes:
        before: ids of tokens without text before the break; a line ends before them.
        within: ids of tokens with text before the break, such as ``.\n\n``; a line ends with them.
        blank: ids of tokens without text: control tokens and white space, breaks included.
    """

    before: frozenset[int] = frozenset()
    within: frozenset[int] = frozenset()
    blank: frozenset[int] = frozenset()

    @classmethod
    def of(cls, tokens: Iterable[bytes]) -> Self:
        """Sort a vocabulary: the bytes of every token, in the order of their ids."""
        before: set[int] = set()
        within: set[int] = set()
        blank: set[int] = set()
        for token, data in enumerate(tokens):
            if _is_blank(data):
                blank.add(token)
            if b"\n" in data:
                (before if _is_blank(first_line(data)) else within).add(token)
        return cls(frozenset(before), frozenset(within), frozenset(blank))

    @property
    def ends(self) -> frozenset[int]:
        """All tokens that may end a line, for drafters and rules that treat ends differently."""
        return self.before | self.within

    def end(self, output: Sequence[int]) -> int | None:
        """Return how many ids of an output belong to its first line with text (`LineEnd`)."""
        if self.before.isdisjoint(output) and self.within.isdisjoint(output):
            return None
        has_text = False
        for place, token in enumerate(output):
            if token in self.within:
                return place + 1
            if has_text and token in self.before:
                return place
            has_text = has_text or token not in self.blank
        return None


#: No token ends a line.
NO_BREAKS = LineBreaks()


def _is_blank(data: bytes) -> bool:
    return not data.decode(errors="replace").strip()


def first_line(data: bytes) -> bytes:
    """Return the bytes before the first line break."""
    return data.partition(b"\n")[0]


T = TypeVar("T")

#: Minimum repetitions and minimum tokens of a cycle that counts as a loop.
LEAST_ROUNDS, LEAST_TOKENS = 4, 24
#: Maximum number of loops to escape; the next one cuts the output.
MOST_ESCAPES = 3
#: A translation longer than this many tokens plus this many per prompt token counts as endless.
SHORTEST_LIMIT, LONGEST_RATIO = 16, 4


def longest_output(prompt: Prompt) -> int:
    """Return the maximum number of tokens of a translation before it counts as endless."""
    return SHORTEST_LIMIT + LONGEST_RATIO * (len(prompt.encoder) or len(prompt.ids))


def loop_at_end(output: Sequence[int]) -> int:
    """Return how many ids at the end of ``output`` repeat earlier ones in a loop; 0 without a loop.

    Without these ids, the output contains the cycle once.
    """
    longest = len(output) // LEAST_ROUNDS
    if len(output) < LEAST_TOKENS or output[-1] not in output[-1 - longest : -1]:
        return 0
    for cycle in range(1, longest + 1):
        if output[-1] != output[-1 - cycle]:
            continue
        rounds = max(LEAST_ROUNDS, -(-LEAST_TOKENS // cycle))
        start = len(output) - rounds * cycle
        if start >= 0 and all(output[place] == output[place + cycle] for place in range(start, len(output) - cycle)):
            return (rounds - 1) * cycle
    return 0


def out_of_loops(
    attempt: Callable[[tuple[int, ...], Barred], Asking[tuple[Output, T]]],
    draft: tuple[int, ...],
    barred: Barred = NOTHING_BARRED,
) -> Asking[tuple[Output, T]]:
    """Decode, and again for each loop in the output, with another token where the loop would start again.

    Args:
        attempt: decodes once, given a draft and the tokens that must not stand at some positions; stops at a loop.
        draft: draft of the first attempt.  The output before a loop is the draft of the next one.
        barred: what must not stand at some positions in any attempt.

    Returns:
        The last attempt, with the counts of all.
    """
    earlier, escapes = Output((), False), 0
    while True:
        found, more = yield from attempt(draft, barred)
        output = replace(
            found,
            passes=found.passes + earlier.passes,
            drafted=found.drafted + earlier.drafted,
            accepted=found.accepted + earlier.accepted,
            draft_passes=found.draft_passes + earlier.draft_passes,
        )
        place = len(output.tokens)
        if output.loop is None or place in barred or escapes == MOST_ESCAPES:
            return output, more
        draft, earlier, escapes = output.tokens, output, escapes + 1
        barred = {**barred, place: frozenset([output.loop])}
