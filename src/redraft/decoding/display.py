"""Which tokens of a partial output are shown: those on which successive outputs agree.

The end of a translation of half a sentence is a guess, and most of it is wrong.  *LocalAgreement-n* (Liu et al. 2020)
shows a token once n outputs in a row, for different sources, agree on everything up to it.  There it also fixes the
token for good; here it decides about the display only.  The hidden rest stays in the draft, and a shown token stands
until the output changes there.  Showing what is certain while everything is translated again is the idea of mask-k
(Arivazhagan et al. 2020), with a k that follows the outputs, as in the dynamic masks of Yao and Haffari (2020).

A token may also be shown at first sight (ours): if the model prefers it to every other one by a large *lead*, a second
output would hardly change it, and waiting for one costs an update's time.

The agreement means something only if the outputs were free to differ, so `redraft` has no bias, or a small one, towards
what is hidden (`redraft.decoding.rules.biased`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from redraft.decoding.types import ROOT, Draft, Rows, Rule, Verdict, biases_of, common_prefix
from redraft.errors import OptionError


@dataclass(frozen=True, slots=True)
class Display:
    """What is shown of a partial translation; final ones are always shown.

    Attributes:
        agree: number of outputs in a row that must agree on a token, from 1 (shows all) to 10.
        lead: minimum lead in probability over every other token, from 0 to 1, with which a token is shown at first
            sight; 1 turns this off.
        mask_k: number of tokens at the end that are always hidden (mask-k).
        plain: whether these are removed from the draft too (Arivazhagan et al. 2020; upper half of Table 4 in SSBD v2)
            instead of from the display only (section 3.4).

    Raises:
        OptionError: a value is out of range.
    """

    agree: int = 1
    lead: float = 1.0
    mask_k: int = 0
    plain: bool = False

    def __post_init__(self) -> None:
        for name, low, high in (("agree", 1, 10), ("mask_k", 0, None)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low or (high and value > high):
                bounds = f"from {low} to {high}" if high else f"of {low} or more"
                raise OptionError(f"must be a whole number {bounds}, not {value!r}", name)
        if isinstance(self.lead, bool) or not isinstance(self.lead, int | float) or not 0 <= self.lead <= 1:
            raise OptionError(f"must be a number from 0 to 1, not {self.lead!r}", "lead")

    @property
    def label(self) -> str:
        """The display in words, e.g. ``2 agree, lead 0.7``; empty if everything is shown."""
        parts = [f"{self.agree} agree"] if self.agree > 1 else []
        parts += [f"lead {self.lead:g}"] if self.agree > 1 and self.lead < 1 else []
        parts += [f"mask {self.mask_k}{', plain' if self.plain else ''}"] if self.mask_k else []
        return ", ".join(parts)


class Confirmed:
    """Applies another rule, and counts the tokens of the output that may be shown.

    Args:
        rule: the rule to apply.
        agreed: the tokens on which the earlier outputs agree; those that this output repeats are confirmed.
        lead: lead that confirms any other token, see `Display`.

    Attributes:
        count: number of tokens before the first one that is not confirmed, including an end token.
    """

    def __init__(self, rule: Rule, agreed: tuple[int, ...], lead: float) -> None:
        self._rule, self._agreed, self._lead = rule, agreed, lead
        self._output: tuple[int, ...] = ()
        self.count = 0

    def biases(self, draft: Draft) -> tuple[float, ...] | None:
        """Return the rule's bias towards each draft token; None if it has none."""
        return biases_of(self._rule, draft)

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Return the verdict of the rule."""
        verdict = self._rule.judge(draft, rows)
        before = len(self._output)
        new = [draft.tokens[node] for node in verdict.accepted]
        new += () if verdict.token is None else (verdict.token,)
        self._output += tuple(new)
        if self.count == before:  # nothing after the first unconfirmed token is shown
            same = common_prefix(self._output, self._agreed)
            for node, token in zip((ROOT, *verdict.accepted), new, strict=False):
                if self.count >= same and not self._leads(rows, node, token):
                    break
                self.count += 1
        return verdict

    def _leads(self, rows: Rows, node: int, token: int) -> bool:
        # The ranking costs less than probabilities, and decides most cases.
        return self._lead < 1 and token == rows.argmax(node) and lead_of(rows, node, token) >= self._lead


def lead_of(rows: Rows, node: int, token: int) -> float:
    """Return the probability of ``token`` after ``node`` minus that of the best other token, from -1 to 1.

    It is below 0 for a token that a bias has kept, and then at least -beta / (1 - beta).
    """
    (best, first), *others = rows.top_k(node, 2)
    if token == best:
        return math.exp(first) - (math.exp(others[0][1]) if others else 0.0)
    return math.exp(rows.logprob(node, token)) - math.exp(first)
