"""A model as its own teacher: the prompts and outputs of live decoding, and probabilities without the end."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="needs the extra train")

from finetune.tiny import FAMILIES, sentences, teacher  # noqa: E402
from redraft import Translator, Update  # noqa: E402
from redraft.decoding.ends import LineBreaks  # noqa: E402
from redraft.decoding.types import Rows, Score  # noqa: E402
from tests.backends.hf.models import END, PAD, VOCABULARY, generation, prompts  # noqa: E402


@pytest.mark.parametrize(("family", "chat"), [("llama", False), ("qwen3", True), ("m2m100", False), ("t5", False)])
def test_prompts_and_greedy_outputs_are_those_of_live_decoding(
    family: str, chat: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught = teacher(family, chat)
    backend, sent = taught.backend, list[Score]()
    score = backend.score
    texts = [source.text for source in sentences(4)]
    asked = [taught.prompt(text, "de") for text in texts]
    with generation(backend.model, repetition_penalty=3.0, no_repeat_ngram_size=1, num_beams=3):
        found = taught.outputs(asked)
        assert backend.model.generation_config.num_beams == 3

    def noted(requests: list[tuple[int, Score]]) -> list[Rows]:
        sent.extend(request for _slot, request in requests)
        return score(requests)

    monkeypatch.setattr(backend, "score", noted)
    with Translator(backend, ["de"], method="ar") as translator:
        for number, (text, prompt, output) in enumerate(zip(texts, asked, found, strict=True)):
            sent.clear()
            translator.translate(Update(str(number), 0, text))
            assert (sent[0].prefix, sent[0].encoder) == (prompt.ids, prompt.encoder)
            live = translator.state("de").output
            if output is not None:
                assert (live, output[-1]) == (output[:-1], END)


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_probabilities_with_ends_ruled_out(family: str) -> None:
    taught = teacher(family)
    backend = taught.backend
    texts = [source.text[: 3 + 2 * number] for number, source in enumerate(sentences(6))]
    outputs = [output[: number + 1] for number, output in enumerate(prompts(6))]
    pairs = [(taught.prompt(text, "de"), output) for text, output in zip(texts, outputs, strict=True)]
    found = taught.score([*pairs, (pairs[0][0], ())])
    assert found[-1].shape == (0,)
    for (prompt, output), logs in zip(pairs, found, strict=False):
        assert logs.shape == (len(output),)
        for place, token in enumerate(output):
            slot = backend.open_slot()
            (rows,) = backend.score([(slot, Score(prompt.ids + output[:place], encoder=prompt.encoder))])
            backend.close_slot(slot)
            others = math.log1p(-math.exp(rows.logprob(-1, END)))
            assert logs[place] == pytest.approx(rows.logprob(-1, token) - others, abs=1e-3)


def test_banned_and_seeds() -> None:
    taught = teacher("marian")
    asked = [taught.prompt(source.text, "de") for source in sentences(20)]
    first = taught.outputs(asked, temperature=3.0, seed=1)
    assert first == taught.outputs(asked, temperature=3.0, seed=1)
    assert first != taught.outputs(asked, temperature=3.0, seed=2)
    assert first != taught.outputs(asked)
    assert not any(PAD in output for output in first if output)
    assert len({token for output in first for token in output or ()}) > VOCABULARY // 2


@pytest.mark.parametrize("family", ["qwen3", "t5"])
def test_line_break_ends_output(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Base models write on after the line; what they learn ends with the end token."""
    taught = teacher(family)
    asked = [taught.prompt(source.text, "de") for source in sentences(8)]
    plain = [output for output in taught.outputs(asked, temperature=1.0) if output]
    token = next(output[1] for output in plain if len(set(output[:3])) == 3)
    monkeypatch.setattr(taught, "_breaks", LineBreaks(before=frozenset({token})))
    found = [output for output in taught.outputs(asked, temperature=1.0) if output]
    assert any(len(output) > 1 for output in found)
    for output in found:
        assert (token in output[1:], output[-1]) == (False, END)


def test_text_is_that_of_tokens() -> None:
    taught = teacher("qwen3")
    ids = taught.backend.tokenize("ab c")
    assert taught.text([*ids, END]) == " ab c"
