"""The llama.cpp backend on tiny random models: reuse of the cache, roll-back, and refusals."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from redraft.backends.llama_context import Feed, LlamaContext
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import open_model
from redraft.backends.options import LlamaOptions
from redraft.decoding.backend import Capability
from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing
from redraft.decoding.drive import Lane, run, run_together
from redraft.decoding.methods.ssbd import PreviousOutput
from redraft.decoding.rules import Exact
from redraft.decoding.types import EMPTY_DRAFT, ROOT, TARGET, Draft, Output, Prompt, Provenance, Rows, Score, top_k
from redraft.errors import CapabilityError, ContextOverflow, ModelError, OptionError
from redraft_bench.quantise import FORMATS, quantise
from tests.fakes import distribution
from tests.gguf_models import (
    CONTROL,
    FAMILIES,
    UNFIT,
    VOCABULARY,
    WINDOW,
    write_family,
    write_llama,
    write_sliding_window,
)

Ids = tuple[int, ...]

#: Ordinary ids, the same at every run.
IDS: Ids = tuple(random.Random(7).choices(range(len(CONTROL), VOCABULARY), k=400))


class Watched(LlamaCpp):
    """Counts the ids of every call of the engine."""

    def __init__(self, path: Path, options: LlamaOptions) -> None:
        super().__init__(path, options)
        self.feeds: list[Feed] = []
        for context in self._contexts:
            self._watch(context)

    def _watch(self, context: LlamaContext) -> None:
        decode_batch = context._decode_batch

        def watched(feed: Feed) -> np.ndarray:
            self.feeds.append(feed)
            return decode_batch(feed)

        context._decode_batch = watched  # type: ignore[method-assign]

    @property
    def fed(self) -> list[int]:
        return [len(feed) for feed in self.feeds]

    def ask(self, slot: int, prefix: Sequence[int], draft: Draft = EMPTY_DRAFT, prompt_rows: int = 1) -> Rows:
        return self.score([(slot, Score(tuple(prefix), draft, prompt_rows))])[0]


Load = Callable[..., Watched]


@pytest.fixture(scope="module")
def f32(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("models") / "f32.gguf")


@pytest.fixture(scope="module")
def q8(f32: Path) -> Path:
    quantise(f32, f32.with_name("q8.gguf"), "Q8_0")
    return f32.with_name("q8.gguf")


@pytest.fixture
def load() -> Iterator[Load]:
    """Opens backends and closes them after the test; ``exact`` unless told otherwise, so that rows can be compared."""
    opened: list[Watched] = []

    def opening(path: Path, **options: object) -> Watched:
        small = {"context_length": 256, "threads": 1, "gpu_layers": 0, "exact": True}
        opened.append(Watched(path, LlamaOptions(**(small | options))))  # type: ignore[arg-type]
        return opened[-1]

    yield opening
    for backend in opened:
        backend.close()


def chain(ids: Sequence[int]) -> Draft:
    return Draft.chain(ids, Provenance.MODEL)


def tree(*paths: Sequence[int]) -> Draft:
    """The tree of these paths; common beginnings are shared."""
    nodes: dict[Ids, int] = {(): ROOT}
    tokens: list[int] = []
    parents: list[int] = []
    for path in paths:
        for depth, token in enumerate(path):
            at = tuple(path[: depth + 1])
            if at not in nodes:
                nodes[at] = len(tokens)
                tokens.append(token)
                parents.append(nodes[at[:-1]])
    return Draft(tuple(tokens), tuple(parents), (Provenance.MODEL,) * len(tokens))


def table(rows: Rows, nodes: Iterable[int]) -> np.ndarray:
    """(nodes, vocabulary) copies of distributions: rows are lost at the next pass."""
    return np.array([distribution(rows, node) for node in nodes])


def in_new_process(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs Python code elsewhere: what may end the process, or depends on what the process did before."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GGML_")}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env=environment | {"GGML_NO_BACKTRACE": "1"},
        timeout=200,
    )


def fresh_row(backend: Watched, prefix: Sequence[int]) -> np.ndarray:
    """The distribution after ``prefix`` in a slot that has seen nothing else."""
    slot = backend.open_slot()
    row = table(backend.ask(slot, prefix), [ROOT])[0]
    backend.close_slot(slot)
    return row


def same(first: np.ndarray, second: np.ndarray) -> bool:
    return bool(np.allclose(first, second, rtol=0, atol=1e-5))


@pytest.mark.parametrize("format", ["Q8_0", "Q5_0"])
def test_products_in_rows(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    """Drafts of every length, and a vocabulary that is no multiple of eight rows."""
    monkeypatch.setitem(FORMATS, "Q5_0", llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_0)
    vocabulary = VOCABULARY + 3
    write_llama(tmp_path / "f32.gguf", more=["<a>", "<b>", "<c>"])
    quantise(tmp_path / "f32.gguf", tmp_path / "few.gguf", format)
    quantise(tmp_path / "few.gguf", tmp_path / "same.gguf", "F32")
    few, same = (load(tmp_path / name, exact=False) for name in ("few.gguf", "same.gguf"))
    slots = few.open_slot(), same.open_slot()
    for length in (1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 34):
        draft = Draft.chain(IDS[8 : 8 + length], Provenance.PREVIOUS)
        found, expected = (each.ask(slot, IDS[:8], draft) for each, slot in zip((few, same), slots, strict=True))
        for node in range(ROOT, length):
            logs = [[log for _token, log in sorted(top_k(rows, node, vocabulary))] for rows in (found, expected)]
            # Activations are rounded to 8 bits, too; a product of rounded ones differs as much in doubles.
            errors = np.abs(np.array(logs[0]) - np.array(logs[1]))
            assert errors.max() < 1
            assert np.sqrt((errors**2).mean()) < 0.2


@pytest.mark.parametrize("exact", [False, True])
def test_drafts_do_not_change_greedy_output(load: Load, f32: Path, exact: bool) -> None:
    backend = load(f32, slots=2, exact=exact)
    plain, drafting = backend.open_slot(), backend.open_slot()
    previous: Ids = ()
    for length in (8, 10, 12, 14):
        prompt = IDS[75 : 75 + length]
        expected: Ids = ()
        while len(expected) < 10:
            (best, first), (_, second) = top_k(backend.ask(plain, prompt + expected), ROOT, 2)
            assert first - second > 0.03, "a near tie: the machine would decide; take other ids"
            expected += (best,)
        for draft in (previous, expected, expected[:5] + IDS[:5], IDS[20:30]):
            asking = decode(Prompt(prompt), PreviousOutput(), Exact(), previous=draft, end_tokens=frozenset(), limit=10)
            output = run(asking, backend, drafting)
            assert output.tokens == expected
            assert output.passes == 10 - output.accepted
        previous = expected


def test_exact_passes_are_equal_one_by_one_and_in_batches(load: Load, q8: Path) -> None:
    backend = load(q8, slots=2)
    whole, single = backend.open_slot(), backend.open_slot()
    batched = table(backend.ask(whole, IDS[:20], chain(IDS[20:50])), range(ROOT, 30))
    one_by_one = np.array([table(backend.ask(single, IDS[: 20 + n]), [ROOT])[0] for n in range(31)])
    assert np.array_equal(batched, one_by_one)
    assert backend.fed == [50, 20, *[1] * 30]


COMPARE = """
from tests.backends.test_llamacpp import *
if sys.argv[2] == "after another":
    inexact = LlamaCpp(Path(sys.argv[1]), LlamaOptions(context_length=64, threads=1))
    inexact.score([(inexact.open_slot(), Score(IDS[:20]))])
backend = Watched(Path(sys.argv[1]), LlamaOptions(context_length=64, threads=1, slots=2, exact=True))
batched = table(backend.ask(backend.open_slot(), IDS[:20], chain(IDS[20:50])), range(ROOT, 30))
single = backend.open_slot()
sys.exit(not np.array_equal(batched, [table(backend.ask(single, IDS[: 20 + n]), [ROOT])[0] for n in range(31)]))
"""


@pytest.mark.parametrize("format", ["Q4_0", "Q4_K_M"])
@pytest.mark.parametrize("process", ["of its own", "after another"])
def test_exact_passes_are_bit_equal_in_other_formats(tmp_path: Path, format: str, process: str) -> None:
    source, target = write_llama(tmp_path / "f32.gguf", hidden=256), tmp_path / "quantised.gguf"
    quantise(source, target, format)
    done = in_new_process(COMPARE, target, process)
    if process == "of its own":
        assert done.returncode == 0, done.stderr
    else:  # llama.cpp chooses its kernels once a process
        assert "cannot be opened with exact kernels" in done.stderr


@pytest.mark.parametrize(
    ("prefix", "fed"),
    [
        (IDS[:14], 4),  # grown
        (IDS[:6], 1),  # shrunk: the last id is run again, for its row
        (IDS[:4] + IDS[50:60], 10),  # rewritten
        (IDS[:10], 1),  # the same
        (IDS[30:35], 5),  # nothing in common
    ],
)
def test_longest_common_prefix_is_reused(load: Load, q8: Path, prefix: Ids, fed: int) -> None:
    backend = load(q8, slots=2)
    slot = backend.open_slot()
    backend.ask(slot, IDS[:10])
    rows = table(backend.ask(slot, prefix), [ROOT])[0]
    assert backend.fed == [10, fed]
    assert same(rows, fresh_row(backend, prefix))


@pytest.mark.parametrize("accepted", [0, 3, 8])
def test_rejected_draft_leaves_no_trace(load: Load, q8: Path, accepted: int) -> None:
    backend = load(q8, slots=2)
    slot = backend.open_slot()
    backend.ask(slot, IDS[:10], chain(IDS[10:18]))
    then = (*IDS[: 10 + accepted], IDS[99])
    rows = table(backend.ask(slot, then, chain(IDS[40:44])), range(ROOT, 4))
    assert backend.fed == [18, 5]
    assert all(same(rows[n], fresh_row(backend, then + IDS[40 : 40 + n])) for n in range(5))


@pytest.mark.parametrize(("branches", "passes"), [(0, 1), (4, 3)])
def test_slots_of_one_batch_do_not_see_each_other(load: Load, q8: Path, branches: int, passes: int) -> None:
    backend = load(q8, slots=4, branches=branches)
    requests = [(backend.open_slot(), Score(IDS[n : n + 5 * n + 3], chain(IDS[n : 3 * n]))) for n in range(3)]
    answers = backend.score(requests)
    assert len(backend.fed) == passes  # exact slots that share cells would not stay in order
    together = [table(rows, range(ROOT, len(score.draft))) for rows, (_, score) in zip(answers, requests, strict=True)]
    for rows, (_, score) in zip(together, requests, strict=True):
        alone = [fresh_row(backend, score.prefix + score.draft.tokens[:n]) for n in range(len(score.draft) + 1)]
        assert same(rows, np.array(alone))


def test_slots_stand_in_order_of_their_numbers(load: Load, q8: Path) -> None:
    backend = load(q8, slots=4)
    for _ in range(4):
        backend.open_slot()
    requests = [(slot, Score(IDS[slot : slot + 2], chain(IDS[30 : 30 + slot]))) for slot in (2, 0, 3, 1)]
    answers = backend.score(requests)
    # In another order llama.cpp runs every sequence by itself.
    seen = [[each.sequences[0] for each in feed] for feed in backend.feeds]
    assert seen == [[0] * 2 + [1] * 3 + [2] * 4 + [3] * 5]
    together = [table(rows, range(ROOT, slot)) for rows, (slot, _) in zip(answers, requests, strict=True)]
    for rows, request in zip(together, requests, strict=True):
        assert same(rows, table(backend.score([request])[0], range(ROOT, request[0])))


def test_decodings_in_lock_step_give_output_of_each_alone(load: Load, q8: Path) -> None:
    backend = load(q8, slots=3)
    prompts = [IDS[:9], IDS[5:20], IDS[:4]]

    def lane(prompt: Ids, slot: int) -> Lane[Output]:
        return decode(Prompt(prompt), Nothing(), Exact(), end_tokens=backend.end_tokens, limit=10), {TARGET: slot}

    slots = [backend.open_slot() for _ in prompts]
    together = run_together([lane(p, s) for p, s in zip(prompts, slots, strict=True)], {TARGET: backend})
    alone = [run_together([lane(p, s)], {TARGET: backend})[0] for p, s in zip(prompts, slots, strict=True)]
    assert together == alone


PATHS = (IDS[20:24], IDS[20:22] + IDS[30:33], IDS[40:41], IDS[20:22] + IDS[50:52])


def test_rows_of_tree_are_those_of_its_paths(load: Load, q8: Path) -> None:
    backend = load(q8, slots=2, branches=3)
    slot, draft = backend.open_slot(), tree(*PATHS)
    rows = table(backend.ask(slot, IDS[:10], draft), range(ROOT, len(draft)))
    assert backend.fed == [10 + len(draft)]
    for node in range(len(draft)):
        path, at = [], node
        while at != ROOT:
            path.append(draft.tokens[at])
            at = draft.parents[at]
        assert same(rows[node + 1], fresh_row(backend, IDS[:10] + tuple(reversed(path))))


@pytest.mark.parametrize("path", range(4))
def test_any_branch_can_be_continued_without_running_it_again(load: Load, q8: Path, path: int) -> None:
    backend = load(q8, slots=2, branches=3, exact=False)
    slot = backend.open_slot()
    backend.ask(slot, IDS[:10], tree(*PATHS))
    then = IDS[:10] + PATHS[path] + (IDS[99],)
    row = table(backend.ask(slot, then), [ROOT])[0]
    assert backend.fed[-1] == 1
    assert np.allclose(row, fresh_row(backend, then), rtol=0, atol=1e-2)


@pytest.mark.parametrize(("path", "fed"), [(0, 1), (1, 4), (2, 2), (3, 3)])
def test_exact_tree_keeps_cells_in_order(load: Load, q8: Path, path: int, fed: int) -> None:
    backend = load(q8, branches=3)
    slot = backend.open_slot()
    backend.ask(slot, IDS[:10], tree(*PATHS))
    backend.ask(slot, IDS[:10] + PATHS[path] + (IDS[99],))
    assert backend.fed[-1] == fed


def test_exact_passes_on_gpu_are_refused(q8: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft.backends.llamacpp.on_gpu", lambda layers: layers != 0)
    with pytest.raises(CapabilityError, match="exact passes need the processor.* set gpu_layers to 0$"):
        LlamaCpp(q8, LlamaOptions(exact=True))
    LlamaCpp(q8, LlamaOptions(exact=True, gpu_layers=0)).close()


def test_heads_that_do_not_fit_an_exact_cache_are_refused(tmp_path: Path) -> None:
    quantise(write_family(tmp_path / "drawn.gguf", FAMILIES["heads of 80"]), tmp_path / "model.gguf", "Q8_0")
    with pytest.raises(ModelError, match="q8_0 with block size 32 does not divide n_embd_head_k=80: leave out exact"):
        LlamaCpp(tmp_path / "model.gguf", LlamaOptions(context_length=256, gpu_layers=0, exact=True))


def test_many_trees_leak_no_sequences(load: Load, q8: Path) -> None:
    backend = load(q8, slots=2, branches=3)
    slot, choose, prefix = backend.open_slot(), random.Random(1), IDS[:10]
    for _ in range(50):
        paths = [choose.choices(range(len(CONTROL), VOCABULARY), k=choose.randint(1, 3)) for _ in range(4)]
        backend.ask(slot, prefix, tree(*paths))
        kept = choose.choice(paths)
        prefix += (*kept[: choose.randint(0, len(kept))], choose.choice(IDS))
    row = table(backend.ask(slot, prefix), [ROOT])[0]
    assert same(row, fresh_row(backend, prefix))
    backend.ask(slot, prefix, tree(*PATHS))
    backend.close_slot(slot)
    slot = backend.open_slot()
    assert same(table(backend.ask(slot, prefix, tree(*PATHS)), [ROOT])[0], row)


@pytest.mark.parametrize(("branches", "needed"), [(0, 3), (2, 3)])
def test_tree_with_too_many_branches_is_refused(load: Load, q8: Path, branches: int, needed: int) -> None:
    backend = load(q8, branches=branches)
    slot = backend.open_slot()
    wanted = f"with 3 further branches need branches={needed} or more; this backend .* with branches={branches}"
    with pytest.raises(CapabilityError, match=wanted):
        backend.ask(slot, IDS[:10], tree(*PATHS))
    assert (Capability.TREES in backend.capabilities) == (branches > 0)
    assert backend.ask(slot, IDS[:10], chain(IDS[:3])).argmax(ROOT) in range(VOCABULARY)


def test_no_requests_have_no_answers(load: Load, q8: Path) -> None:
    assert load(q8).score([]) == []


@pytest.mark.parametrize("together", [False, True])
def test_branches_of_several_slots(load: Load, q8: Path, together: bool) -> None:
    backend = load(q8, slots=2, branches=3)
    requests = [(backend.open_slot(), Score(IDS[:10], tree(*PATHS))) for _ in range(2)]
    for batch in [requests] if together else [requests[:1], requests[1:]]:
        with suppress(CapabilityError):
            backend.score(batch)
    assert backend.ask(1, IDS[:12]).argmax(ROOT) == int(fresh_row(load(q8), IDS[:12]).argmax())


def test_tree_larger_than_cache_is_overflow_or_fits(load: Load, q8: Path) -> None:
    backend = load(q8, branches=7, batch=64)
    slot = backend.open_slot()
    with suppress(ContextOverflow):
        backend.ask(slot, IDS[:230], tree(*(IDS[n : n + 20] for n in range(0, 160, 20))))
    assert backend.ask(slot, IDS[:12]).argmax(ROOT) == int(fresh_row(load(q8), IDS[:12]).argmax())


TOO_MANY = """
from tests.backends.test_llamacpp import *
backend = Watched(Path(sys.argv[1]), LlamaOptions(context_length=256, threads=1, branches=7))
slot = backend.open_slot()
with suppress(ContextOverflow):
    backend.ask(slot, IDS[:230], tree(*(IDS[n : n + 20] for n in range(0, 160, 20))))
backend.ask(slot, IDS[:12])
"""


def test_tree_larger_than_context_does_not_end_process(q8: Path) -> None:
    done = in_new_process(TOO_MANY, q8)
    assert done.returncode == 0, done.stderr


def test_all_rows_of_prompt(load: Load, q8: Path) -> None:
    backend = load(q8, slots=2)
    slot = backend.open_slot()
    backend.ask(slot, IDS[:12])  # rows that were not kept the first time are computed again
    rows = table(backend.ask(slot, IDS[:12], chain(IDS[12:14]), prompt_rows=12), range(-12, 2))
    assert all(same(rows[n], fresh_row(backend, IDS[: n + 1])) for n in range(14))


@pytest.mark.parametrize(("slots", "branches"), [(3, 0), (3, 3)])
def test_requests_longer_than_batch_are_split_invisibly(load: Load, q8: Path, slots: int, branches: int) -> None:
    whole, parts = (load(q8, slots=slots, branches=branches, batch=size) for size in (512, 8))
    draft = tree(*PATHS) if branches else chain(IDS[30:50])
    requests = [(0, Score(IDS[:33], draft, 33)), (1, Score(IDS[5:12])), (2, Score(IDS[:8], chain(IDS[60:63])))]
    tables = []
    for backend in (whole, parts):
        for _ in requests:
            backend.open_slot()
        tables.append(
            [
                table(rows, range(-score.prompt_rows, len(score.draft)))
                for rows, (_, score) in zip(backend.score(requests), requests, strict=True)
            ]
        )
    assert len(whole.fed) == (3 if branches else 1) and max(parts.fed) == 8 and sum(parts.fed) == sum(whole.fed)
    assert all(same(one, other) for one, other in zip(*tables, strict=True))


SMALL_BATCH = """
from contextlib import closing
from tests.backends.test_llamacpp import *
for exact, size in [(False, 1), (False, 2), (True, 1), (True, 4)]:
    for slots, branches in [(1, 0), (1, 40), (8, 0), (4, 5)]:
        numbers = {"slots": slots, "branches": branches, "batch": size, "exact": exact}
        with closing(LlamaCpp(Path(sys.argv[1]), LlamaOptions(context_length=256, threads=1, **numbers))) as backend:
            requests = [(backend.open_slot(), Score(IDS[:20], chain(IDS[20:27]))) for _ in range(slots)]
            best = [[rows.argmax(place) for place in range(-1, 7)] for rows in backend.score(requests)]
            assert best == [best[0]] * slots, numbers
            if exact:
                print(best[0])
"""


@pytest.mark.parametrize("file", ["q8", "f32"])
def test_small_batch(file: str, request: pytest.FixtureRequest) -> None:
    done = in_new_process(SMALL_BATCH, request.getfixturevalue(file))
    assert done.returncode == 0, done.stderr
    assert len(set(done.stdout.splitlines())) == 1


@pytest.mark.parametrize(("length", "drafted"), [(17, 0), (10, 7), (300, 0)])
def test_too_long_requests_overflow_and_backend_goes_on(load: Load, q8: Path, length: int, drafted: int) -> None:
    backend = load(q8, context_length=16)
    slot = backend.open_slot()
    with pytest.raises(ContextOverflow, match=f"{length + drafted} tokens do not fit into the context length of 16"):
        backend.ask(slot, IDS[:length], chain(IDS[:drafted]))
    full = backend.ask(slot, IDS[:10], chain(IDS[10:16]))
    assert full.argmax(5) == int(fresh_row(load(q8), IDS[:16]).argmax())


def test_slot_may_be_closed_after_backend(load: Load, q8: Path) -> None:
    backend = load(q8)
    slot = backend.open_slot()
    backend.ask(slot, IDS[:10])
    backend.close()
    backend.close_slot(slot)


@pytest.mark.parametrize("batch", [4, 512])
def test_id_outside_vocabulary(load: Load, q8: Path, batch: int) -> None:
    backend = load(q8, slots=2, batch=batch)
    slots = [backend.open_slot(), backend.open_slot()]
    backend.ask(slots[0], IDS[:10])
    with pytest.raises(ModelError, match=r"llama.cpp could not run the model"):
        backend.score([(slots[0], Score(IDS[:20])), (slots[1], Score((*IDS[:9], VOCABULARY)))])
    rows = [table(backend.ask(slot, IDS[:20]), [ROOT])[0] for slot in slots]
    assert same(rows[0], rows[1]) and same(rows[0], fresh_row(load(q8), IDS[:20]))


def test_interrupted_pass_leaves_nothing_behind(load: Load, q8: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = load(q8, slots=2)
    slot = backend.open_slot()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LlamaContext, "decode", interrupt)
        with pytest.raises(KeyboardInterrupt):
            backend.ask(slot, IDS[:20])
    row = table(backend.ask(slot, IDS[:20]), [ROOT])[0]
    assert same(row, fresh_row(backend, IDS[:20]))


def test_slots_run_out_and_are_forgotten_when_closed(load: Load, q8: Path) -> None:
    backend = load(q8, slots=2)
    first, _second = backend.open_slot(), backend.open_slot()
    with pytest.raises(CapabilityError, match="all 2 slots are in use; open the model with more slots"):
        backend.open_slot()
    backend.ask(first, IDS[:10])
    backend.close_slot(first)
    assert backend.open_slot() == first
    backend.ask(first, IDS[:12])
    assert backend.fed == [10, 12]


def test_sliding_window_is_rolled_back_beyond_window(load: Load, tmp_path: Path) -> None:
    # llama.cpp would keep 256 ids of the layers with a window: enough are needed to push the first ones out.
    options = {"context_length": 512, "batch": 32, "exact": False}
    backend = load(write_sliding_window(tmp_path / "window.gguf"), slots=2, **options)
    assert llama_cpp.llama_model_n_swa(backend.model.handle) > 0
    slot = backend.open_slot()
    backend.ask(slot, IDS[:360], chain(IDS[:30]))
    for length in (360, 330, 60, 2 * WINDOW, 3):
        rolled_back = table(backend.ask(slot, IDS[:length]), [ROOT])[0]
        assert backend.fed[-1] == 1
        assert np.allclose(rolled_back, fresh_row(backend, IDS[:length]), atol=0.01)
    # What must come out differs by more than what the comparison forgives.
    assert not np.allclose(fresh_row(backend, IDS[:60]), fresh_row(backend, IDS[58:60]), atol=0.05)


@pytest.mark.parametrize(("word", "write"), UNFIT)
def test_unfit_models_are_refused_by_name(tmp_path: Path, word: str, write: Callable[[Path], Path]) -> None:
    path = write(tmp_path / "speaker.gguf")
    with pytest.raises(CapabilityError, match=f"model 'speaker.gguf' is .*{word}.*; a decoder-only model is needed"):
        LlamaCpp(path)


def _truncated(keep: float) -> Callable[[Path, bytes], object]:
    return lambda path, data: path.write_bytes(data[: int(keep * len(data))])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path, data: None, "does not exist"),
        (lambda path, data: path.mkdir(), "cannot be read: Is a directory; a GGUF file is needed"),
        (lambda path, data: path.write_bytes(b"GGUF" + bytes(100)), "cannot be loaded: "),
        (_truncated(0.0001), "cannot be loaded: "),
        (_truncated(0.01), "cannot be loaded: "),
        (_truncated(0.5), "cannot be loaded: .*not within the file bounds"),
        (_truncated(0.9999), "cannot be loaded: .*not within the file bounds"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, q8: Path, make: Callable[[Path, bytes], object], reason: str) -> None:
    path = tmp_path / "broken.gguf"
    make(path, q8.read_bytes())
    for opening in (LlamaCpp, lambda path: open_model(str(path))):
        with pytest.raises(ModelError, match=f"broken.gguf' {reason}") as raised:
            opening(path)
        assert "\n" not in str(raised.value)


RANGES = {
    "context_length": (16, 1 << 20),
    "slots": (1, 256),
    "branches": (0, 255),
    "threads": (0, 1024),
    "gpu_layers": (-1, 10_000),
    "batch": (1, 1 << 16),
}


@pytest.mark.parametrize(("name", "low", "high"), [(name, *ends) for name, ends in RANGES.items()])
def test_options_are_checked(name: str, low: int, high: int) -> None:
    for good in (low, high):
        assert getattr(LlamaOptions(**{name: good}), name) == good  # type: ignore[arg-type]
    for bad in (low - 1, high + 1, high - 0.5, True, None, str(high)):
        with pytest.raises(OptionError) as raised:
            LlamaOptions(**{name: bad})  # type: ignore[arg-type]
        assert str(raised.value) == f"{name} must be a whole number from {low} to {high}, not {bad!r}"


def test_slots_and_branches_together_are_checked(q8: Path) -> None:
    with pytest.raises(OptionError, match="slots.*branches"):
        LlamaCpp(q8, LlamaOptions(slots=129, branches=128, context_length=16))
