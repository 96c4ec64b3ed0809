"""BLEU and chrF, their tokenizers, and what a segment adds to them."""

from __future__ import annotations

import pytest

from redraft_bench.eval.quality import quality, statistics

HYPOTHESES = ["Ich habe einen Hund.", "Das ist nicht gut!", "", "Sie kam spät nach Hause."]
REFERENCES = ["Ich habe einen Hund.", "Das ist gar nicht so gut.", "Nichts", "Sie ist spät nach Hause gekommen."]
CHINESE = ["我今天去公园。", "你好GPT 你好"], ["今天我去了公园。", "你好 GPT，你好"]


def test_scores_are_sacrebleus() -> None:
    from sacrebleu import corpus_bleu, corpus_chrf

    found = quality(HYPOTHESES, REFERENCES, "de")
    assert found.bleu == corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert found.chrf == corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert "tok:13a" in found.signature and "nc:6" in found.signature


@pytest.mark.parametrize(("language", "tokenizer"), [("zh", "zh"), ("ja", "char"), ("fr", "13a")])
def test_language_decides_on_tokenizer(language: str, tokenizer: str) -> None:
    assert f"tok:{tokenizer}|" in quality(*CHINESE, language).signature


@pytest.mark.parametrize("language", ["de", "zh", "ja"])
def test_what_segments_add_makes_score(language: str) -> None:
    for texts in ((HYPOTHESES, REFERENCES), CHINESE):
        score = quality(*texts, language)
        found = statistics(*texts, language)
        assert {name: statistic(values.sum(axis=0)) for name, (values, statistic) in found.items()} == {
            "bleu": score.bleu,
            "chrf": score.chrf,
        }
        assert all(len(values) == len(texts[0]) for values, _ in found.values())
