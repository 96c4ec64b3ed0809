"""Self-distilled prefix pairs: what a beginning supports, and examples made of it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the train extra is not installed")
pytest.importorskip("tokenizers", reason="the train extra is not installed")
pytest.importorskip("gguf", reason="the train extra is not installed")
pytest.importorskip("tqdm", reason="the train extra is not installed")

from recipe import distil as distilling  # noqa: E402
from recipe.calibrate import Calibration, best_outputs, draw  # noqa: E402
from recipe.corpus import Pair  # noqa: E402
from recipe.distil import Distillation, RecipeTeacher, distil, examples, translate  # noqa: E402
from recipe.examples import ExampleStream, Mixture  # noqa: E402
from recipe.export import write_gguf  # noqa: E402
from recipe.model import Decoder, Shape  # noqa: E402
from recipe.packed import Packed  # noqa: E402
from recipe.score import score  # noqa: E402
from recipe.tokenizer import EOS, train_tokenizer  # noqa: E402
from redraft.finetune.prefixes import Cuts, at_word_end, repeats, supported  # noqa: E402

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
    torch.set_num_threads(1)
    model = Decoder(SHAPE).eval()
    for matrix in (p for p in model.parameters() if p.ndim == 2):
        torch.nn.init.normal_(matrix, std=0.2)
    return model


class TestCuts:
    def test_an_output_is_supported_up_to_the_first_token_that_needs_the_rest(self) -> None:
        whole = np.array([-0.1, -0.2, -0.1, -3.0], np.float32)
        assert supported(whole, np.array([-0.2, -1.2, -2.7, -0.1], np.float32), 2.5) == 2
        assert supported(whole, np.array([-0.2, -1.2, -2.5, -0.1], np.float32), 2.5) == 4
        assert supported(whole, np.array([-9.0, -0.2, -0.1, -3.0], np.float32), 2.5) == 0
        assert supported(whole, whole, 0.0) == 4
        assert supported(whole[:0], whole[:0]) == 0

    def test_cuts_fall_between_words_or_whole_characters(self, tokenizer) -> None:
        text = "SEVEN THREE SIX"
        ids = tokenizer.encode(text).ids
        ends = {
            tokenizer.decode(ids[: at_word_end(ids, length, True, tokenizer.decode)]) for length in range(len(ids) + 1)
        }
        assert ends == {"", "SEVEN", "SEVEN THREE", text}
        ids = tokenizer.encode("鼠狼").ids
        assert len(ids) > 2  # characters of several tokens
        for length in range(len(ids) + 1):
            kept = at_word_end(ids, length, False, tokenizer.decode)
            assert kept <= length
            assert tokenizer.decode(ids[:kept]) in ("", "鼠", "鼠狼")


class TestCircles:
    def test_what_goes_round_in_circles_is_not_learnt(self, model: Decoder, tokenizer) -> None:
        circle = (40, 41, 42) * 3
        assert repeats(circle)
        assert not repeats((40, 41, 42) * 2)
        assert not repeats(())
        asked = [Calibration("de", False, (1, 40, 41, 5), circle), Calibration("de", False, (1, 42, 41, 5), (50, 51))]
        how = Cuts(beginnings=0, spoken=0.0)
        made = examples(RecipeTeacher(model, tokenizer), asked, how, random.Random(0))
        assert [ids[-3:-1] for ids, _start in made] == [[50, 51]]


class TestScore:
    def test_it_is_the_probability_without_the_end(self, model: Decoder, tokenizer) -> None:
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
    def test_targets_of_a_source_are_beginnings_of_one_translation(self, model: Decoder, pairs, tokenizer) -> None:
        asked = draw(pairs, tokenizer, 60, seed=0, held_out=False, mixture=Mixture(0.0))
        outputs = {each.prompt: each.reference for each in asked}
        part = [Calibration(e.language, False, e.prompt, e.reference) for e in asked]
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

    def test_a_language_may_have_a_tolerance_of_its_own(self, model: Decoder, pairs, tokenizer) -> None:
        asked = draw(pairs, tokenizer, 60, seed=0, held_out=False, mixture=Mixture(0.0))
        part = [Calibration(e.language, False, e.prompt, e.reference) for e in asked]

        def made(how: Cuts) -> list[list[int]]:
            found = examples(RecipeTeacher(model, tokenizer), part, how, random.Random(0))
            return [ids for ids, _start in found]

        strict = made(Cuts(spoken=0.0, tolerance=0.0))
        lax = made(Cuts(spoken=0.0, tolerance=9.0))
        mixed = made(Cuts(spoken=0.0, tolerance=9.0, tolerances={"de": 0.0}))
        german = tokenizer.token_to_id("<2de>")
        assert mixed == [one if german in one else other for one, other in zip(strict, lax, strict=True)]
        assert strict != mixed != lax

    def test_the_best_of_several_outputs_is_the_nearest_to_the_reference(
        self, model: Decoder, pairs, tokenizer
    ) -> None:
        group = [
            Calibration("de", False, (1, 40, 41, 5), reference=tuple(tokenizer.encode("ONE TWO").ids)),
            Calibration("de", False, (1, 50, 42, 5), reference=tuple(tokenizer.encode("SIX TWO").ids)),
        ]
        from sacrebleu.metrics import CHRF

        def nearness(samples: int) -> list[float]:
            outputs = best_outputs(model, tokenizer, samples, group)
            return [
                CHRF().sentence_score(tokenizer.decode(output or ()), [tokenizer.decode(each.reference)]).score
                for each, output in zip(group, outputs, strict=True)
            ]

        greedy, best = nearness(0), nearness(6)
        assert all(one <= other for one, other in zip(greedy, best, strict=True))

    def test_a_file_is_written_whole_and_read_again(
        self, model: Decoder, pairs, tokenizer, tmp_path, monkeypatch
    ) -> None:
        write_gguf(model, tokenizer, tmp_path / "teacher.gguf", "toy", {})

        def answered(teacher, asked, file, processes, samples):
            assert samples == 1
            return [Calibration(e.language, False, e.prompt, e.reference) for e in asked]

        monkeypatch.setattr(distilling, "calibrate", lambda t, _tokenizer, a, f, p, s: answered(t, a, f, p, s))
        how = Distillation(sources=30, samples=1, cuts=Cuts(beginnings=1))
        shares, files = {"de": 0.5, "zh": 0.3, "ja": 0.2}, [tmp_path / name for name in ("made.npz", "outputs.jsonl")]
        answers = translate(tmp_path / "teacher.gguf", pairs, shares, how, files[1], 1)
        assert len(answers) == 30
        distil(tmp_path / "teacher.gguf", answers, how, files[0], 1)
        made = Packed.load(tmp_path / "made.npz")
        tags = {language: tokenizer.token_to_id(f"<2{language}>") for language in pairs}
        assert {ids[start] for ids, start in made} == set(tags.values())
        assert len(made) > 30  # toy outputs that go round in circles are left out
        assert not (tmp_path / "made.part").exists()
        one = replace(how, learnt=("ja",))
        distil(tmp_path / "teacher.gguf", answers, one, tmp_path / "ja.npz", 1)
        assert {ids[start] for ids, start in Packed.load(tmp_path / "ja.npz")} == {tags["ja"]}
        given = {tuple(ids) for ids, _start in made}
        stream = ExampleStream({}, tokenizer, Mixture(0.0, given=1.0), 512, seed=0, given=made)
        end = tokenizer.token_to_id(EOS)
        batch = next(iter(stream))
        rows = [tuple(ids[: max(i for i, each in enumerate(ids) if each == end) + 1]) for ids in batch.ids.tolist()]
        assert set(rows) <= given
