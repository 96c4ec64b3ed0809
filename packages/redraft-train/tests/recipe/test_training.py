"""The recipe on a toy language: fast and plain code agree, training resumes, the export equals the model."""

from __future__ import annotations

import gzip
import os
import random
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")
pytest.importorskip("fastchrf", reason="needs recipe.txt of redraft-train")

from recipe.toys import toy_pairs, write_pairs  # noqa: E402
from redraft.backends.llamacpp import LlamaCpp  # noqa: E402
from redraft.backends.options import LlamaOptions  # noqa: E402
from redraft.decoding.types import Score  # noqa: E402
from redraft.errors import InputError, OptionError  # noqa: E402
from redraft_bench.eval.spoken import held_out  # noqa: E402
from redraft_train.recipe.corpus import (  # noqa: E402
    ALIKE,
    LANGUAGES,
    SAME_OPENING,
    SOURCE_WEIGHTS,
    Pair,
    Thinning,
    cached_split,
    kind_and_weight,
    read_pairs,
)
from redraft_train.recipe.examples import LENGTHS, ExampleStream, Mixture, cut_in_proportion  # noqa: E402
from redraft_train.recipe.export import write_gguf  # noqa: E402
from redraft_train.recipe.loop import Hardware, Phase, Trainer  # noqa: E402
from redraft_train.recipe.loss import TiedCrossEntropy, batch_loss, softmax_slope  # noqa: E402
from redraft_train.recipe.model import Decoder, Dropout, Shape, _attend  # noqa: E402
from redraft_train.recipe.recipe import LARGE, TINY  # noqa: E402
from redraft_train.recipe.restart import read_model, read_tokenizer  # noqa: E402
from redraft_train.recipe.tokenizer import train_tokenizer  # noqa: E402

SHAPE = Shape(300, hidden=64, layers=2, heads=2, feed_forward=64, head=32)
PHASE = Phase(tokens=6_000, prefix=0.5, decay=0.5, batch=512, warmup_steps=2)


@pytest.fixture(scope="module")
def pairs() -> dict[str, list[Pair]]:
    return toy_pairs(200)


@pytest.fixture(scope="module")
def tokenizer(pairs):
    return train_tokenizer(pairs, SHAPE.vocabulary, 20_000)


def test_chunked_cross_entropy_equals_plain_one() -> None:
    torch.manual_seed(0)
    hidden = torch.randn(300, 16).bfloat16().requires_grad_()
    weight = (torch.randn(50, 16) * 0.5).bfloat16().float().requires_grad_()
    targets = torch.randint(50, (300,))
    loss = TiedCrossEntropy.apply(hidden, weight, targets, softmax_slope)
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


def test_future_is_not_seen() -> None:
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


def test_batches_hold_whole_examples_and_learn_targets_only(pairs, tokenizer) -> None:
    stream = iter(ExampleStream(pairs, tokenizer, Mixture(0.5), 512, seed=0))
    end = tokenizer.token_to_id("</s>")
    tags = {tokenizer.token_to_id(f"<2{language}>") for language in LANGUAGES}
    for _ in range(20):
        batch = next(stream)
        assert batch.ids.size <= 512
        assert batch.ids.shape[1] in LENGTHS
        for row in range(len(batch.ids)):
            learnt = batch.columns[batch.rows == row]
            assert batch.ids[row, learnt[0]] in tags
            assert batch.ids[row, learnt[-1] + 1] == end
            assert not (set(batch.ids[row, learnt[1:]]) & tags)


def test_all_languages_are_drawn(pairs, tokenizer) -> None:
    stream = iter(ExampleStream(pairs, tokenizer, Mixture(0.0), 512, seed=0))
    seen = np.concatenate([next(stream).ids.flatten() for _ in range(60)])
    for language in LANGUAGES:
        assert (seen == tokenizer.token_to_id(f"<2{language}>")).sum() > 20


def test_training_learns_and_resumes_where_it_was(pairs, tokenizer, tmp_path: Path) -> None:
    trainer = Trainer(SHAPE, PHASE)
    batch = next(iter(ExampleStream(pairs, tokenizer, Mixture(0.0), 512, seed=9)))
    before = batch_loss(trainer.model, batch, "cpu").item()
    trainer.run(pairs, tokenizer, tmp_path)
    after = batch_loss(trainer.model, batch, "cpu").item()
    assert after < before - 0.5
    assert trainer.tokens >= PHASE.tokens
    resumed = Trainer(SHAPE, PHASE)
    resumed.restore(tmp_path / "last.pt")
    assert (resumed.tokens, resumed.step) == (trainer.tokens, trainer.step)
    assert batch_loss(resumed.model, batch, "cpu").item() == after


def test_rates_warm_up_stay_and_decay() -> None:
    trainer = Trainer(SHAPE, Phase(tokens=1000, prefix=0, decay=0.4, warmup_steps=10))
    assert trainer.rate_scale() == pytest.approx(0.1)
    trainer.step, trainer.tokens = 100, 600
    assert trainer.rate_scale() == 1
    trainer.tokens = 800
    assert trainer.rate_scale() == pytest.approx(0.5)
    trainer.tokens = 1000
    assert trainer.rate_scale() == 0


def test_rates_decay_by_time() -> None:
    trainer = Trainer(SHAPE, Phase(tokens=1000, prefix=0, decay=0.5, warmup_steps=1), Hardware(within=2))
    trainer.tokens, trainer.seconds = 100, 30.0
    assert (trainer.progress(), trainer.rate_scale()) == (0.25, 1)
    trainer.seconds = 90.0
    assert trainer.rate_scale() == pytest.approx(0.5)
    trainer.tokens = 1000
    assert trainer.progress() == 0.75


def test_seconds_count_whole_steps(pairs, tokenizer, tmp_path: Path, monkeypatch) -> None:
    trainer = Trainer(SHAPE, replace(PHASE, tokens=4 * PHASE.batch))
    monkeypatch.setattr(trainer.optimizers[0], "step", lambda: time.sleep(0.2))
    trainer.run(pairs, tokenizer, tmp_path)
    assert trainer.seconds >= 0.2 * (trainer.step - 1) > 0.3


def test_phase_ends_by_time(pairs, tokenizer, tmp_path: Path) -> None:
    hurried = Trainer(SHAPE, replace(PHASE, tokens=10**9), Hardware(within=0.005))
    assert hurried.run(pairs, tokenizer, tmp_path)
    assert hurried.tokens < 10**9
    resumed = Trainer(SHAPE, PHASE)
    resumed.restore(tmp_path / "last.pt")
    assert resumed.seconds == hurried.seconds >= 0.3


def test_exported_model_is_trained_one(tokenizer, tmp_path: Path) -> None:
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
    assert backend.metadata["redraft.target_languages"] == ",".join(LANGUAGES)
    backend.close()


def test_exported_model_can_be_trained_further(tokenizer, tmp_path: Path) -> None:
    model = Decoder(SHAPE)
    write_gguf(model, tokenizer, tmp_path / "toy.gguf", "toy", {})
    again = read_model(tmp_path / "toy.gguf")
    ids = torch.tensor([[1, 5, 9, 260]])
    torch.testing.assert_close(again.logits(again.hidden(ids)[0]), model.logits(model.hidden(ids)[0]))
    text = "three FOUR 25, ünï 你好!<2ja></s>"
    assert read_tokenizer(tmp_path / "toy.gguf").encode(text).ids == tokenizer.encode(text).ids
    write_gguf(Decoder(SHAPE), tokenizer, tmp_path / "other.gguf", "toy", {})
    (tmp_path / "other.gguf").replace(tmp_path / "toy.gguf")  # another file in its place is parsed
    assert not torch.equal(read_model(tmp_path / "toy.gguf").embedding.weight, model.embedding.weight)


def test_sizes_of_models() -> None:
    large, tiny = (sum(p.numel() for p in Decoder(shape).parameters()) for shape in (LARGE, TINY))
    assert tiny * 3 <= large
    assert large * 34 / 32 < 36e6  # Q8_0: 34 bytes for 32 weights
    assert LARGE.vocabulary == TINY.vocabulary


def test_training_stops_in_time_and_resumes(pairs, tokenizer, tmp_path: Path) -> None:
    hurried = Trainer(SHAPE, PHASE, Hardware(minutes=1e-9))
    assert not hurried.run(pairs, tokenizer, tmp_path)
    assert 0 < hurried.tokens < PHASE.tokens
    resumed = Trainer(SHAPE, PHASE)
    resumed.restore(tmp_path / "last.pt")
    assert resumed.tokens == hurried.tokens
    assert resumed.run(pairs, tokenizer, tmp_path)


def test_workers_draw_examples_of_their_own(pairs, tokenizer) -> None:
    trainer = Trainer(SHAPE, PHASE, Hardware(workers=2))
    stream = iter(trainer._examples(pairs, tokenizer, ()))
    batches = [next(stream) for _ in range(8)]
    assert len({batch.ids.tobytes() for batch in batches}) == 8
    assert {batch.ids.dtype for batch in batches} == {np.dtype(np.int64)}


def test_larger_batches_have_larger_rates(pairs, tokenizer) -> None:
    trainer = Trainer(SHAPE, PHASE, Hardware(scale=4))
    assert trainer.base_rates == [2 * PHASE.rate, 2 * PHASE.embedding_rate]
    assert next(iter(trainer._examples(pairs, tokenizer, ()))).ids.size > PHASE.batch


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch.compile warns about parts of its own
def test_compiled_blocks_train_alike(pairs, tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled is traced with its gradients; only the thorough profile also compiles C++, for half a minute."""
    if os.environ.get("HYPOTHESIS_PROFILE") != "thorough":
        monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    batch = next(iter(ExampleStream(pairs, tokenizer, Mixture(0.0), 512, seed=9)))
    plain, compiled = (Trainer(SHAPE, PHASE, Hardware(compiled=each)) for each in (False, True))
    for _ in range(3):
        expected = plain.train_step(batch).item()
        assert compiled.train_step(batch).item() == pytest.approx(expected, abs=0.02)


def test_masks_zeros_are_its_share() -> None:
    mask = Dropout(0.25, torch.zeros(4)).mask(torch.Size((400, 100)))
    assert (mask == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert mask.mean().item() == pytest.approx(1.0, abs=0.03)


def test_corpus_is_read_once(tmp_path: Path) -> None:
    write_pairs(tmp_path, toy_pairs(50))
    first = cached_split(tmp_path, tmp_path / "pairs.tsv.gz")
    for file in (tmp_path / "train").iterdir():
        file.unlink()
    assert cached_split(tmp_path, tmp_path / "pairs.tsv.gz") == first
    assert {language: len(pairs) > 20 for language, pairs in first[0].items()} == dict.fromkeys(LANGUAGES, True)


def test_licences_that_weights_cannot_honour_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "train2").mkdir()
    rows = {"CC-BY-SA 4.0": "red", "CC BY-NC 4.0": "blue", "CDLA-Sharing-1.0": "dog", "CC-BY 2.0 FR": "cat"}
    with gzip.open(tmp_path / "train2" / "en-de.some.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{word}\t{word.upper()}\ttatoeba\t{licence}\n" for licence, word in rows.items())
    assert [pair.source for pair in read_pairs(tmp_path, "de")] == ["dog", "cat"]
    with pytest.raises(OptionError, match="data: no en-zh"):
        list(read_pairs(tmp_path, "zh"))


def test_lines_without_licence_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    with gzip.open(tmp_path / "train" / "en-de.some.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(["one\tEINS\ttatoeba\tCC0\n", "two\tZWEI\ttatoeba\n"])
    with pytest.raises(InputError, match="must have source, target, provenance and licence") as caught:
        list(read_pairs(tmp_path, "de"))
    assert caught.value.line == 2


def test_every_provenance_needs_weight() -> None:
    (_, little), (kind, much) = kind_and_weight("bible:BSB-CUV1919"), kind_and_weight("tatoeba(hsk-annotated)")
    assert little < much and kind == "everyday"
    with pytest.raises(OptionError, match="no sampling weight for provenance 'novels'"):
        kind_and_weight("novels")


def test_longest_prefix_decides() -> None:
    assert kind_and_weight("covost2(zh-en)")[0] == "prose"
    assert kind_and_weight("covost2(en-zh)")[0] == "everyday"
    assert kind_and_weight("msdocs:OfficeDocs-AlchemyInsights-pr.de-DE(HT)")[0] == "help and lessons"
    assert kind_and_weight("msdocs:OfficeDocs-SkypeForBusiness.de-DE(HT)")[0] == "business"


def test_speech_outweighs_documentation() -> None:
    heaviest = {kind: max(sources.values()) for kind, sources in SOURCE_WEIGHTS.items()}
    lightest = {kind: min(sources.values()) for kind, sources in SOURCE_WEIGHTS.items()}
    assert min(lightest["everyday"], lightest["talks"]) > max(heaviest["business"], heaviest["technical"])
    assert heaviest["business"] <= 0.1


def test_patterns_are_thinned() -> None:
    thinning = Thinning()
    pages = [f"Go to {page} and wait {number} days." for number, page in enumerate(("Sales", "My Orders", "A", "B"))]
    assert [thinning.keeps(page) for page in pages] == [True] * ALIKE + [False]
    assert thinning.keeps("Go to sleep.")
    openings = [f"This page describes the {word}." for word in map("x".__mul__, range(1, SAME_OPENING + 9))]
    assert sum(map(thinning.keeps, openings)) == SAME_OPENING


def test_speech_is_not_thinned(tmp_path: Path) -> None:
    (tmp_path / "train3").mkdir()
    with gzip.open(tmp_path / "train3" / "en-de.some.tsv.gz", "wt", encoding="utf-8") as file:
        for provenance in ("tatoeba", "msdocs:docs.de-de(HT)"):
            for name in ("Ann", "Bob", "Cem", "Dee", "Eva"):
                file.write(f"Call {name} a {provenance}.\tRuf {name} mal {provenance}.\t{provenance}\tCC0\n")
    kinds = [pair.kind for pair in read_pairs(tmp_path, "de")]
    assert kinds == ["everyday"] * 5 + ["technical"] * ALIKE


def test_held_back_share_is_small_and_stable() -> None:
    kept = [text for text in map(str, range(20_000)) if held_out(text)]
    assert 40 < len(kept) < 180
    assert kept == [text for text in map(str, range(20_000)) if held_out(text)]


def test_prefix_pairs_end_as_unfinished_texts() -> None:
    pairs = {cut_in_proportion("I see a dog", "Ich sehe einen Hund", "de", random.Random(n), ["x"]) for n in range(60)}
    assert ("I see x.", "Ich sehe") in pairs and ("I see.", "Ich sehe") in pairs
