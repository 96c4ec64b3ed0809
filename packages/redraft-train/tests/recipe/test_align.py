"""Prediction alignment on a toy language: the cached decoder is the plain one, and the small model learns to follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")
pytest.importorskip("fastchrf", reason="needs recipe.txt of redraft-train")

import gguf  # noqa: E402

from recipe.toys import toy_pairs, write_pairs  # noqa: E402
from redraft.backends.llamacpp import LlamaCpp  # noqa: E402
from redraft.backends.options import LlamaOptions  # noqa: E402
from redraft.decoding.decode import decode  # noqa: E402
from redraft.decoding.drafters import Nothing  # noqa: E402
from redraft.decoding.drive import run  # noqa: E402
from redraft.decoding.rules import Exact  # noqa: E402
from redraft.decoding.types import Prompt  # noqa: E402
from redraft.errors import CapabilityError, ModelError  # noqa: E402
from redraft_bench.eval.spoken import held_out  # noqa: E402
from redraft_train.recipe import calibrate  # noqa: E402
from redraft_train.recipe.agreement import GivenExamples, agreement  # noqa: E402
from redraft_train.recipe.align import (  # noqa: E402
    Settings,
    align,
    common_tokenizer,
    figures,
    fine_tune,
)
from redraft_train.recipe.calibrate import Calibration, batches, draw, limit, outputs  # noqa: E402
from redraft_train.recipe.corpus import LANGUAGES, Pair  # noqa: E402
from redraft_train.recipe.examples import Mixture  # noqa: E402
from redraft_train.recipe.export import write_gguf  # noqa: E402
from redraft_train.recipe.generate import generate  # noqa: E402
from redraft_train.recipe.loop import Phase, Trainer  # noqa: E402
from redraft_train.recipe.model import Decoder, Shape  # noqa: E402
from redraft_train.recipe.restart import open_gguf, read_model, read_tokenizer  # noqa: E402
from redraft_train.recipe.tokenizer import EOS, train_tokenizer  # noqa: E402
from tests.gguf_models import write_llama  # noqa: E402

MIXTURE = Mixture(0.5, 0.3)
LARGE = Shape(300, hidden=64, layers=2, heads=2, feed_forward=64, head=32)
SMALL = Shape(300, hidden=32, layers=1, heads=1, feed_forward=32, head=32)


@pytest.fixture(scope="module")
def pairs():
    return toy_pairs(900, shortest=3)


@pytest.fixture(scope="module")
def tokenizer(pairs):
    return train_tokenizer(pairs, LARGE.vocabulary, 20_000)


@pytest.fixture(scope="module")
def toys(pairs, tokenizer, tmp_path_factory) -> Path:
    """A folder with large.gguf, which copies some words, small.gguf, which knows nothing, and data/train."""
    folder = tmp_path_factory.mktemp("toys")
    trainer = Trainer(LARGE, Phase(tokens=80_000, prefix=0.5, decay=0.5, batch=512, warmup_steps=5))
    trainer.run(pairs, tokenizer, folder / "checkpoints")
    write_gguf(trainer.model, tokenizer, folder / "large.gguf", "toy", {})
    write_gguf(Decoder(SMALL), tokenizer, folder / "small.gguf", "toy-small", {})
    write_pairs(folder / "data", pairs)
    return folder


def settings(toys: Path, out: Path, **changed) -> Settings:
    made = {"sentences": 60, "held_out": 6, "tokens": 12_000, "format": "F32", "languages": ("de", "ja"), **changed}
    return Settings(toys / "large.gguf", toys / "small.gguf", toys / "data", out, **made)


def plainly(model: Decoder, prompt: list[int], end: int, most: int) -> list[int] | None:
    """Greedy decoding without a cache."""
    ids = list(prompt)
    for _ in range(most):
        with torch.no_grad():
            token = int(model.logits(model.hidden(torch.tensor([ids]))[0, -1]).argmax())
        if token == end:
            return ids[len(prompt) :]
        ids.append(token)
    return None


def decided(seed: int) -> Decoder:
    """Return a random model whose outputs differ in length."""
    torch.manual_seed(seed)
    model = Decoder(Shape(12, hidden=32, layers=2, heads=2, feed_forward=32, head=16)).double()
    for matrix in (p for p in model.parameters() if p.ndim == 2):
        torch.nn.init.normal_(matrix, std=0.6)
    return model


class TestGreedy:
    @pytest.mark.parametrize("seed", range(4))
    def test_cached_decoder(self, seed: int) -> None:
        model = decided(seed)
        prompts = torch.randint(12, (16, 5))
        found = generate(model, prompts, end=3, limit=12)
        assert found == [plainly(model, prompt, 3, 12) for prompt in prompts.tolist()]
        lengths = {None if output is None else len(output) for output in found}
        assert len(lengths) > 2  # rows have left the batch at different steps, so the cache was cut more than once

    @pytest.mark.parametrize("seed", range(4))
    def test_padding_on_the_left_changes_nothing(self, seed: int) -> None:
        model = decided(seed)
        prompts = [torch.randint(12, (int(length),)).tolist() for length in torch.randint(1, 8, (16,))]
        padding = [7 - len(prompt) for prompt in prompts]
        padded = torch.tensor([[5] * left + prompt for left, prompt in zip(padding, prompts, strict=True)])
        found = generate(model, padded, end=3, limit=12, padding=torch.tensor(padding))
        assert found == [plainly(model, prompt, 3, 12) for prompt in prompts]

    def test_end_at_limit_counts_and_one_later_does_not(self) -> None:
        model = Decoder(LARGE)
        prompt = [1, 5, 9]
        written = plainly(model, prompt, -1, 6)
        assert written is None
        ids = list(prompt)
        for _ in range(6):
            with torch.no_grad():
                ids.append(int(model.logits(model.hidden(torch.tensor([ids]))[0, -1]).argmax()))
        end = ids[3:].index(ids[-1])  # the first place of the id that the output ends with
        assert generate(model, torch.tensor([prompt]), ids[-1], end + 1) == [ids[3 : 3 + end]]
        if end:
            assert generate(model, torch.tensor([prompt]), ids[-1], end) == [None]

    def test_it_is_what_engine_decodes(self, toys: Path, tokenizer) -> None:
        model = read_model(toys / "large.gguf")
        backend = LlamaCpp(toys / "large.gguf", LlamaOptions(context_length=256, threads=1, exact=True))
        (end,) = backend.end_tokens
        for text in ("red blue", "fish dog sun tree", "cat"):
            prompt = backend.tokenize(text, start=True) + backend.tokenize("<2de>", special=True)
            slot = backend.open_slot()
            asking = decode(Prompt(tuple(prompt)), Nothing(), Exact(), end_tokens=backend.end_tokens, limit=40)
            output = run(asking, backend, slot)
            backend.close_slot(slot)
            assert output.finished
            assert generate(model, torch.tensor([prompt]), end, 41) == [list(output.tokens)]
        backend.close()


class TestCalibration:
    def test_calibration_sources(self, pairs, tokenizer) -> None:
        drawn = draw(pairs, tokenizer, 300, seed=1, held_out=False, mixture=MIXTURE)
        assert len(drawn) == len({each.prompt for each in drawn}) == 300
        assert {each.language for each in drawn} == set(LANGUAGES)
        assert all(tokenizer.id_to_token(each.prompt[-1]) == f"<2{each.language}>" for each in drawn)
        assert all(tokenizer.id_to_token(each.prompt[0]) == "<s>" for each in drawn)
        whole = {pair.source for of_language in pairs.values() for pair in of_language}
        sources = [tokenizer.decode(each.prompt) for each in drawn]
        assert 0.2 < sum(source in whole for source in sources) / 300 < 0.8
        assert any(len(source.split()) > 6 for source in sources)
        assert draw(pairs, tokenizer, 300, seed=1, held_out=False, mixture=MIXTURE) == drawn
        assert draw(pairs, tokenizer, 300, seed=2, held_out=False, mixture=MIXTURE) != drawn


class TestReuse:
    """The file of outputs, with decoding in this process."""

    @pytest.fixture
    def asked(self, pairs, tokenizer) -> list[Calibration]:
        return draw(pairs, tokenizer, 40, seed=3, held_out=False, mixture=MIXTURE)

    @pytest.fixture
    def decoded(self, toys: Path, tokenizer, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
        """Every prompt that is really decoded."""
        seen: list[tuple[int, ...]] = []

        def answered(large, missing, processes):
            model, end = read_model(large), tokenizer.token_to_id(EOS)
            for group in batches(missing):
                seen.extend(each.prompt for each in group)
                yield group, outputs(model, end, group)

        monkeypatch.setattr(calibrate, "_answered", answered)
        return seen

    def test_outputs_are_kept_and_used_again(self, toys: Path, tokenizer, asked, decoded, tmp_path: Path) -> None:
        file = tmp_path / "outputs.jsonl"
        first = calibrate.calibrate(toys / "large.gguf", tokenizer, asked, file, 1)
        assert [each.prompt for each in first] == [each.prompt for each in asked]
        assert sorted(decoded) == sorted(each.prompt for each in asked)
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()[1:]]
        assert {row["source"] for row in rows} == {tokenizer.decode(each.prompt) for each in asked}
        del decoded[:]
        assert calibrate.calibrate(toys / "large.gguf", tokenizer, asked, file, 1) == first
        assert decoded == []

    def test_run_that_was_cut_off_goes_on(self, toys: Path, tokenizer, asked, decoded, tmp_path: Path) -> None:
        file = tmp_path / "outputs.jsonl"
        first = calibrate.calibrate(toys / "large.gguf", tokenizer, asked, file, 1)
        whole = file.read_bytes()
        lines = whole.splitlines(keepends=True)
        file.write_bytes(b"".join(lines[:11]) + lines[11][:-5])
        del decoded[:]
        assert calibrate.calibrate(toys / "large.gguf", tokenizer, asked, file, 1) == first
        assert len(decoded) == 30
        assert sorted(file.read_bytes().splitlines()) == sorted(whole.splitlines())


class TestAgreement:
    def test_model_agrees_with_itself_and_another_does_not(self, toys: Path, pairs, tokenizer) -> None:
        large, small = (read_model(toys / f"{name}.gguf") for name in ("large", "small"))
        end = tokenizer.token_to_id(EOS)
        prompts = [each.prompt for each in draw(pairs, tokenizer, 40, seed=4, held_out=False, mixture=MIXTURE)]
        examples = []
        for prompt in prompts:
            (output,) = generate(large, torch.tensor([prompt]), end, limit(prompt))
            if output is not None:
                examples.append(Calibration("de", True, prompt, tuple(output)).example(end))
        assert len(examples) > 20
        once = list(GivenExamples(examples, tokenizer, 256, seed=0).once())
        itself = agreement(large, iter(once))
        assert itself.positions == sum(len(ids) - 1 - start for ids, start in examples)
        assert itself.agreement == 1
        assert 0 < itself.cross_entropy < agreement(small, iter(once)).cross_entropy
        assert agreement(small, iter(once)).agreement < 0.5
        fast = Phase(tokens=20_000, prefix=0, decay=1.0, batch=256, rate=1e-2, embedding_rate=1e-2, warmup_steps=3)
        tuned = agreement(fine_tune(small, examples, tokenizer, fast), iter(once))
        assert tuned.agreement > agreement(small, iter(once)).agreement + 0.1


def test_what_is_learnt_was_not_held_out(toys: Path, tmp_path: Path, tokenizer, monkeypatch) -> None:
    given = {}

    def drawn(pairs, _tokenizer, number, seed, *, held_out, mixture):
        given[held_out] = (pairs, number, seed)
        return []

    monkeypatch.setattr("redraft_train.recipe.align.draw", drawn)
    with pytest.raises(ModelError, match="did not finish any of its 0 outputs"):
        align(settings(toys, tmp_path / "out.gguf", seed=7))
    for kept_back, wanted in ((False, 60), (True, 6)):
        pairs, number, seed = given[kept_back]
        assert (number, seed, list(pairs)) == (wanted, 7, ["de", "ja"])
        assert all(held_out(pair.source) == kept_back for of_language in pairs.values() for pair in of_language)


class TestRefusals:
    def test_what_recipe_has_not_made(self, toys: Path, tmp_path: Path) -> None:
        open_gguf(toys / "large.gguf")
        cut = tmp_path / "cut.gguf"
        cut.write_bytes((toys / "large.gguf").read_bytes()[:4000])
        for path, words in (
            (write_llama(tmp_path / "other.gguf"), "'other.gguf' was not made by this recipe: use demo, demo-tiny or"),
            (cut, "cannot be read"),
            (tmp_path / "none.gguf", "cannot be read: No such file"),
            (tmp_path, "cannot be read: Is a directory"),
        ):
            with pytest.raises(ModelError, match=words):
                open_gguf(path)

    def test_vocabularies_that_differ(self, toys: Path, pairs, tokenizer, tmp_path: Path) -> None:
        assert common_tokenizer(toys / "large.gguf", toys / "small.gguf").to_str() == (
            read_tokenizer(toys / "small.gguf").to_str()
        )
        swapped = {language: [Pair(p.target, p.source, p.language, 1.0) for p in pairs[language]] for language in pairs}
        for name, other in (
            ("fewer", train_tokenizer(pairs, 290, 20_000)),
            ("other", train_tokenizer({**swapped, "de": swapped["de"][:3]}, 300, 2_000)),
        ):
            size = other.get_vocab_size()
            write_gguf(Decoder(Shape(size, 32, 1, 1, 32, 32)), other, tmp_path / f"{name}.gguf", name, {})
        with pytest.raises(CapabilityError, match=r"290 tokens and the large one 300; they must share one vocabulary"):
            common_tokenizer(toys / "large.gguf", tmp_path / "fewer.gguf")
        with pytest.raises(CapabilityError, match="vocabulary differs from the large one's, though both have 300"):
            common_tokenizer(toys / "large.gguf", tmp_path / "other.gguf")

    def test_large_model_that_ends_nothing(self, toys: Path, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setattr(
            "redraft_train.recipe.align.calibrate", lambda _large, _tokenizer, asked, _file, _processes: asked
        )
        with pytest.raises(ModelError, match=r"model 'large.gguf' did not finish any of its \d+ outputs"):
            align(settings(toys, tmp_path / "out.gguf"))


def test_alignment_from_data_to_file(toys: Path, tmp_path: Path) -> None:
    """The whole of it, with two processes that decode, and two that train together."""
    wanted = settings(toys, tmp_path / "out.gguf", processes=2, held_out=20)
    rows, drawn = align(wanted)
    assert [row.target_language for row in rows] == ["de", "ja"]
    assert len(drawn) == 12
    for row in rows:
        assert row.sentences > 0 and row.before.positions == row.after.positions > 0
        assert row.after.cross_entropy < row.before.cross_entropy - 0.05
    (first, second) = figures(rows)
    assert first["agreement_after"] == round(rows[0].after.agreement, 4)
    assert second["target_language"] == "ja"
    lines = wanted.calibration.read_text("utf-8").splitlines()[1:]
    unfinished = sum(json.loads(line)["output"] is None for line in lines)
    assert unfinished == sum(row.unfinished for row in rows)
    fields = gguf.GGUFReader(wanted.out).fields
    assert fields["general.name"].contents() == "toy-small-aligned"
    assert "large.gguf" in fields["general.description"].contents()
    assert read_tokenizer(wanted.out).to_str() == read_tokenizer(toys / "small.gguf").to_str()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.calibration.jsonl", "out.gguf"]
