"""The draft in a request, and its remaining part.  Standard library only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

#: Names of the fields in ``vllm_xargs``.
DRAFT, BIAS = "ssbd_draft", "ssbd_bias"


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft of a whole output.

    Attributes:
        tokens: its ids.
        bias: strength of the bias, in [0, 1], beta of the SSBD paper: one for all tokens, or one for each.
    """

    tokens: Sequence[int]
    bias: float | Sequence[float] = 0.0

    @classmethod
    def of(cls, extra_args: Mapping[str, Any] | None) -> Draft | None:
        """Return the draft of a validated request; None if it has none."""
        if not extra_args or DRAFT not in extra_args:
            return None
        return cls(extra_args[DRAFT], extra_args.get(BIAS, 0.0))

    def margin(self, place: int) -> float:
        """Return the maximum difference in probability to the best token of the drafted token number ``place``.

        This is beta / (1 - beta), unlimited from beta = 0.5.  The paper accepts the argmax of (1 - beta) P + beta
        delta(draft) (SSBD v2, equation 3), which is the drafted token if and only if p_max - p_draft is at most this.
        """
        bias = self.bias[place] if isinstance(self.bias, Sequence) else self.bias
        return math.inf if bias >= 0.5 else bias / (1 - bias)

    def rest(self, output: Sequence[int], most: int) -> list[int]:
        """Return up to ``most`` drafted tokens that follow an output; none once the output has left the draft."""
        done = len(output)
        if done >= len(self.tokens) or most <= 0 or list(self.tokens[:done]) != list(output):
            return []
        return list(self.tokens[done : done + most])

    def judged(self, output: Sequence[int], scheduled: Sequence[int]) -> list[int]:
        """Return the drafted token that each row of a step decides about.

        Args:
            output: the ids so far.
            scheduled: the ids that the step runs after it; there is one more row, the first after the last output id.

        Returns:
            A drafted token for each row, from the first one, as long as the rows follow the draft.
        """
        rest = self.rest(output, len(scheduled) + 1)
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(rest, scheduled, strict=False))))
        return rest[: same + 1]


def problem(extra_args: Mapping[str, Any] | None, vocabulary_size: int) -> str:
    """Return what is wrong with the draft of a request, in one sentence; empty if nothing is."""
    if not extra_args or not (DRAFT in extra_args or BIAS in extra_args):
        return ""
    tokens, bias = extra_args.get(DRAFT), extra_args.get(BIAS, 0.0)
    if not isinstance(tokens, list) or not all(_is_id(token, vocabulary_size) for token in tokens):
        return f"{DRAFT} must be a list of ids from 0 to {vocabulary_size - 1}"
    biases = bias if isinstance(bias, list) else [bias]
    if not all(map(_is_bias, biases)) or (biases is bias and len(biases) != len(tokens)):
        return f"{BIAS} must be a number from 0 to 1, or a list with one for each id of {DRAFT}, not {bias!r}"
    return ""


def _is_bias(value: object) -> bool:
    # Written so that NaN, which compares false with everything, is rejected too.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_id(value: object, vocabulary_size: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < vocabulary_size
