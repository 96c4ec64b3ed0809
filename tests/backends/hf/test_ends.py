"""Which tokens end an output: those that the model names, and the one with which its chat template ends an answer."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra hf")

from redraft.backends.hf.decoder_only import HfDecoder  # noqa: E402
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder  # noqa: E402
from redraft.backends.hf.model import backend_of  # noqa: E402
from redraft.backends.options import HfOptions  # noqa: E402
from redraft.decoding.decode import decode  # noqa: E402
from redraft.decoding.drafters import Nothing  # noqa: E402
from redraft.decoding.drive import run  # noqa: E402
from redraft.decoding.rules import Exact  # noqa: E402
from redraft.decoding.types import Prompt  # noqa: E402
from tests.backends.hf import models as tiny  # noqa: E402
from tests.backends.hf.models import END, PIECES  # noqa: E402

TURN_END = len(PIECES)

GEMMA = (
    "{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    "{{ m.content | trim }}<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
SPACED = "{% for m in messages %}{{ m.role }}: {{ m.content }} <end_of_turn>{% endfor %}"
NAMED = "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
TEXT = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
FAILING = "{{ raise_exception('no') }}"


def opened(template: str | None, *, special: bool = True) -> HfDecoder | HfEncoderDecoder:
    tokenizer = tiny.tokenizer(*(["<end_of_turn>", "<start_of_turn>"] if special else []))
    tokenizer.chat_template = template
    model: Any = tiny.of_family("Gemma2Config", vocab_size=len(PIECES) + 2, sliding_window=8)
    with torch.no_grad():
        model.lm_head.weight[TURN_END] *= 2  # a favourite
    return backend_of(model, tokenizer, "tiny", HfOptions(context_length=64, device="cpu"))


@pytest.mark.parametrize(
    ("template", "ends"),
    [
        (GEMMA, {END, TURN_END}),
        (SPACED, {END, TURN_END}),
        (NAMED, {END}),
        (TEXT, {END}),
        (FAILING, {END}),
        (None, {END}),
    ],
)
def test_token_behind_answer_ends_it(template: str | None, ends: set[int]) -> None:
    assert opened(template).end_tokens == ends


def test_text_behind_answer_is_no_end() -> None:
    assert opened(GEMMA, special=False).end_tokens == {END}


def test_output_stops_where_its_turn_ends() -> None:
    plain, chatty = opened(None), opened(GEMMA)
    found = []
    for backend in (plain, chatty):
        slot = backend.open_slot()
        outputs = [
            run(
                decode(Prompt(prompt), Nothing(), Exact(), end_tokens=backend.end_tokens, limit=30), backend, slot
            ).tokens
            for prompt in tiny.prompts(12)
        ]
        found.append(outputs)
    through = [ids for ids in found[0] if TURN_END in ids]
    assert through  # a model that names <eos> alone would go on behind its turn
    assert found[1] == [ids[: ids.index(TURN_END)] if TURN_END in ids else ids for ids in found[0]]
