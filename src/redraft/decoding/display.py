"""Which tokens of a partial output are shown: those on which successive outputs agree.

The end of a translation of half a sentence is a guess, and most of it is wrong.  *LocalAgreement-n* (Liu et al. 2020)
shows a token once n outputs in a row, for different sources, agree on everything up to it.  There it also fixes the
token for good; here it decides about the display only.  The hidden rest stays in the draft, and a shown token stands
until the output changes there.  Showing what is certain while everything is translated again is the idea of mask-k
(Arivazhagan et al. 2020), with a k that follows the outputs, as in the dynamic masks of Yao and Haffari (2020).

A token may also be shown *at first sight* (ours), as long as the new tokens up to it are probable together
(`redraft.decoding.followers`): waiting for a second output costs an update's time.

The agreement means something only if the outputs were free to differ, so `redraft` has no bias, or a small one, towards
what is hidden (`redraft.decoding.methods.ssbd`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Display:
    """What is shown of a partial translation; final ones are always shown.

    `redraft.decoding.method.Method.all_options` has the ranges.

    Attributes:
        agree: number of outputs in a row that must agree on a token, from 1 (shows all) to 10.
        first_sight: least joint probability of the new tokens up to a token, from 0 to 1, with which it is shown at
            first sight; 1 turns this off.
        mask_k: number of tokens at the end that are always hidden (mask-k).
        plain: whether these are removed from the draft too (Arivazhagan et al. 2020; upper half of Table 4 in SSBD v2)
            instead of from the display only (section 3.4).

    """

    agree: int = 1
    first_sight: float = 1.0
    mask_k: int = 0
    plain: bool = False

    @classmethod
    def of(cls, options: Mapping[str, float | str]) -> Display:
        """Return what the checked options of a method say."""
        agree, mask_k = int(options["agree"]), int(options["mask_k"])
        return cls(agree, float(options["first_sight"]), mask_k, bool(options["plain"]))
