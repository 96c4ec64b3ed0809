"""Encoder inputs for a pair of languages, by model family."""

from __future__ import annotations

from typing import Any

import pytest
import transformers

pytest.importorskip("torch", reason="needs the extra hf")

from redraft.backends.hf.encoder_decoder import SourcePrompts
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.captions.languages import parse_language
from redraft.decoding.types import Prompt
from redraft.errors import CapabilityError, OptionError
from tests.backends.hf import models as tiny
from tests.backends.hf.models import END, PAD


def prompt(model: Any, tokenizer: Any, source: str, target: str, text: str = "a b") -> Prompt:
    prompts = SourcePrompts(model, HfTokenizer(tokenizer), "tiny")
    return prompts.encode(text, parse_language(source, "source language"), parse_language(target))


def texts(tokenizer: Any, ids: tuple[int, ...]) -> str:
    return " ".join(tokenizer.convert_ids_to_tokens(list(ids)))


def test_bilingual_marian_reads_text_and_its_end() -> None:
    found = prompt(tiny.marian(), tiny.tokenizer(), "en", "de")
    assert texts(tiny.tokenizer(), found.encoder) == "▁ a ▁ b </s>"
    assert (found.ids, found.source_ids) == ((PAD,), found.encoder[:-1])


def test_bilingual_marian() -> None:
    tokenizer = tiny.tokenizer()
    tokenizer.source_lang, tokenizer.target_lang = "en", "deu"
    prompt(tiny.marian(), tokenizer, "en-GB", "de-AT")
    with pytest.raises(OptionError, match="target language 'ja' is not that of model 'tiny': use deu"):
        prompt(tiny.marian(), tokenizer, "en", "ja")
    with pytest.raises(OptionError, match="source language 'fr' is not that of model 'tiny': use en"):
        prompt(tiny.marian(), tokenizer, "fr", "de")


@pytest.mark.parametrize(("target", "tag"), [("de", ">>deu<<"), ("zh", ">>cmn_Hans<<"), ("zh-TW", ">>cmn_Hant<<")])
def test_marian_with_several_targets_reads_tag(target: str, tag: str) -> None:
    tokenizer = tiny.tokenizer(plain=[">>deu<<", ">>cmn_Hans<<", ">>cmn_Hant<<", ">>zzz<<"])
    found = prompt(tiny.marian(), tokenizer, "en", target)
    assert texts(tokenizer, found.encoder) == f"{tag} ▁ a ▁ b </s>"
    assert texts(tokenizer, found.source_ids) == "▁ a ▁ b"
    with pytest.raises(OptionError, match="target language 'ja' is not supported by this model; allowed: de, zh"):
        prompt(tiny.marian(), tokenizer, "en", "ja")


def test_t5_with_tags_reads_tag() -> None:
    tokenizer = tiny.tokenizer(plain=["<2de>", "<2ja>"])
    assert texts(tokenizer, prompt(tiny.t5(), tokenizer, "en", "ja").encoder) == "<2ja> ▁ a ▁ b </s>"


def test_t5_reads_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, model = tiny.tokenizer(), tiny.t5()
    expected = HfTokenizer(tokenizer).encoder_ids("translate English to Traditional Chinese: a b")
    assert prompt(model, tokenizer, "en", "zh-TW").encoder == tuple(expected)
    tasks = {"summarization": {"prefix": "no"}, "translation_en_to_de": {"prefix": "aha "}}
    monkeypatch.setattr(model.config, "task_specific_params", tasks, raising=False)
    found = prompt(model, tokenizer, "en", "de-AT")
    assert texts(tokenizer, found.encoder) == "▁ a h a ▁ a ▁ b </s>"
    assert (found.ids, texts(tokenizer, found.source_ids)) == ((PAD,), "▁ a ▁ b")
    with pytest.raises(OptionError, match="model 'tiny' does not translate en_to_ja; allowed: en_to_de"):
        prompt(model, tokenizer, "en", "ja")
    monkeypatch.setattr(model.config, "task_specific_params", {"translation_en_to_zh": {"prefix": "aha "}})
    with pytest.raises(OptionError, match="does not translate en_to_zh-TW; allowed: en_to_zh"):
        prompt(model, tokenizer, "en", "zh-TW")


def test_codes_start_output() -> None:
    tokenizer = tiny.tokenizer("__en__", "__de__", "__zh__", template="__en__ $A </s>")
    found = prompt(tiny.m2m100(), tokenizer, "en", "zh-CN")
    assert texts(tokenizer, found.encoder) == "__en__ ▁ a ▁ b </s>"
    assert texts(tokenizer, found.ids) == "</s> __zh__"
    with pytest.raises(OptionError, match="target language 'zh-Hant' is not supported by this model; allowed: zh$"):
        prompt(tiny.m2m100(), tokenizer, "en", "zh-Hant")


def test_mbart_50_is_told_both_languages() -> None:
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *((letter, -1.0) for letter in "▁ab")]
    tokenizer = transformers.MBart50Tokenizer(vocab=pieces)
    for source, target, expected in (
        ("en", "de", "en_XX de_DE"),
        ("pt-BR", "zh", "pt_XX zh_CN"),
        ("ja", "en", "ja_XX en_XX"),
    ):
        found = prompt(tiny.mbart(), tokenizer, source, target)
        first, second = expected.split()
        assert texts(tokenizer, found.encoder) == f"{first} ▁ a ▁ b </s>"
        assert (found.ids[0], texts(tokenizer, found.ids[1:])) == (END, second)
        assert texts(tokenizer, found.source_ids) == "▁ a ▁ b"
    with pytest.raises(OptionError, match="source language 'cy' is not supported by this model"):
        prompt(tiny.mbart(), tokenizer, "cy", "de")


def test_nllb_is_told_both_languages() -> None:
    vocabulary = {token: number for number, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", "▁", "a", "b"])}
    tokenizer = transformers.NllbTokenizer(vocab=vocabulary, merges=[])
    found = prompt(tiny.m2m100(), tokenizer, "ja", "zh-TW")
    assert texts(tokenizer, found.encoder) == "jpn_Jpan ▁ a ▁ b </s>"
    assert (found.ids[0], texts(tokenizer, found.ids[1:])) == (END, "zho_Hant")


def test_start_code_is_target() -> None:
    tokenizer = tiny.tokenizer("en_XX", "ro_RO", "de_DE", template="$A </s> en_XX")
    with tiny.generation(tiny.mbart(), decoder_start_token_id=tokenizer.convert_tokens_to_ids("ro_RO")):
        found = prompt(tiny.mbart(), tokenizer, "en", "de")
    assert (texts(tokenizer, found.ids), texts(tokenizer, found.encoder)) == ("de_DE", "▁ a ▁ b </s> en_XX")


def test_first_token_that_model_itself_forces() -> None:
    with tiny.generation(tiny.marian(), forced_bos_token_id=9):
        assert prompt(tiny.marian(), tiny.tokenizer(), "en", "de").ids == (PAD, 9)


def test_decoder_that_starts_with_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.t5()
    monkeypatch.setattr(model.config, "decoder_start_token_id", None)
    with (
        tiny.generation(model, decoder_start_token_id=None),
        pytest.raises(CapabilityError, match="decoder_start_token"),
    ):
        prompt(model, tiny.tokenizer(), "en", "de")


def test_transcript_cannot_end_source() -> None:
    found = prompt(tiny.marian(), tiny.tokenizer(), "en", "de", " a </s>  <pad> b ")
    assert found.encoder.index(END) == len(found.encoder) - 1
    assert PAD not in found.encoder
