"""What a line of a table is called."""

from __future__ import annotations

import pytest

from redraft.captions.events import Caption, Update
from redraft.captions.stabilise import Mask
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.measure import _Lines


@pytest.mark.parametrize(
    ("mask", "masking"),
    [
        (Mask(), ""),
        (Mask(display_only=False), ""),
        (Mask(3), "3 tokens"),
        (Mask(5, "words", display_only=False), "5 words, plain"),
        (Mask(margin=0), "below margin 0"),
        (Mask(2, margin=0.02), "2 tokens, below margin 0.02"),
        (Mask(0, display_only=False, margin=-0.1), "below margin -0.1, plain"),
    ],
)
def test_mask_is_named_by_all_that_it_hides(mask: Mask, masking: str) -> None:
    contender = Contender("ssbd", "de", (("beta", 0.2),), mask)
    assert contender.masking == masking
    assert contender.name == f"ssbd beta=0.2, {f'hides {masking}, ' if masking else ''}de"


def test_lines_never_change() -> None:
    contender = Contender("ssbd", "de", mask=Mask(margin=0), lines=0.0)
    assert contender.name == "ssbd, hides below margin 0, lines, 0 s, de"
    lines, shown = _Lines(contender), []
    text = "Sie sagten, dass sie morgen kommen, wenn es nicht regnet."
    for seq, part in enumerate((text[:20], text, text.replace("morgen", "heute"))):
        update = Update("0", seq, "source", seq == 2)
        shown.append(lines.of(Caption("0", seq, "de", part, final=update.final), update).text)
    assert shown[0] == "" and shown[1] == "Sie sagten, dass sie morgen kommen,"
    assert shown[2].startswith(shown[1]) and shown[2].endswith("regnet.")
