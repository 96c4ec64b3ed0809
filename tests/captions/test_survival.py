"""The display that shows the beginning which is likely enough to stay."""

from __future__ import annotations

import math

import pytest

from redraft import Caption, Translator, Update
from redraft.backends.llamacpp import LlamaOptions
from redraft.captions.stabilise import Mask, stabilise, surviving
from redraft.decoding.accept.biased import Biased
from redraft.decoding.accept.margins import Margins
from redraft.decoding.decode import decode
from redraft.decoding.draft.previous import PreviousOutput
from redraft.decoding.drive import run
from redraft.errors import OptionError
from tests.fakes import RandomModel


def test_what_counts_is_that_all_tokens_stay_together() -> None:
    margins, ages = [0.5] * 40, [3] * 40
    one = 1 / (1 + math.exp(-(4.2 + 3.1 * math.sqrt(0.5) - 1.85 / 4 - 1.6 / 40)))
    shown = surviving(margins, ages, 0.9)
    assert 0 < shown < 40
    assert one**shown == pytest.approx(0.9, abs=0.02)


def test_doubt_youth_and_the_end_are_less_likely_to_stay() -> None:
    settled = surviving([0.9] * 10, [5] * 10, 0.9)
    assert surviving([0.9] * 4 + [-0.2] + [0.9] * 5, [5] * 10, 0.9) == 4 < settled
    assert surviving([0.3] * 10, [0] * 10, 0.8) < surviving([0.3] * 10, [5] * 10, 0.8)
    assert surviving([0.01] * 3, [5] * 3, 0.93) < surviving([0.01] * 30, [5] * 30, 0.93)
    assert surviving([], [], 0.8) == 0


@pytest.mark.parametrize("least", [0.5, 0.8, 0.95])
def test_more_is_hidden_the_likelier_it_has_to_be(least: float) -> None:
    margins = [0.9, 0.4, 0.1, 0.6, -0.05, 0.8, 0.02]
    assert surviving(margins, [2] * 7, least) >= surviving(margins, [2] * 7, least + 0.04)


@pytest.mark.parametrize("survival", [0, 1, -0.5, "0.8", True])
def test_a_survival_is_a_probability_between_none_and_all(survival: object) -> None:
    with pytest.raises(OptionError, match="mask survival must be a number above 0 and below 1"):
        Mask(survival=survival)  # type: ignore[arg-type]


def test_margin_and_survival_exclude_each_other() -> None:
    with pytest.raises(OptionError, match="exclude each other"):
        Mask(margin=0.0, survival=0.8)


def test_what_is_shown_stays_and_a_final_is_shown_whole() -> None:
    pieces, mask = [b"a", b" b", b" c"], Mask(survival=0.8)
    assert stabilise(pieces, mask, final=False, sure=1).shown == "a"
    assert stabilise(pieces, mask, final=False, sure=1, standing=2).shown == "a b"
    assert stabilise(pieces, mask, final=True, sure=0).shown == "a b c"
    assert stabilise(pieces, mask, final=False, sure=1).draft_length == 3


@pytest.mark.parametrize("seed", range(8))
def test_the_margin_of_every_token_is_noted_and_nothing_else_changes(seed: int) -> None:
    model, prompt, previous = RandomModel(seed, vocabulary=7), (1, 2, 3), (2, 4, 1, 5, 3)
    outputs = []
    for watched in (False, True):
        rule = Biased(0.2, 0.0, model.end_tokens)
        noted = Margins(rule)
        asking = decode(
            prompt,
            PreviousOutput(),
            noted if watched else rule,
            previous=previous,
            end_tokens=model.end_tokens,
            limit=12,
        )
        outputs.append(run(asking, model, model.open_slot()))
    assert outputs[0].tokens == outputs[1].tokens
    assert len(noted.margins) == len(outputs[1].tokens) + outputs[1].finished
    assert all(-0.25 - 1e-9 <= each <= 1 for each in noted.margins)


def test_a_session_shows_what_survives_and_drafts_all_of_it() -> None:
    updates = [Update("1", seq, "I have a small black dog that barks"[: 8 + 9 * seq], seq == 3) for seq in range(4)]
    shown: dict[float | None, list[Caption]] = {}
    for survival in (None, 0.8, 0.999):
        with Translator.open(
            "demo-tiny", to=["de"], mask=Mask(survival=survival), engine=LlamaOptions(256, threads=1)
        ) as found:
            shown[survival] = [
                each for update in updates for each in found.translate(update) if isinstance(each, Caption)
            ]
    whole = [each.text + each.unstable for each in shown[None]]
    for survival in (0.8, 0.999):
        joined = ["".join((each.text + each.unstable).split()) for each in shown[survival]]
        assert joined == ["".join(each.split()) for each in whole]  # the display changes no output
        assert shown[survival][-1].text == whole[-1]
    lengths = [sum(len(each.text) for each in shown[survival]) for survival in (None, 0.8, 0.999)]
    assert lengths[0] >= lengths[1] > lengths[2]
