"""From a name to the backend for transformers: folders, missing extras, options, tokenizers."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra hf")

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

from redraft.backends.hf.decoder_only import HfDecoder  # noqa: E402
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder  # noqa: E402
from redraft.backends.hf.tokenizer import HfTokenizer  # noqa: E402
from redraft.backends.llamacpp import LlamaCpp  # noqa: E402
from redraft.backends.load import open_backend, open_models  # noqa: E402
from redraft.backends.options import HfOptions  # noqa: E402
from redraft.decoding.method import Value  # noqa: E402
from redraft.decoding.methods import get_method  # noqa: E402
from redraft.decoding.types import DRAFT_MODEL, ROOT, TARGET, Score  # noqa: E402
from redraft.errors import MissingExtra, ModelError, OptionError  # noqa: E402
from tests.backends.hf import models as tiny  # noqa: E402
from tests.gguf_models import split, write_llama  # noqa: E402

ENGINE: dict[str, Value] = {"context_length": 48, "threads": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("models") / "My-Qwen3"
    tiny.qwen3().save_pretrained(folder)
    tiny.tokenizer().save_pretrained(folder)
    return folder


def test_vocabulary_is_not_counted_for_every_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """That took three minutes with 262,144 tokens."""
    tokenizer = HfTokenizer(tiny.tokenizer())
    monkeypatch.setattr(type(tokenizer.base), "__len__", None)
    assert tokenizer.token_bytes(tiny.VOCABULARY) == b""
    assert tokenizer.token_bytes(tiny.VOCABULARY - 1) == tiny.LETTERS[-1].encode()


@pytest.mark.parametrize("prefix", ["", "hf:"])
def test_folder_opens(folder: Path, prefix: str) -> None:
    backend = open_backend(f"{prefix}{folder}", ENGINE, slots=3)
    assert isinstance(backend, HfDecoder)
    assert backend.options == HfOptions(48, 3, "float32", "cpu", 1)
    assert (backend.context_length, backend.metadata["general.name"]) == (48, "My-Qwen3")
    prompt = tiny.prompts(1)[0]
    rows = backend.score([(backend.open_slot(), Score(prompt))])[0]
    expected, finished = tiny.greedy(tiny.qwen3(), prompt, limit=1)
    assert rows.argmax(ROOT) == (tiny.END if finished else expected[0])


def test_dtype_that_was_asked_for(folder: Path) -> None:
    with ExitStack() as stack:
        (backends,) = open_models(
            [get_method("bild")], str(folder), str(folder), {**ENGINE, "dtype": "bfloat16"}, 3, stack
        )
        assert [getattr(backend, "dtype", None) for backend in backends.values()] == [torch.bfloat16] * 2
    with pytest.raises(OptionError, match="dtype must be float32 or bfloat16, not 'int8'"):
        open_backend(str(folder), {"dtype": "int8"})


def test_gguf_beside_it_keeps_dtype_of_its_file(folder: Path) -> None:
    with ExitStack() as stack:
        (backends,) = open_models(
            [get_method("bild")], str(folder), "demo-tiny", {**ENGINE, "dtype": "bfloat16"}, 3, stack
        )
        assert isinstance(backends[TARGET], HfDecoder) and isinstance(backends[DRAFT_MODEL], LlamaCpp)
    with pytest.raises(
        OptionError, match="^engine dtype is not for GGUF models, so leave it out; its options: context_length, "
    ):
        open_backend("demo", {"dtype": "float32"})


def test_encoder_decoder_opens_for_method(tmp_path: Path) -> None:
    tiny.t5().save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    with ExitStack() as stack:
        (backends,) = open_models([get_method("ssbd")], str(tmp_path), None, ENGINE, 3, stack)
        assert isinstance(backends[TARGET], HfEncoderDecoder) and len(backends) == 1


def test_without_extra_message_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("redraft.backends.hf.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"needs transformers, which is not installed: pip install 'redraft\[hf\]'"):
        open_backend(str(folder))


@pytest.mark.parametrize("name", ["hf:", "hf:/no/such/folder", "hf:~nobody/x", "hf:a\0b", "hf:" + "x" * 5000])
def test_what_is_no_model_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match="cannot be loaded with transformers"):
        open_backend(name, ENGINE)


def test_broken_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be loaded with transformers"):
        open_backend(str(tmp_path))


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """The files of weights of a model in a folder of its own."""
    tiny.qwen3().save_pretrained(tmp_path, max_shard_size="20KB")
    tiny.tokenizer().save_pretrained(tmp_path)
    return sorted(tmp_path.glob("*.safetensors"))


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"\x10" + bytes(100)])
def test_broken_shard_is_one_sentence(shards: list[Path], content: bytes) -> None:
    shards[1].write_bytes(content)
    with pytest.raises(ModelError, match=r"cannot be loaded with transformers: [^.]+$"):
        open_backend(str(shards[1].parent), ENGINE)


def test_weights_are_never_made_up(shards: list[Path], capfd: pytest.CaptureFixture[str]) -> None:
    index = shards[0].with_name("model.safetensors.index.json")
    known = json.loads(index.read_text())
    known["weight_map"] = {key: file for key, file in known["weight_map"].items() if file != shards[1].name}
    index.write_text(json.dumps(known))
    with pytest.raises(ModelError, match=r"is incomplete: its files lack \d+ weights, such as model\.layers\."):
        open_backend(str(index.parent), ENGINE)
    assert "MISSING" not in "".join(capfd.readouterr())


def test_weights_of_another_size(shards: list[Path]) -> None:
    config = shards[0].with_name("config.json")
    known = json.loads(config.read_text())
    config.write_text(json.dumps({**known, "intermediate_size": 2 * known["intermediate_size"]}))
    with pytest.raises(ModelError, match=r"such as model\.layers\.0\.mlp\.\w+\.weight, or have them in another size"):
        open_backend(str(config.parent), ENGINE)


def test_split_gguf_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="needs the extra gguf")
    pytest.importorskip("accelerate", reason="needs the extra gguf")
    first, *_ = split(write_llama(tmp_path / "tiny.gguf"), tmp_path)
    with pytest.raises(ModelError, match="has several parts, which transformers does not read: use it without hf:"):
        open_backend(f"hf:{first}", ENGINE)


def test_folder_without_configuration_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read: Is a directory; a GGUF file is needed"):
        open_backend(str(tmp_path))


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("context_length", 15, "a whole number from 16 to 1048576"),
        ("slots", 0, "a whole number from 1 to 4096"),
        ("slots", True, "a whole number from 1 to 4096"),
        ("threads", -1, "a whole number from 0 to 1024"),
        ("dtype", "float16", "float32 or bfloat16"),
        ("device", "tpu", "auto, cpu or cuda"),
    ],
)
def test_options_are_checked(field: str, value: Any, allowed: str) -> None:
    with pytest.raises(OptionError, match=f"{field} must be {allowed}, not {value!r}"):
        HfOptions(**{field: value})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpu_that_is_not_there_is_refused() -> None:
    from redraft.backends.hf.model import device_of

    assert device_of("auto") == torch.device("cpu")
    with pytest.raises(OptionError, match="device cuda is not available: use cpu or auto"):
        device_of("cuda")


def byte_level() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({piece: index for index, piece in enumerate(["<s>", *alphabet])}, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.add_special_tokens([AddedToken("<s>", special=True)])
    made.add_tokens([AddedToken("<think é>")])
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>")


def test_bytes_of_byte_level_tokens() -> None:
    tokenizer = HfTokenizer(byte_level())
    text = " aé語\t\x00<s>"
    ids = tokenizer.tokenize(text)
    assert [tokenizer.token_bytes(token) for token in ids] == [bytes([byte]) for byte in text.encode()]
    (think,) = tokenizer.tokenize("<think é>")
    assert tokenizer.token_bytes(think) == "<think é>".encode()
    assert tokenizer.tokenize("<s>a", special=True) == [0, *tokenizer.tokenize("a")]
    assert [tokenizer.token_bytes(token) for token in (0, -1, 10_000)] == [b"", b"", b""]
    assert not tokenizer.adds_space
    assert tokenizer.tokenize("a", start=True) == tokenizer.tokenize("a")  # this one puts none before a text


def test_bytes_of_sentencepiece_tokens() -> None:
    vocabulary = ["<s>", "<unk>", "\u2581", "\u2581a", "b", "<0xE8>", "<0x0A>", "a"]
    made = Tokenizer(models.BPE({piece: index for index, piece in enumerate(vocabulary)}, [("\u2581", "a")]))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer = HfTokenizer(PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", unk_token="<unk>"))
    assert [tokenizer.token_bytes(token) for token in range(7)] == [b"", b"", b" ", b" a", b"b", b"\xe8", b"\n"]
    assert tokenizer.adds_space


def test_start_token_that_tokenizer_adds() -> None:
    tokenizer = HfTokenizer(tiny.tokenizer(template="<s> $A"))
    assert tokenizer.tokenize("a", start=True) == [tiny.START, *tokenizer.tokenize("a")]
