"""What a model of the recipe teaches: examples with targets that beginnings of their sources support."""

from __future__ import annotations

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")
pytest.importorskip("fastchrf", reason="needs recipe.txt of redraft-train")

from redraft_train.prefixes import Cuts  # noqa: E402
from redraft_train.recipe.calibrate import Calibration, draw  # noqa: E402
from redraft_train.recipe.corpus import Pair  # noqa: E402
from redraft_train.recipe.examples import Mixture  # noqa: E402
from redraft_train.recipe.model import Decoder, Shape  # noqa: E402
from redraft_train.recipe.score import score  # noqa: E402
from redraft_train.recipe.teach import RecipeTeacher, examples  # noqa: E402
from redraft_train.recipe.tokenizer import EOS, train_tokenizer  # noqa: E402

WORDS = "one two three four five six seven".split()
SHAPE = Shape(300, hidden=32, layers=1, heads=1, feed_forward=32, head=32)


@pytest.fixture(scope="module")
def pairs() -> dict[str, list[Pair]]:
    generator = random.Random(0)
    texts = [" ".join(generator.choices(WORDS, k=generator.randint(3, 6))) for _ in range(200)]
    return {
        "de": [Pair(text, text.upper(), "de", 1.0) for text in texts],
        "zh": [Pair(text, text.replace(" ", "") + "猫犬", "zh", 1.0) for text in texts],
        "ja": [Pair(text, text.replace(" ", ""), "ja", 1.0) for text in texts],
    }


@pytest.fixture(scope="module")
def tokenizer(pairs):
    return train_tokenizer(pairs, SHAPE.vocabulary, 20_000)


@pytest.fixture(scope="module")
def model() -> Decoder:
    torch.manual_seed(0)
    model = Decoder(SHAPE).eval()
    for matrix in (p for p in model.parameters() if p.ndim == 2):
        torch.nn.init.normal_(matrix, std=0.2)
    return model


class TestCircles:
    def test_what_goes_round_in_circles_is_not_learnt(self, model: Decoder, tokenizer) -> None:
        circle = (40, 41, 42) * 3
        asked = [Calibration("de", False, (1, 40, 41, 5), circle), Calibration("de", False, (1, 42, 41, 5), (50, 51))]
        how = Cuts(beginnings=0, spoken=0.0)
        made = examples(RecipeTeacher(model, tokenizer), asked, how, random.Random(0))
        assert [ids[-3:-1] for ids, _start in made] == [[50, 51]]


class TestScore:
    def test_it_is_probability_without_end(self, model: Decoder, tokenizer) -> None:
        end = tokenizer.token_to_id(EOS)
        generator = random.Random(1)
        pairs = [
            ([generator.randrange(4, 300) for _ in range(generator.randint(1, 30))],
             [generator.randrange(4, 300) for _ in range(generator.randint(0, 20))])
            for _ in range(40)
        ]  # fmt: skip
        found = score(model, pairs, end)
        for (prompt, output), logs in zip(pairs, found, strict=True):
            assert logs.shape == (len(output),)
            with torch.no_grad():
                logits = model.logits(model.hidden(torch.tensor([prompt + output]))[0])
            logits[:, end] = -torch.inf
            expected = torch.log_softmax(logits, -1)[
                torch.arange(len(prompt) - 1, len(prompt) - 1 + len(output)), output
            ]
            assert np.allclose(logs, expected.numpy(), atol=0.15)  # scored in bf16


class TestExamples:
    def test_targets_of_source_are_beginnings_of_one_translation(self, model: Decoder, pairs, tokenizer) -> None:
        asked = draw(pairs, tokenizer, 60, seed=0, held_out=False, mixture=Mixture(0.0))
        outputs = {each.prompt: each.prompt[1:-1] for each in asked}  # the source again
        part = [Calibration(e.language, False, e.prompt, outputs[e.prompt]) for e in asked]
        how = Cuts(beginnings=3, spoken=0.0, tolerance=0.5)
        made = list(examples(RecipeTeacher(model, tokenizer), part, how, random.Random(0)))
        end = tokenizer.token_to_id(EOS)
        assert len(made) == len(asked) + 3 * sum(" " in tokenizer.decode(each.prompt) for each in asked)
        whole = [(ids, start) for ids, start in made if tuple(ids[: start + 1]) in outputs]
        assert len(whole) >= len(asked)
        shorter = 0
        for ids, start in made:
            assert ids[-1] == end
            target = tuple(ids[start + 1 : -1])
            source = tokenizer.decode(ids[: start + 1])
            begun = [
                output
                for prompt, output in outputs.items()
                if prompt[-1] == ids[start] and tokenizer.decode(prompt).startswith(source)
            ]
            assert any(output[: len(target)] == target for output in begun)
            shorter += not any(output == target for output in begun)
        assert shorter > 20
