"""Tokenizers of Opus-MT and M2M-100 as they really are, slow ones, over SentencePiece models of a few lines."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import transformers

torch = pytest.importorskip("torch", reason="needs the extra hf")

from redraft import Translator, Update  # noqa: E402
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder  # noqa: E402
from redraft.backends.load import open_backend  # noqa: E402
from redraft.captions.languages import parse_language  # noqa: E402
from redraft.decoding.method import Value  # noqa: E402
from redraft.decoding.types import Prompt  # noqa: E402
from redraft.errors import OptionError  # noqa: E402

ENGLISH = ["the cat sat on the mat", "a dog barks at the cat", "in 2015 the dog sat there"]
GERMAN = ["der Hund bellt die Katze an", "die Katze saß auf der Matte", "2015 saß dort der große böse Hund, müde"]
SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2}
SIZES |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 64}
ENGINE: dict[str, Value] = {"context_length": 64, "threads": 1, "device": "cpu"}
TAGS = (">>deu<<", ">>jpn<<")


def trained(folder: Path, name: str, lines: list[str]) -> tuple[Path, list[str]]:
    """A SentencePiece model of single characters and frequent pieces, and its pieces without the special ones."""
    (folder / f"{name}.txt").write_text("\n".join(lines * 5))
    path = folder / f"{name}.model"
    options = {"vocab_size": 60, "hard_vocab_limit": False, "character_coverage": 1.0, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / f"{name}.txt"), model_prefix=str(path.with_suffix("")), **options
    )
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return path, [model.id_to_piece(number) for number in range(3, model.get_piece_size())]


def written(path: Path, tokens: list[str]) -> tuple[str, dict[str, int]]:
    """The file of a vocabulary, and the vocabulary."""
    vocabulary = {token: number for number, token in enumerate(tokens)}
    path.write_text(json.dumps(vocabulary))
    return str(path), vocabulary


def opened(folder: Path, model: Any, tokenizer: Any) -> HfEncoderDecoder:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    backend = open_backend(str(folder), ENGINE)
    assert isinstance(backend, HfEncoderDecoder)
    assert type(backend.tokenizer.base) is type(tokenizer)
    return backend


def marian(folder: Path, *, tags: tuple[str, ...] = (), separate: bool = False) -> HfEncoderDecoder:
    """Opus-MT with one vocabulary or two; padding stands last, and the target's is not the source's."""
    source, english = trained(folder, "source", ENGLISH)
    target, german = trained(folder, "target", GERMAN)
    shared = [*english, *(piece for piece in german if piece not in english and not separate)]
    file, vocabulary = written(folder / "vocab.json", ["</s>", "<unk>", *tags, *shared, "<pad>"])
    options: dict[str, Any] = {}
    targets = vocabulary
    if separate:
        options["target_vocab_file"], targets = written(
            folder / "target_vocab.json", ["</s>", "<unk>", *german, "<pad>", "extra"]
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
        tokenizer = transformers.MarianTokenizer(
            str(source), str(target), file, separate_vocabs=separate, source_lang="en", target_lang="de", **options
        )
    ids = {"eos_token_id": 0, "pad_token_id": vocabulary["<pad>"], "decoder_start_token_id": targets["<pad>"]}
    config = transformers.MarianConfig(
        vocab_size=len(vocabulary),
        decoder_vocab_size=len(targets),
        share_encoder_decoder_embeddings=not separate,
        forced_eos_token_id=None,
        **SIZES,
        **ids,
    )
    torch.manual_seed(0)
    return opened(folder / "opus", transformers.MarianMTModel(config), tokenizer)


def m2m100(folder: Path) -> HfEncoderDecoder:
    source, pieces = trained(folder, "both", ENGLISH + GERMAN)
    file, vocabulary = written(folder / "vocab.json", ["<s>", "<pad>", "</s>", "<unk>", *pieces])
    tokenizer = transformers.M2M100Tokenizer(file, str(source), src_lang="en", tgt_lang="de")
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = transformers.M2M100Config(vocab_size=len(vocabulary) + 108, forced_eos_token_id=None, **SIZES, **ids)
    torch.manual_seed(0)
    return opened(folder / "m2m", transformers.M2M100ForConditionalGeneration(config), tokenizer)


def prompt(backend: HfEncoderDecoder, text: str, target: str = "de") -> Prompt:
    return backend.encoder_prompt(text, parse_language("en"), parse_language(target))


def pieces(backend: HfEncoderDecoder, ids: tuple[int, ...]) -> list[str]:
    """What the source side calls some ids."""
    return list(backend.tokenizer.base.convert_ids_to_tokens(list(ids)))


def text_of(backend: HfEncoderDecoder, ids: list[int]) -> str:
    return b"".join(backend.token_bytes(token) for token in ids).decode()


def check_captions(backend: HfEncoderDecoder) -> None:
    """Methods that draft what they like give the ids of plain decoding."""
    found = []
    for method, options in (("ar", {}), ("ssbd", {"beta": 0.0}), ("jacobi", {})):
        with Translator(backend, ["de"], method=method, options={**options, "max_tokens": 8}) as translator:
            for number, text in enumerate(("the cat", "the cat sat.", "the dog sat on the cat")):
                translator.translate(Update("1", number, text))
                found.append((translator.state("de").prompt, translator.state("de").output))
            assert translator.state("de").tally.tokens > 0
    assert found == found[:3] * 3


def test_opus_with_one_vocabulary(tmp_path: Path) -> None:
    backend = marian(tmp_path)
    base = backend.tokenizer.base
    found = prompt(backend, "the cat")
    assert list(found.encoder) == base("the cat")["input_ids"]
    assert found.ids == (base.pad_token_id,) == (backend.pad_token,)
    assert backend.end_tokens == {0}
    german = "der große Hund saß dort"
    ids = backend.tokenize(german)
    assert (
        ids == base(text_target=german, add_special_tokens=False)["input_ids"] != backend.tokenizer.encoder_ids(german)
    )
    assert text_of(backend, ids) == f" {german}"
    assert text_of(backend, [0, 1, backend.pad_token, backend.vocabulary_size, -1]) == ""
    check_captions(backend)
    with pytest.raises(OptionError, match="target language 'ja' is not that of model 'opus': use de"):
        prompt(backend, "the cat", "ja")


def test_opus_with_two_vocabularies(tmp_path: Path) -> None:
    backend = marian(tmp_path, separate=True)
    base = backend.tokenizer.base
    assert len(base.encoder) != len(base.target_encoder) == backend.vocabulary_size
    assert backend.pad_token == base.target_encoder["<pad>"] != base.pad_token_id
    assert prompt(backend, "the cat").ids == (backend.pad_token,)
    for token, number in base.target_encoder.items():
        shown = b"" if token in base.all_special_tokens else token.replace("\u2581", " ").encode()
        assert backend.token_bytes(number) == shown
    german = "die große müde Katze"
    assert text_of(backend, backend.tokenize(german)) == f" {german}"
    assert pieces(backend, prompt(backend, "the cat").encoder)[-1] == "</s>"
    check_captions(backend)


def test_opus_with_tags(tmp_path: Path) -> None:
    backend = marian(tmp_path, tags=TAGS)
    german = prompt(backend, "the cat")
    assert pieces(backend, german.encoder)[0] == ">>deu<<"
    assert pieces(backend, prompt(backend, "the cat", "ja").encoder)[0] == ">>jpn<<"
    assert german.encoder[1:-1] == tuple(backend.tokenizer.base("the cat", add_special_tokens=False)["input_ids"])
    with pytest.raises(OptionError, match="target language 'fr' is not supported by this model; allowed: de, ja"):
        prompt(backend, "the cat", "fr")


@pytest.mark.parametrize("text", [">>jpn<< the cat", "</s> >>jpn<<", "<pad>", ">>fra<< the cat"])
def test_transcript_names_no_language_and_ends_nothing(tmp_path: Path, text: str) -> None:
    backend = marian(tmp_path, tags=TAGS)
    found = pieces(backend, prompt(backend, text).encoder)
    assert (found[0], found[-1]) == (">>deu<<", "</s>")
    assert not {*TAGS, "</s>", "<pad>"} & {*found[1:-1]}
    assert len(found) > 4  # what looks like a tag is read as text


def test_m2m100(tmp_path: Path) -> None:
    backend = m2m100(tmp_path)
    base = backend.tokenizer.base
    found = prompt(backend, "the cat __ja__ </s>")
    assert pieces(backend, found.encoder)[0] == "__en__" and pieces(backend, found.encoder)[-1] == "</s>"
    assert not {"__ja__", "</s>"} & {*pieces(backend, found.encoder)[1:-1]}
    assert found.ids == (2, base.get_lang_id("de"))
    assert prompt(backend, "the cat", "ja").ids == (2, base.get_lang_id("ja"))
    assert text_of(backend, backend.tokenize("der große Hund")) == " der große Hund"
    assert text_of(backend, [0, 1, 2, 3, base.get_lang_id("de"), backend.vocabulary_size - 1]) == ""
    assert (backend.end_tokens, backend.pad_token) == (frozenset({2}), 1)
    check_captions(backend)
    with pytest.raises(OptionError, match="target language 'tlh' is not supported by this model"):
        prompt(backend, "the cat", "tlh")
