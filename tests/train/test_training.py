"""The recipe on a toy language: what is fast equals what is plain, training resumes, the export is the model."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the train extra is not installed")
pytest.importorskip("tokenizers", reason="the train extra is not installed")
pytest.importorskip("gguf", reason="the train extra is not installed")

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions  # noqa: E402
from redraft.train.corpus import FILES, Pair, held_out, source_weight  # noqa: E402
from redraft.train.examples import LENGTH_STEP, ExampleStream, Mixture, as_spoken, cut_in_proportion  # noqa: E402
from redraft.train.export import write_gguf  # noqa: E402
from redraft.train.loop import Phase, TiedCrossEntropy, Trainer, batch_loss  # noqa: E402
from redraft.train.model import Decoder, Shape, _attend  # noqa: E402
from redraft.train.recipe import LARGE, SMALL  # noqa: E402
from redraft.train.restart import read_model, read_tokenizer  # noqa: E402
from redraft.train.tokenizer import train_tokenizer  # noqa: E402
from redraft.types import Score  # noqa: E402

WORDS = "one two three four five six seven".split()
SHAPE = Shape(300, hidden=64, layers=2, heads=2, feed_forward=64, head=32)
PHASE = Phase(tokens=6_000, prefix=0.5, decay=0.5, batch=512, warmup_steps=2)


def toy_pairs() -> dict[str, list[Pair]]:
    generator = random.Random(0)
    pairs = {}
    for language in FILES:
        texts = [" ".join(generator.choices(WORDS, k=generator.randint(2, 6))) for _ in range(200)]
        pairs[language] = [Pair(text, text.upper(), language, 1.0) for text in texts]
    return pairs


@pytest.fixture(scope="module")
def pairs() -> dict[str, list[Pair]]:
    return toy_pairs()


@pytest.fixture(scope="module")
def tokenizer(pairs):
    return train_tokenizer(pairs, SHAPE.vocabulary, 20_000)


def test_chunked_cross_entropy_equals_the_plain_one() -> None:
    torch.manual_seed(0)
    hidden = torch.randn(300, 16).bfloat16().requires_grad_()
    weight = (torch.randn(50, 16) * 0.5).bfloat16().float().requires_grad_()
    targets = torch.randint(50, (300,))
    loss = TiedCrossEntropy.apply(hidden, weight, targets)
    loss.backward()
    plain_hidden, plain_weight = hidden.detach().float().requires_grad_(), weight.detach().clone().requires_grad_()
    plain = torch.nn.functional.cross_entropy(plain_hidden @ plain_weight.T, targets)
    plain.backward()
    assert loss.item() == pytest.approx(plain.item(), rel=2e-2)
    for fast, slow in [(hidden.grad, plain_hidden.grad), (weight.grad, plain_weight.grad)]:
        assert torch.nn.functional.cosine_similarity(fast.float().flatten(), slow.flatten(), dim=0) > 0.999


def test_written_out_attention_equals_torchs() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 7, 3, 16) for _ in range(3))
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in (query, key, value)), is_causal=True
    ).transpose(1, 2)
    torch.testing.assert_close(_attend(query, key, value), expected)


def test_the_future_is_not_seen() -> None:
    model = Decoder(SHAPE)
    ids = torch.arange(1, 11)[None]
    changed = ids.clone()
    changed[0, -1] = 99
    torch.testing.assert_close(model.hidden(ids)[0, :-1], model.hidden(changed)[0, :-1])


@pytest.mark.parametrize("language", ["de", "ja"])
def test_prefix_pairs_are_beginnings_in_proportion(language: str) -> None:
    generator = random.Random(1)
    for _ in range(50):
        source, target = cut_in_proportion(
            "a b c d e f", "u v w x y z" if language == "de" else "uvwxyz", language, generator
        )
        assert "a b c d e f".startswith(source)
        assert source != "a b c d e f"
        assert len(source.split()) == len(target.replace(" ", ""))


def test_spoken_sources_have_no_capitals_at_beginnings_and_no_punctuation() -> None:
    assert as_spoken("Tonight, I'm late. We know Tom!") == "tonight I'm late we know Tom"
    assert as_spoken("I saw 7:15 on it.") == "I saw 7:15 on it"
    assert as_spoken("...") == "..."


def test_batches_hold_whole_examples_and_learn_targets_only(pairs, tokenizer) -> None:
    stream = iter(ExampleStream(pairs, tokenizer, Mixture(0.5), 512, seed=0))
    end = tokenizer.token_to_id("</s>")
    tags = {tokenizer.token_to_id(f"<2{language}>") for language in FILES}
    for _ in range(20):
        batch = next(stream)
        assert batch.ids.size <= 512
        assert batch.ids.shape[1] % LENGTH_STEP == 0
        for row in range(len(batch.ids)):
            learnt = batch.columns[batch.rows == row]
            assert batch.ids[row, learnt[0]] in tags
            assert batch.ids[row, learnt[-1] + 1] == end
            assert not (set(batch.ids[row, learnt[1:]]) & tags)


def test_all_languages_are_drawn(pairs, tokenizer) -> None:
    stream = iter(ExampleStream(pairs, tokenizer, Mixture(0.0), 512, seed=0))
    seen = np.concatenate([next(stream).ids.flatten() for _ in range(60)])
    for language in FILES:
        assert (seen == tokenizer.token_to_id(f"<2{language}>")).sum() > 20


def test_training_learns_and_resumes_where_it_was(pairs, tokenizer, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    trainer = Trainer(SHAPE, PHASE)
    batch = next(iter(ExampleStream(pairs, tokenizer, Mixture(0.0), 512, seed=9)))
    before = batch_loss(trainer.model, batch, "cpu").item()
    trainer.run(pairs, tokenizer, tmp_path)
    after = batch_loss(trainer.model, batch, "cpu").item()
    assert after < before - 0.5
    assert trainer.tokens >= PHASE.tokens
    resumed = Trainer(SHAPE, PHASE)
    resumed.restore(tmp_path / "last.pt", new_phase=False)
    assert (resumed.tokens, resumed.step) == (trainer.tokens, trainer.step)
    assert batch_loss(resumed.model, batch, "cpu").item() == after
    branch = Trainer(SHAPE, PHASE)
    branch.restore(tmp_path / "last.pt", new_phase=True)
    assert (branch.tokens, branch.step) == (0, 0)
    assert batch_loss(branch.model, batch, "cpu").item() == after


def test_rates_warm_up_stay_and_decay() -> None:
    trainer = Trainer(SHAPE, Phase(tokens=1000, prefix=0, decay=0.4, warmup_steps=10))
    assert trainer.rate_scale() == pytest.approx(0.1)
    trainer.step, trainer.tokens = 100, 600
    assert trainer.rate_scale() == 1
    trainer.tokens = 800
    assert trainer.rate_scale() == pytest.approx(0.5)
    trainer.tokens = 1000
    assert trainer.rate_scale() == 0


def test_the_exported_model_is_the_trained_one(tokenizer, tmp_path: Path) -> None:
    torch.manual_seed(3)
    model = Decoder(SHAPE)
    write_gguf(model, tokenizer, tmp_path / "toy.gguf", "toy", {"general.license": "none"})
    backend = LlamaCpp(tmp_path / "toy.gguf", LlamaOptions(context_length=128, threads=1))
    text = "three FOUR 25, ünï 你好!"
    ids = backend.tokenize(text, start=True) + backend.tokenize("<2ja>", special=True)
    assert ids == [tokenizer.token_to_id("<s>"), *tokenizer.encode(text).ids, tokenizer.token_to_id("<2ja>")]
    rows = backend.score([(backend.open_slot(), Score(tuple(ids), prompt_rows=len(ids)))])[0]
    with torch.no_grad():
        expected = torch.log_softmax(model.logits(model.hidden(torch.tensor([ids]))[0]), dim=-1).numpy()
    for back in range(1, len(ids) + 1):
        for token in (0, 5, 100):
            assert rows.logprob(-back, token) == pytest.approx(float(expected[-back, token]), abs=5e-3)
    assert backend.metadata["redraft.target_languages"] == ",".join(FILES)
    backend.close()


def test_an_exported_model_can_be_trained_further(tokenizer, tmp_path: Path) -> None:
    model = Decoder(SHAPE)
    write_gguf(model, tokenizer, tmp_path / "toy.gguf", "toy", {})
    again = read_model(tmp_path / "toy.gguf")
    ids = torch.tensor([[1, 5, 9, 260]])
    torch.testing.assert_close(again.logits(again.hidden(ids)[0]), model.logits(model.hidden(ids)[0]))
    text = "three FOUR 25, ünï 你好!<2ja></s>"
    assert read_tokenizer(tmp_path / "toy.gguf").encode(text).ids == tokenizer.encode(text).ids


def test_the_small_model_is_at_most_a_fifth() -> None:
    large, small = (sum(p.numel() for p in Decoder(shape).parameters()) for shape in (LARGE, SMALL))
    assert small * 5 <= large
    assert LARGE.vocabulary == SMALL.vocabulary


def test_every_provenance_needs_a_weight() -> None:
    assert source_weight("bible:BSB-CUV1919") < source_weight("tatoeba")
    with pytest.raises(KeyError, match="no sampling weight for provenance 'novels'"):
        source_weight("novels")


def test_the_held_back_share_is_small_and_stable() -> None:
    kept = [text for text in map(str, range(20_000)) if held_out(text)]
    assert 40 < len(kept) < 180
    assert kept == [text for text in map(str, range(20_000)) if held_out(text)]
