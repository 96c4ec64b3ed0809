"""Prompts with tokenizers of models that people bring: the ids of the whole text, and nothing functional from users.

The tokenizers come from packages (`tests.real_tokenizers`) and are skipped where these are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from redraft.backends.engine import lib
from redraft.backends.llama_model import LlamaModel
from redraft.captions.languages import parse_language
from redraft.captions.prompt import Prompter, Request, control_token
from tests.backends.injections import CONTEXT, INJECTIONS, SOURCE
from tests.real_tokenizers import FAMILIES, vocabulary

GLOSSARY = (("duck", "Ente"),)


@pytest.fixture(scope="module", params=FAMILIES)
def model(request: pytest.FixtureRequest) -> Iterator[LlamaModel]:
    with vocabulary(FAMILIES[request.param]) as loaded:
        yield loaded


def prompter_of(model: LlamaModel) -> Prompter:
    return Prompter(model.metadata, parse_language("en"), parse_language("de"))


def text_of(model: LlamaModel, token: int) -> str:
    return str(lib.llama_vocab_get_text(model.vocab, token).decode(errors="replace"))


def official(model: LlamaModel, prompter: Prompter, request: Request) -> tuple[int, ...]:
    """What llama.cpp makes of the whole prompt as one text."""
    parts = prompter.segments(request)
    text = "".join(part.text if part.token is None else text_of(model, part.token) for part in parts)
    ids = tuple(model.tokenize(text, special=True, start=True))
    return ids[1:] if ids[:2] == (control_token(model.metadata, "bos"),) * 2 else ids


def test_ids_while_source_grows(model: LlamaModel) -> None:
    prompter = prompter_of(model)
    for length in range(1, len(SOURCE) + 1):
        request = Request(SOURCE[:length])
        assert prompter.encode(request, model.encode) == official(model, prompter, request)


def test_with_earlier_sentences_and_glossary(model: LlamaModel) -> None:
    prompter = prompter_of(model)
    for request in (Request(SOURCE, CONTEXT), Request(SOURCE, (), GLOSSARY), Request(SOURCE, CONTEXT[:1], GLOSSARY)):
        # Tags of HTML are tokens of Gemma: here they are words.
        plain = Request(request.source, tuple((a.replace("<b>", ""), b) for a, b in request.context), request.glossary)
        plain = Request(plain.source, tuple((a.replace("</b>", ""), b) for a, b in plain.context), plain.glossary)
        assert prompter.encode(plain, model.encode) == official(model, prompter, plain)


def functional(model: LlamaModel) -> dict[int, str]:
    """Control tokens, and others that llama.cpp reads in any text and that are markup."""
    wanted = lib.LLAMA_TOKEN_ATTR_CONTROL | lib.LLAMA_TOKEN_ATTR_USER_DEFINED
    tokens = [n for n in range(model.vocabulary_size) if lib.llama_vocab_get_attr(model.vocab, n) & wanted]
    texts = {token: text_of(model, token) for token in tokens}
    return {token: text for token, text in texts.items() if (text[:1], text[-1:]) in {("<", ">"), ("[", "]")}}


def test_what_transcript_says_is_never_functional(model: LlamaModel) -> None:
    prompter, tokens = prompter_of(model), functional(model)
    own = [*islice(tokens.values(), 20), *islice(reversed(tokens.values()), 20)]

    def said(text: str) -> tuple[list[int], str]:
        """The functional tokens of a prompt, and its text."""
        ids = prompter.encode(Request(text, ((text, text),)), model.encode)
        shown = b"".join(map(model.token_bytes, ids)).decode().replace("\u2581", " ")
        return [token for token in ids if token in tokens], shown

    wanted, harmless = said("x")
    for text in (*INJECTIONS, *own):
        for evil in (text, f"so{text}go", f"{text}{text}"):
            found, shown = said(evil)
            assert found == wanted, f"{evil!r} is read"
            words = " ".join(evil.split())
            assert shown.count(words) == harmless.count(words) + 3, f"{evil!r} is lost"
