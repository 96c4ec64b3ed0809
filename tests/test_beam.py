"""Beam search: with one beam it is greedy decoding, with several it finds outputs at least as probable."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the hf extra is not installed")
pytest.importorskip("transformers", reason="the hf extra is not installed")
pytest.importorskip("gguf", reason="the gguf extra is not installed")

import torch

from benchmarks.beam import beam_search
from redraft.backends.hf.model import backend_of
from redraft.backends.hf.options import HfOptions
from redraft.decoding.accept.exact import Exact
from redraft.decoding.decode import decode
from redraft.decoding.draft.previous import Nothing
from redraft.decoding.drive import run
from redraft.decoding.types import Prompt
from tests.backends.hf import models as tiny

OPTIONS = HfOptions(context_length=64, slots=1, device="cpu", threads=1)


def logprob(model: torch.nn.Module, prompt: tuple[int, ...], output: tuple[int, ...]) -> float:
    """Of output and end, averaged over their tokens, as beam search compares them."""
    ids = torch.tensor([[*prompt, *output, tiny.END]])
    with torch.inference_mode():
        logs = model(input_ids=ids).logits[0].log_softmax(-1)
    steps = range(len(prompt) - 1, ids.shape[1] - 1)
    return float(sum(logs[place, ids[0, place + 1]] for place in steps)) / len(steps)


def test_one_beam_is_greedy_and_more_are_at_least_as_probable() -> None:
    model = tiny.qwen3()
    backend = backend_of(model, tiny.tokenizer(), "tiny", OPTIONS)
    better = 0
    for prompt in tiny.prompts(12):
        plain, finished = tiny.greedy(model, prompt)
        assert beam_search(backend, Prompt(prompt), beams=1, limit=tiny.LIMIT) == plain
        best = beam_search(backend, Prompt(prompt), beams=4, limit=tiny.LIMIT)
        if finished and len(best) < tiny.LIMIT and best != plain:
            assert logprob(model, prompt, best) > logprob(model, prompt, plain) - 1e-4
            better += 1
    assert better > 0


def test_encoder_decoders() -> None:
    model = tiny.marian()
    backend = backend_of(model, tiny.tokenizer(), "tiny", OPTIONS)
    for source in tiny.prompts(4):
        prompt = Prompt((tiny.PAD,), encoder=source)
        assert beam_search(backend, prompt, beams=1, limit=tiny.LIMIT) == tiny.greedy(model, source)[0]
        assert tiny.PAD not in beam_search(backend, prompt, beams=3, limit=tiny.LIMIT)


@pytest.mark.parametrize("forced", [None, 9])
@pytest.mark.parametrize("begun", [(7,), (tiny.END, 7), (tiny.END,)])
def test_decoder_starts_with_prompt_and_nothing_else(begun: tuple[int, ...], forced: int | None) -> None:
    model = tiny.mbart()  # its own start token is the end token
    with tiny.generation(model, forced_bos_token_id=forced):
        backend = backend_of(model, tiny.tokenizer(), "tiny", OPTIONS)
        slot = backend.open_slot()
        for source in tiny.prompts(4):
            asking = decode(begun, Nothing(), Exact(), encoder=source, end_tokens=backend.end_tokens, limit=tiny.LIMIT)
            expected = run(asking, backend, slot).tokens
            assert beam_search(backend, Prompt(begun, encoder=source), beams=1, limit=tiny.LIMIT) == expected
