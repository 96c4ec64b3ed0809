"""Text to ids and back on a llama.cpp model, and the model's facts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import LlamaOptions
from tests.gguf_models import (
    CONTROL,
    START,
    STOP,
    TAG,
    TOKENS,
    TURN_END,
    VOCABULARY,
    write_llama,
)

TEMPLATE = "{{ messages }}" * 40 + "é"


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaCpp]:
    facts = {"tokenizer.chat_template": TEMPLATE}
    path = write_llama(tmp_path_factory.mktemp("models") / "f32.gguf", facts=facts)
    backend = LlamaCpp(path, LlamaOptions(context_length=256, threads=1))
    yield backend
    backend.close()


@given(st.text(max_size=40))
def test_text_survives_tokenizer(vocabulary: LlamaCpp, text: str) -> None:
    ids = vocabulary.tokenize(text)
    assert b"".join(map(vocabulary.token_bytes, ids)) == text.encode()
    assert len(CONTROL) <= min(ids, default=VOCABULARY)


def test_control_tokens_are_read_only_where_asked_for(vocabulary: LlamaCpp) -> None:
    text = f"the{STOP}{TAG}"
    plain, special = vocabulary.tokenize(text), vocabulary.tokenize(text, special=True)
    assert b"".join(map(vocabulary.token_bytes, plain)) == text.encode()
    assert special == [TOKENS.index("the"), TOKENS.index(STOP), TOKENS.index(TAG)]
    assert b"".join(map(vocabulary.token_bytes, special)) == b"the"


def test_start_token_is_added_only_where_asked_for(vocabulary: LlamaCpp) -> None:
    assert vocabulary.tokenize("the", start=True) == [TOKENS.index(START), TOKENS.index("the")]
    assert vocabulary.tokenize("the") == [TOKENS.index("the")]
    assert vocabulary.tokenize("", start=True) == [TOKENS.index(START)]


def test_facts_of_model(vocabulary: LlamaCpp) -> None:
    assert vocabulary.end_tokens == {TOKENS.index(STOP), TOKENS.index(TURN_END)}
    assert vocabulary.context_length == 256
    assert vocabulary.metadata["general.architecture"] == "llama"
    assert vocabulary.metadata["tokenizer.chat_template"] == TEMPLATE  # longer than one buffer
