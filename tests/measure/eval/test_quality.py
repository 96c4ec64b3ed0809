"""BLEU and chrF, their tokenizers, and what a segment adds to them."""

from __future__ import annotations

from urllib.error import URLError

import pytest

from redraft.errors import ModelError, OptionError
from redraft_bench.eval.quality import quality, statistics

HYPOTHESES = ["Ich habe einen Hund.", "Das ist nicht gut!", "", "Sie kam spät nach Hause."]
REFERENCES = ["Ich habe einen Hund.", "Das ist gar nicht so gut.", "Nichts", "Sie ist spät nach Hause gekommen."]
CHINESE = ["我今天去公园。", "你好GPT 你好"], ["今天我去了公园。", "你好 GPT，你好"]


@pytest.fixture(autouse=True)
def sacrebleu() -> None:
    pytest.importorskip("sacrebleu")


def test_scores_are_sacrebleus() -> None:
    from sacrebleu import corpus_bleu, corpus_chrf

    found = quality(HYPOTHESES, REFERENCES, "de")
    assert found.bleu == corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert found.chrf == corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert "tok:13a" in found.signature and "nc:6" in found.signature


@pytest.mark.parametrize(("language", "tokenizer"), [("zh", "zh"), ("ja", "char"), ("fr", "13a")])
def test_language_decides_on_tokenizer(language: str, tokenizer: str) -> None:
    found = quality(*CHINESE, language)
    assert f"tok:{tokenizer}|" in found.signature
    assert found == quality(*CHINESE, "de", tokenizer)


@pytest.mark.parametrize("tokenizer", [None, "zh", "char", "intl"])
def test_what_segments_add_makes_score(tokenizer: str | None) -> None:
    for texts in ((HYPOTHESES, REFERENCES), CHINESE):
        score = quality(*texts, "de", tokenizer)
        found = statistics(*texts, "de", tokenizer)
        assert {name: statistic(values.sum(axis=0)) for name, (values, statistic) in found.items()} == {
            "bleu": score.bleu,
            "chrf": score.chrf,
        }
        assert all(len(values) == len(texts[0]) for values, _ in found.values())


def test_unknown_tokenizer_is_refused_with_known_ones() -> None:
    with pytest.raises(OptionError, match="13a, char, flores101, flores200, intl, ja-mecab, zh, not 'moses'"):
        quality(HYPOTHESES, REFERENCES, "de", "moses")


@pytest.mark.parametrize("tokenizer", ["flores101", "flores200"])
def test_model_that_cannot_be_downloaded_is_named(tokenizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentencepiece")
    from sacrebleu.tokenizers import tokenizer_spm

    def fail(*_: object) -> None:
        raise URLError("no route to host")

    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", "/nowhere")
    monkeypatch.setattr(tokenizer_spm, "download_file", fail)
    with pytest.raises(ModelError, match=f"the model of the tokenizer {tokenizer} is not in .*no route to host"):
        quality(HYPOTHESES, REFERENCES, "de", tokenizer)
