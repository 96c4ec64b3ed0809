"""Prompts with real tokenizers on transformers: as `apply_chat_template` has them, nothing functional from users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import transformers

from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.captions.languages import parse_language
from redraft.captions.prompt import Prompter, Request
from tests.backends.injections import CONTEXT, INJECTIONS, SOURCE
from tests.real_tokenizers import FAMILIES, ON_TRANSFORMERS, found, template_of


@pytest.fixture(scope="module", params=ON_TRANSFORMERS)
def family(request: pytest.FixtureRequest) -> tuple[HfTokenizer, Prompter]:
    name, family = ON_TRANSFORMERS[request.param], FAMILIES[request.param]
    base = transformers.AutoTokenizer.from_pretrained(found(name))
    base.chat_template = template_of(family)
    tokenizer = HfTokenizer(base)
    metadata = {
        "general.architecture": family.architecture,
        "general.name": family.name,
        "tokenizer.chat_template": base.chat_template,
    }
    for key, token in (("bos", tokenizer.start_token), ("eos", tokenizer.end_token)):
        metadata |= {} if token is None else {f"tokenizer.ggml.{key}_token_id": str(token)}
    return tokenizer, Prompter(metadata, parse_language("en"), parse_language("de"))


def prompts(tokenizer: HfTokenizer, prompter: Prompter) -> Iterator[tuple[Request, str]]:
    """Requests of a growing source, and the text of their prompts."""
    for length in range(1, len(SOURCE) + 1, 3):
        for context in ((), CONTEXT[:1]):
            request = Request(SOURCE[:length], context)
            end = tokenizer.base.eos_token
            yield request, "".join(end if part.token is not None else part.text for part in prompter.segments(request))


def test_ids_while_source_grows(family: tuple[HfTokenizer, Prompter]) -> None:
    tokenizer, prompter = family
    start = tokenizer.base.bos_token or ""
    for request, text in prompts(tokenizer, prompter):
        whole = start + text.removeprefix(start) if start else text
        official = tokenizer.base(whole, add_special_tokens=False)["input_ids"]
        assert prompter.encode(request, tokenizer.encode) == tuple(official), text


def test_text_is_that_of_chat_template(family: tuple[HfTokenizer, Prompter]) -> None:
    tokenizer, prompter = family
    instruction, question = (part for part in _turns(prompter))
    turns = [{"role": "system", "content": instruction}, {"role": "user", "content": question}]
    together = [{"role": "user", "content": f"{instruction}\n{question}"}]
    rendered = []
    for conversation in (turns, together):
        try:
            ids = tokenizer.base.apply_chat_template(
                conversation, add_generation_prompt=True, enable_thinking=False, return_dict=False
            )
        except Exception:  # the template takes no system message
            continue
        rendered.append(list(ids))
    header = tokenizer.base("German:", add_special_tokens=False)["input_ids"]
    ids = list(prompter.encode(Request("The cat"), tokenizer.encode))
    assert any(ids[: len(each)] == each for each in rendered), "not what apply_chat_template gives"
    assert tokenizer.base.decode(ids).strip().endswith(tokenizer.base.decode(header).strip())


def _turns(prompter: Prompter) -> tuple[str, str]:
    text = "".join(part.text for part in prompter.segments(Request("The cat")))
    start = text.index("Translate the English")
    end = text.index("commentary.") + len("commentary.")
    return text[start:end], "English: The cat"


def test_what_transcript_says_is_never_functional(family: tuple[HfTokenizer, Prompter]) -> None:
    tokenizer, prompter = family
    added = tokenizer.base.added_tokens_decoder
    tokens = {token for token, each in added.items() if each.special or str(each).strip("<>[]") != str(each)}
    own = [str(added[token]) for token in [*sorted(tokens)[:20], *sorted(tokens)[-20:]]]

    def said(text: str) -> list[int]:
        return [t for t in prompter.encode(Request(text, ((text, text),)), tokenizer.encode) if t in tokens]

    wanted = said("x")
    for text in (*INJECTIONS, *own):
        for evil in (text, f"so{text}go", f"{text}{text}"):
            assert said(evil) == wanted, f"{evil!r} is read"
