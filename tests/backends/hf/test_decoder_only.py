"""Decoder-only models of transformers: greedy ids in fewer passes, batches, trees, and reuse of the cache."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs the extra hf")

from redraft.backends.hf.cache import BLOCK, SlotCache  # noqa: E402
from redraft.decoding.backend import Capability  # noqa: E402
from redraft.decoding.decode import decode  # noqa: E402
from redraft.decoding.drafters import Nothing  # noqa: E402
from redraft.decoding.drive import run, run_together  # noqa: E402
from redraft.decoding.methods.ssbd import PreviousOutput  # noqa: E402
from redraft.decoding.rules import Exact  # noqa: E402
from redraft.decoding.types import EMPTY_DRAFT, ROOT, TARGET, Asking, Output, Prompt, Score  # noqa: E402
from redraft.errors import CapabilityError, ContextOverflow, ModelError  # noqa: E402
from tests.backends.hf import models as tiny  # noqa: E402
from tests.backends.hf.models import END, LIMIT, PAD, VOCABULARY, Watched, chain, logs, path_to, tree  # noqa: E402
from tests.fakes import Everything  # noqa: E402

Ids = tuple[int, ...]
IDS: Ids = tiny.prompts(1, 520, seed=7)[0]
close = pytest.approx


@pytest.fixture(scope="module")
def backend() -> Watched:
    return tiny.watched(tiny.qwen3())


def plain(model: object, prefix: Sequence[int]) -> list[list[float]]:
    """(ids, vocabulary) log-probabilities by one pass of the model without any cache."""
    with torch.inference_mode():
        logits = model(torch.tensor([list(prefix)]), use_cache=False).logits[0]  # type: ignore[operator]
    return logits.log_softmax(-1).tolist()


def asking(prompt: Ids, previous: Ids = ()) -> Asking[Output]:
    drafter = PreviousOutput() if previous else Nothing()
    return decode(Prompt(prompt), drafter, Exact(), previous=previous, end_tokens=frozenset({END}), limit=LIMIT)


@pytest.mark.parametrize("make", [tiny.qwen3, tiny.llama])
def test_any_draft(make) -> None:
    backend = tiny.watched(make(), slots=1)
    slot, chosen = backend.open_slot(), random.Random(1)
    ends, kept = set(), 0
    for prompt in tiny.prompts(10):
        expected, finished = tiny.greedy(make(), prompt)
        alone = run(asking(prompt), backend, slot)
        assert (alone.tokens, alone.finished, alone.passes) == (expected, finished, len(expected) + finished)
        draft = tuple(token if chosen.random() < 0.8 else chosen.randrange(VOCABULARY) for token in expected)
        output = run(asking(prompt, (*draft, 9)), backend, slot)
        assert (output.tokens, output.finished) == (expected, finished)
        assert output.passes == alone.passes - output.accepted
        ends.add(finished)
        kept += output.accepted
    assert ends == {True, False}
    assert kept > 10


def test_end_inside_accepted_draft_ends_output(backend: Watched) -> None:
    slot = backend.open_slot()
    looked = decode(
        Prompt(IDS[:5]), PreviousOutput(), Everything(), previous=(8, END, 9), end_tokens=frozenset({END}), limit=9
    )
    output = run(looked, backend, slot)
    backend.close_slot(slot)
    assert (output.tokens, output.finished, output.passes) == ((8,), True, 1)


trees = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=9).flatmap(
    lambda tokens: st.tuples(st.just(tokens), st.tuples(*(st.integers(ROOT, node - 1) for node in range(len(tokens)))))
)


@given(trees, st.integers(1, 6), st.integers(0, 5), st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_tree_is_its_paths_and_accepted_one_stays(drawn, length: int, more: int, chosen) -> None:
    model = tiny.qwen3()
    backend, draft, prefix = tiny.watched(model, slots=2), tree(*drawn), IDS[:length]
    slot = backend.open_slot()
    backend.open_slot()
    rows = backend.ask(slot, prefix, draft, prompt_rows=length)
    for node in range(-length, len(draft)):
        path = [*prefix, *path_to(draft, node)] if node >= ROOT else prefix[: length + node + 1]
        assert logs(rows, node) == close(plain(model, path)[-1], abs=1e-4)
    leaf = chosen.choice(range(len(draft)))
    longer = (*prefix, *path_to(draft, leaf), *IDS[100 : 100 + more], 9)
    rows = backend.ask(slot, longer, chain(IDS[200:203]))
    # The path may go on by chance in another branch.
    assert backend.fed[-1][0] <= more + 1 + 3
    assert logs(rows, 2) == close(plain(model, (*longer, *IDS[200:203]))[-1], abs=1e-4)


def test_second_branch_is_kept(backend: Watched) -> None:
    slot = backend.open_slot()
    backend.ask(slot, IDS[:8], tree((5, 6, 7, 8, 9), (ROOT, 0, ROOT, 2, 3)))
    rows = backend.ask(slot, (*IDS[:8], 7, 8, 9, 4))
    assert backend.fed[-2:] == [[13], [1]]
    assert logs(rows, ROOT) == close(plain(tiny.qwen3(), (*IDS[:8], 7, 8, 9, 4))[-1], abs=1e-4)
    rows = backend.ask(slot, (*IDS[:8], 5, 6, 4))
    assert backend.fed[-1] == [3]
    assert logs(rows, ROOT) == close(plain(tiny.qwen3(), (*IDS[:8], 5, 6, 4))[-1], abs=1e-4)
    backend.close_slot(slot)


def test_only_what_is_new_is_read_and_rest_rolled_back(backend: Watched) -> None:
    slot = backend.open_slot()
    backend.ask(slot, IDS[:10], chain(IDS[10:14]))
    backend.ask(slot, IDS[:13])
    backend.ask(slot, (*IDS[:4], 5, 6))
    backend.ask(slot, (*IDS[:4], 5, 6))
    rows = backend.ask(slot, (*IDS[:4], 5, 6), prompt_rows=6)
    assert backend.fed[-5:] == [[14], [1], [2], [1], [6]]
    expected = plain(tiny.qwen3(), (*IDS[:4], 5, 6))
    for node in range(-6, 0):
        assert logs(rows, node) == close(expected[node], abs=1e-4)
    backend.close_slot(slot)


def test_closed_slot_is_empty_when_it_is_opened_again(backend: Watched) -> None:
    slot = backend.open_slot()
    backend.ask(slot, IDS[:10])
    backend.close_slot(slot)
    assert backend.open_slot() == slot
    backend.ask(slot, IDS[:10])
    assert backend.fed[-1] == [10]
    backend.close_slot(slot)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0), (1, 3)])
def test_batch_is_its_requests_alone(order: tuple[int, ...]) -> None:
    together, alone = (tiny.watched(tiny.qwen3()) for _ in range(2))
    for _ in range(4):
        together.open_slot(), alone.open_slot()
    draft = tree((5, 6, 7), (ROOT, ROOT, 1))
    rounds = [
        [Score(IDS[:20]), Score(IDS[5:8], draft), Score(IDS[3:40], chain((4, 5)), prompt_rows=9), Score((7,))],
        [Score(IDS[:21], draft), Score((*IDS[5:8], 6, 7, 9)), Score(IDS[3:5], prompt_rows=2), Score((7, 8), draft)],
    ]
    for scores in rounds:
        answers = together.score([(slot, scores[slot]) for slot in order])
        for slot, rows in zip(order, answers, strict=True):
            expected = alone.score([(slot, scores[slot])])[0]
            for node in range(-scores[slot].prompt_rows, len(scores[slot].draft)):
                assert logs(rows, node) == close(logs(expected, node), abs=1e-5)
    assert len(together.fed) == 2
    # What is reused of each row does not depend on the others.
    assert [fed for row in together.fed for fed in row] == [row[0] for row in alone.fed]


def test_three_decodings_at_once_are_each_alone() -> None:
    backend = tiny.watched(tiny.qwen3())
    asked = [(IDS[:4], IDS[50:55]), (IDS[4:15], ()), (IDS[20:27], (END, 6, 7))]
    lanes = [(asking(*each), {TARGET: backend.open_slot()}) for each in asked]
    together = run_together(lanes, {TARGET: backend})
    assert len(backend.fed) == max(output.passes for output in together)
    for (prompt, _previous), output in zip(asked, together, strict=True):
        assert (output.tokens, output.finished) == tiny.greedy(tiny.qwen3(), prompt)


def test_cache_grows_and_keeps_what_it_holds() -> None:
    backend = tiny.watched(tiny.qwen3(), slots=2)
    first, second = backend.open_slot(), backend.open_slot()
    backend.ask(second, IDS[:50])
    backend.ask(first, IDS[: BLOCK - 1])
    for length in (BLOCK, BLOCK + 1, 2 * BLOCK + 5):
        rows = backend.ask(first, IDS[:length])
        assert logs(rows, ROOT) == close(plain(tiny.qwen3(), IDS[:length])[-1], abs=1e-3)
    rows = backend.ask(second, IDS[:51])
    assert backend.fed[-1] == [1]
    assert logs(rows, ROOT) == close(plain(tiny.qwen3(), IDS[:51])[-1], abs=1e-4)


def test_what_is_too_long_is_refused_and_changes_nothing() -> None:
    backend = tiny.watched(tiny.qwen3(), context_length=16)
    slot, other = backend.open_slot(), backend.open_slot()
    backend.ask(slot, IDS[:15], chain((4,)))
    for prefix, draft in ((IDS[:17], EMPTY_DRAFT), (IDS[:15], chain((4, 5)))):
        with pytest.raises(ContextOverflow, match="17 tokens do not fit into the context length of 16"):
            backend.score([(other, Score(IDS[:3])), (slot, Score(prefix, draft))])
    wide = tree((4, 5, 6, 7), (ROOT, ROOT, ROOT, ROOT))
    assert logs(backend.ask(slot, IDS[:15], wide), 3) == close(plain(tiny.qwen3(), (*IDS[:15], 7))[-1], abs=1e-4)
    assert backend.fed == [[16], [1 + 4]]


def test_interrupted_pass_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = tiny.watched(tiny.qwen3())
    first, second = backend.open_slot(), backend.open_slot()
    backend.ask(second, IDS[:5], tree((8, 9), (ROOT, ROOT)))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    follows = (*IDS[:5], 9)  # the second branch, whose cells are moved
    with monkeypatch.context() as patched:
        patched.setattr(SlotCache, "move", interrupt)
        with pytest.raises(KeyboardInterrupt):
            backend.score([(first, Score(IDS[:6])), (second, Score(follows))])
    for slot, prefix in ((first, IDS[:6]), (second, follows)):
        assert logs(backend.ask(slot, prefix), ROOT) == close(plain(tiny.qwen3(), prefix)[-1], abs=1e-4)


def test_slots_run_out_and_closed_model_answers_nothing() -> None:
    backend = tiny.watched(tiny.qwen3(), slots=1)
    slot = backend.open_slot()
    with pytest.raises(CapabilityError, match="all 1 slots are in use"):
        backend.open_slot()
    assert backend.score([]) == []
    backend.close()
    backend.close()
    with pytest.raises(ModelError, match="model 'tiny' is closed"):
        backend.ask(slot, (4,))
    backend.close_slot(slot)


def test_early_exit_is_first_layers_with_same_head() -> None:
    target = tiny.watched(tiny.qwen3())
    short = target.early_exit(2)
    kept = {name: value for name, value in tiny.qwen3().state_dict().items() if "layers.2." not in name}
    reference = type(tiny.qwen3())(
        type(tiny.qwen3().config)(
            **{**tiny.qwen3().config.to_dict(), "num_hidden_layers": 2, "layer_types": ["full_attention"] * 2}
        )
    )
    reference.load_state_dict(kept)
    reference.eval()
    slots = target.open_slot(), short.open_slot()
    for prompt in tiny.prompts(3, seed=5):
        assert run(asking(prompt), short, slots[1]).tokens == tiny.greedy(reference, prompt)[0]
        assert run(asking(prompt), target, slots[0]).tokens == tiny.greedy(tiny.qwen3(), prompt)[0]
    assert short.layers == 2
    assert {id(each) for each in short.model.parameters()} < {id(each) for each in target.model.parameters()}


@pytest.mark.parametrize("layers", [-1, 0, 3, 4])
def test_early_exit_after_no_such_layer_is_refused(backend: Watched, layers: int) -> None:
    with pytest.raises(CapabilityError, match=f"must be after 1 to 2 of its 3 layers, not after {layers}"):
        backend.early_exit(layers)


def test_one_layer_has_no_early_exit(backend: Watched) -> None:
    assert Capability.EARLY_EXIT in backend.early_exit(2).capabilities
    assert Capability.EARLY_EXIT not in backend.early_exit(1).capabilities


def test_banned_tokens_are_never_best() -> None:
    with tiny.generation(tiny.qwen3(), suppress_tokens=[5, 9], bad_words_ids=[[END], [12], [6, 7]]):
        backend = tiny.watched(tiny.qwen3())
        slot = backend.open_slot()
        rows = backend.ask(slot, IDS[:6])
        assert [token for token in range(VOCABULARY) if rows.logprob(ROOT, token) == float("-inf")] == [5, 9, 12]
        prompt = IDS[30:36]
        output = run(asking(prompt), backend, slot)
        assert (output.tokens, output.finished) == tiny.greedy(tiny.qwen3(), prompt, bad_words_ids=[[12]])


def test_in_16_bits() -> None:
    model = tiny.qwen3(seed=3).to(torch.bfloat16)
    backend = tiny.watched(model, dtype="bfloat16")
    slot = backend.open_slot()
    rows = backend.ask(slot, IDS[:12], tree((5, 6, 7), (ROOT, ROOT, 1)))
    assert logs(rows, 2) == close(plain(model.float(), (*IDS[:12], 6, 7))[-1], abs=0.5)


def test_facts(backend: Watched) -> None:
    assert (backend.vocabulary_size, backend.end_tokens, backend.pad_token) == (VOCABULARY, frozenset({END}), PAD)
    assert backend.metadata["general.architecture"] == "qwen3"
    assert [backend.metadata[f"tokenizer.ggml.{name}_token_id"] for name in ("bos", "eos")] == ["0", "1"]
    assert tiny.watched(tiny.qwen3(), context_length=4096).context_length == 1024
