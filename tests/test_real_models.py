"""Language models that were not made for Redraft: a base model by examples, and a chat model that writes too much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from redraft import Caption, Style, Translator, Update
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import LlamaOptions
from redraft.decoding.drive import run_together
from redraft.decoding.types import ROOT, TARGET, Draft, Provenance, Score, top_k
from redraft.engine.chat import chat_of
from redraft.engine.lanes import Ids, Task
from redraft.errors import MissingExtra
from redraft.translator import vocabulary_of
from redraft_bench.scripts.real_models import example_prompt, gemma, smollm2

SENTENCES = ("I have a dog.", "I have a dog and two cats.")


def found(model: Callable[[], Path]) -> Path:
    try:
        return model()
    except MissingExtra:
        pytest.skip("needs the extra model-tests")


@pytest.fixture(scope="module")
def base() -> Iterator[LlamaCpp]:
    with closing(LlamaCpp(found(gemma), LlamaOptions(1024, slots=2, threads=1))) as backend:
        yield backend


def captions(translator: Translator) -> list[Caption]:
    found = []
    for seq, text in enumerate(SENTENCES):
        (event,) = translator.translate(Update("1", seq, text, final=seq == len(SENTENCES) - 1))
        assert isinstance(event, Caption), event
        found.append(event)
    return found


def test_base_model(base: LlamaCpp) -> None:
    with Translator(base, ["de"], style=Style(prompt=example_prompt("de"))) as translator:
        last = captions(translator)[-1]
        assert (last.text, last.cut) == ("Ich habe einen Hund und zwei Katzen.", False)
        assert translator.state("de").tally.passes < 20  # 6 and 10 tokens, and their ends


def test_chat_model() -> None:
    with Translator.open(found(smollm2), to=["de"], engine={"threads": 1}) as translator:
        last = captions(translator)[-1]
        assert last.text
        assert not last.cut
        assert "\n" not in last.text


def test_window(base: LlamaCpp) -> None:
    """Rows after a roll-back behind the window of 512 ids are those of a fresh slot."""
    ids = tuple(base.tokenize("The quick brown fox jumps over the lazy dog, and then sleeps. " * 45, start=True)[:600])
    used = base.open_slot()
    base.score([(used, Score(ids, Draft.chain(ids[:8], Provenance.PREVIOUS)))])
    for length in (590, 40):  # within the window of what is cached, and before it
        fresh = base.open_slot()
        (rolled_back,) = base.score([(used, Score(ids[:length]))])
        token, log = top_k(rolled_back, ROOT, 1)[0]
        base.score([(fresh, Score(ids[: length - 1]))])
        (plain,) = base.score([(fresh, Score(ids[:length]))])
        assert plain.argmax(ROOT) == token
        assert plain.logprob(ROOT, token) == pytest.approx(log, abs=0.3)  # rounding of quantised weights
        base.close_slot(fresh)
    base.close_slot(used)


def test_answers_of_a_chat() -> None:
    """An earlier answer as the draft saves passes, and changes no token."""
    with closing(LlamaCpp(found(smollm2), LlamaOptions(512, slots=2, threads=1, exact=True))) as backend:
        chat = chat_of(backend, vocabulary_of({TARGET: backend}))
        assert chat is not None
        passes: list[int] = []

        def answer(task: Task, draft: tuple[int, ...], slot: int) -> tuple[int, ...]:
            lane = (task.run(draft), {TARGET: slot})
            passes.append(0)
            ((_, ids),) = run_together([lane], {TARGET: backend}, lambda *_: passes.append(passes.pop() + 1))
            return ids

        slot, draft = backend.open_slot(), Ids()
        for text in (*SENTENCES, SENTENCES[-1]):
            task = chat.answer([("user", f"Translate into German: {text}")], 24, {})
            alone = backend.open_slot()
            expected = answer(task, (), alone)
            backend.close_slot(alone)
            draft = answer(task, draft, slot)
            assert draft == expected
        assert passes[-1] <= 2 < passes[-2]
