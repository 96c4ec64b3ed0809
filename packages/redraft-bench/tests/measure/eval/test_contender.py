"""Names of the lines of a table."""

from __future__ import annotations

import pytest

from redraft.captions.events import Caption, Update
from redraft.decoding.method import Value
from redraft.decoding.methods import get_method
from redraft_bench.eval.contender import Contender, label
from redraft_bench.eval.measure import _Lines


@pytest.mark.parametrize(
    ("method", "options", "shows"),
    [
        ("ssbd", {}, ""),
        ("ssbd", {"mask_k": 3}, "mask 3"),
        ("ssbd", {"mask_k": 3, "plain": 1}, "mask 3, plain"),
        ("redraft", {}, "2 agree, first sight 0.4"),
        ("redraft", {"agree": 1, "first_sight": 1}, ""),
        ("redraft", {"agree": 3, "first_sight": 0.9}, "3 agree, first sight 0.9"),
        ("local-agreement", {}, ""),  # a peer shows what it shows
    ],
)
def test_display_is_named(method: str, options: dict[str, float], shows: str) -> None:
    contender = Contender(method, "de", (("beta", 0.2), *options.items()))
    assert contender.shows == shows
    assert contender.name == f"{method} beta=0.2, {f'shows {shows}, ' if shows else ''}de"


def test_lines_never_change() -> None:
    contender = Contender("ssbd", "de", (("agree", 2),), lines=0.0)
    assert contender.name == "ssbd, shows 2 agree, lines, 0 s, de"
    lines, shown = _Lines(contender), []
    text = "Sie sagten, dass sie morgen kommen, wenn es nicht regnet."
    for seq, part in enumerate((text[:20], text, text.replace("morgen", "heute"))):
        update = Update("0", seq, "source", seq == 2)
        shown.append(lines.of(Caption("0", seq, "de", part, final=update.final), update).text)
    assert shown[0] == "" and shown[1] == "Sie sagten, dass sie morgen kommen,"
    assert shown[2].startswith(shown[1]) and shown[2].endswith("regnet.")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ""),
        ({"plain": 1}, ""),
        ({"first_sight": 0.5}, ""),  # everything is shown anyway
        ({"agree": 2}, "2 agree"),
        ({"agree": 2, "first_sight": 0.7}, "2 agree, first sight 0.7"),
        ({"mask_k": 3}, "mask 3"),
        ({"agree": 3, "first_sight": 0.9, "mask_k": 2, "plain": 1}, "3 agree, first sight 0.9, mask 2, plain"),
    ],
)
def test_label(options: dict[str, Value], words: str) -> None:
    assert label(get_method("ar").check(options)) == words
