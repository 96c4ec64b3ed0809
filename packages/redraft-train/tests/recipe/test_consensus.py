"""The output that samples agree on, and samples themselves."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")
pytest.importorskip("fastchrf", reason="needs recipe.txt of redraft-train")

from redraft_train.recipe.consensus import consensus  # noqa: E402
from redraft_train.recipe.generate import CANDIDATES, FLOOR, choose, epsilon_sample, greedy  # noqa: E402


@pytest.mark.parametrize(
    ("candidates", "best"),
    [
        (["Ein Hund bellt."], 0),
        (["Die Katze schläft.", "Der Hund bellt.", "Der Hund bellt.", "Ein Tier schläft."], 1),
        (["狗在叫", "一只狗在叫。", "一只狗在叫。"], 1),
        (["Gut gut gut gut gut gut", "Das ist gut.", "Das ist sehr gut.", "Das ist gut."], 1),
    ],
)
def test_one_most_like_others_wins(candidates: list[str], best: int) -> None:
    assert consensus(candidates) == best


def test_samples_follow_probabilities_of_probable_tokens() -> None:
    torch.manual_seed(0)
    probabilities = torch.tensor([0.6, 0.385, FLOOR * 0.75] + [0.0] * CANDIDATES)
    logits = probabilities.log().expand(4000, -1)
    drawn = torch.bincount(epsilon_sample(logits), minlength=3) / len(logits)
    assert drawn[2] == 0, "a token below the floor is never drawn"
    assert drawn[0] == pytest.approx(0.6 / 0.985, abs=0.03)
    assert greedy(logits).unique().tolist() == [0]


def test_improbable_tokens() -> None:
    logits = torch.zeros(3, 1000)
    logits[:, 7] = 1e-3
    assert epsilon_sample(logits).tolist() == [7, 7, 7]


def test_first_prompts_are_greedy_also_when_others_have_left() -> None:
    torch.manual_seed(0)
    logits = torch.tensor([0.6, 0.4] + [0.0] * CANDIDATES).log().expand(400, -1)
    rows = torch.randperm(1000)[:400]
    drawn = choose(logits, rows, 500)
    assert set(drawn[rows < 500].tolist()) == {0}
    assert set(drawn[rows >= 500].tolist()) == {0, 1}
