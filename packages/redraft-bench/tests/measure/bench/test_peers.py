"""The peers on the shipped model in 32-bit floats, compared with Redraft's greedy decoding of the same stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import LlamaOptions
from redraft.captions.events import Update
from redraft.captions.metadata import PROMPT_KEY
from redraft.decoding.method import Value
from redraft.decoding.types import common_prefix
from redraft.errors import CapabilityError, ModelError, OptionError
from redraft.models import shipped_path
from redraft_bench.bench.peers import PEERS, SERVER, Models, open_peer
from redraft_bench.bench.peers.align_att import AlignAtt
from redraft_bench.bench.peers.engine import PassLog
from redraft_bench.bench.peers.llama_server import LlamaServer, server_version
from redraft_bench.bench.peers.local_agreement import LocalAgreement
from redraft_bench.bench.peers.nemo import Nemo
from redraft_bench.bench.peers.retranslate import Task
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.measure import MethodSystem, Run, System
from redraft_bench.eval.record import PassRecord as Pass
from redraft_bench.eval.record import Step
from redraft_bench.quantise import quantise
from tests.fakes import RandomModel

CONTEXT = 192
#: Grows, is revised, is said again, and ends; then another one.
UPDATES = [
    Update("1", 0, "I have a small"),
    Update("1", 1, "I have a small dog that sleeps"),
    Update("1", 2, "I had a small dog that sleeps all day"),
    Update("1", 3, "I had a small dog that sleeps all day "),
    Update("1", 4, "I had a small dog that sleeps all day long.", final=True),
    Update("2", 0, "She wants to learn how to play the piano.", final=True),
]
POLICIES = {"local-agreement", "nemo", "align-att"}
LIBRARIES = [name for name in PEERS if name not in POLICIES]

Opened = Callable[..., System]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("peers") / "demo.gguf"
    quantise(shipped_path("demo-tiny"), path, "F32")
    return path


@pytest.fixture(scope="module")
def backend(model: Path) -> Iterator[LlamaCpp]:
    with closing(LlamaCpp(model, LlamaOptions(context_length=CONTEXT, threads=1, slots=8))) as opened:
        yield opened


@pytest.fixture(scope="module")
def open_(model: Path, backend: LlamaCpp) -> Iterator[Opened]:
    """Opens peers into German, and closes them."""
    opened: list[System] = []

    def open_one(
        name: str,
        path: Path = model,
        language: str = "de",
        max_tokens: int = 256,
        small: Path | None = None,
        **settings: int,
    ) -> System:
        engine: dict[str, Value] = {"context_length": CONTEXT, "threads": 1, "gpu_layers": 0, "device": "cpu"}
        models = Models(path, small or shipped_path("demo-tiny"), engine)
        opened.append(open_peer(name, Task(backend, language, max_tokens), models, settings))
        return opened[-1]

    yield open_one
    for peer in opened:
        peer.close()


@pytest.fixture(scope="module")
def library(open_: Opened, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """Opens each library once: transformers alone on the GGUF, what it drafts with on a folder."""

    @cache
    def folder() -> Path:
        from redraft_train.recipe.export_hf import gguf_to_hf

        made: Path = tmp_path_factory.mktemp("folder")
        gguf_to_hf(model, made)
        return made

    @cache
    def open_once(name: str, **settings: int) -> System:
        if name == SERVER:
            try:
                server_version()
            except CapabilityError as error:
                pytest.skip(str(error))
        on_torch = "torch" in PEERS[name].packages
        if on_torch:
            pytest.importorskip("torch", reason="needs the extra hf")
            pytest.importorskip("accelerate", reason="needs the extra gguf")
        if name == "transformers" or not on_torch:
            return open_(name, **settings)
        return open_(name, folder(), small=folder(), **settings)

    return open_once


def steps(system: System, updates: list[Update] = UPDATES) -> list[Step]:
    found = []
    for update in updates:
        step, failures = system.translate(update)
        assert failures == []
        found.append(step)
    return found


@pytest.fixture(scope="module")
def expected(backend: LlamaCpp) -> list[Step]:
    with closing(MethodSystem(backend, Contender("ar", "de"))) as own:
        return steps(own)


def test_beam_from_scratch(model: Path) -> None:
    """Its passes read only the rows of the last tokens, so how probable its output is stays open."""
    options = LlamaOptions(context_length=CONTEXT, threads=1, slots=1, branches=8)
    with (
        closing(LlamaCpp(model, options)) as backend,
        closing(MethodSystem(backend, Contender("beam", "de"))) as system,
    ):
        (found,) = steps(system, [UPDATES[5]])
    assert found.finished and found.drafted > found.accepted > 0


@pytest.mark.parametrize("name", LIBRARIES)
def test_ids_of_re_translation(name: str, library: Opened, expected: list[Step]) -> None:
    found = steps(library(name))
    assert [step.tokens for step in found] == [step.tokens for step in expected]
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine.text, mine.unstable, mine.prompt) == (theirs.text, theirs.unstable, theirs.prompt)
        assert mine.finished and len(mine.passes) <= len(theirs.passes)
        assert 0 <= mine.model_seconds <= mine.seconds
    again = found[3]  # only a space came
    assert (again.passes, again.seconds, again.draft_passes) == ((), 0.0, 0)
    for step in found[:3] + found[4:]:
        # A pass gives what it accepts and one token more, the end token among them.
        assert step.accepted + len(step.passes) == len(step.tokens) + 1
        assert step.model_seconds > 0
        first, *later = step.passes
        assert first.cached + first.new - first.depth == step.prompt
        assert all(each.new == each.depth + 1 for each in later if name != "transformers-assistant")


def test_what_each_library_keeps_and_drafts(open_: Opened, library: Opened, expected: list[Step]) -> None:
    plain = steps(open_("llama-cpp-python"))
    assert [step.passes for step in plain] == [step.passes for step in expected]  # the same cache by other hands
    assert max(step.passes[0].cached for step in plain if step.passes) > 2
    assert not any(step.drafted for step in plain)
    greedy = steps(library("transformers"))
    assert {step.passes[0].cached for step in greedy if step.passes} == {0}
    assert [len(step.passes) for step in greedy] == [len(step.passes) for step in expected]
    assert not any(step.drafted for step in greedy)


REPEATING = Update("1", 0, "Berlin, Paris, Rome, Berlin, Paris, Rome, Berlin, Paris, Rome, Berlin, Paris.", final=True)


@pytest.mark.parametrize("name", ["llama-cpp-python", "transformers"])
def test_lookup_finds_what_repeats(name: str, library: Opened) -> None:
    (plain,), (lookup,) = (steps(library(each), [REPEATING]) for each in (name, f"{name}-lookup"))
    assert lookup.tokens == plain.tokens
    assert len(lookup.passes) < len(plain.passes)
    assert lookup.drafted >= lookup.accepted == len(plain.passes) - len(lookup.passes)


#: Its translation has more than the 32 tokens after which the pool learns an output.
LONG = (
    "On Monday the old harbour of our small town was closed for nine days after a heavy storm, because two large "
    "cranes had fallen into the water, and many ships had to wait outside until the divers had cut them into pieces."
)


def test_pool_drafts_from_what_was_said(library: Opened) -> None:
    """A long text that is said again is drafted from its first translation; the ids stay greedy's."""
    updates = [Update(utterance, 0, LONG, final=True) for utterance in "12"]
    plain, pooled = (steps(library(SERVER, ngram=ngram), updates) for ngram in (0, 2))
    assert [step.tokens for step in pooled] == [step.tokens for step in plain]
    assert len(plain[0].tokens) > 40 and not any(step.drafted for step in plain)
    kept = sum(step.accepted for step in pooled)
    assert sum(step.drafted for step in pooled) >= kept and pooled[1].accepted > 0
    assert sum(len(step.passes) for step in pooled) == sum(len(step.passes) for step in plain) - kept


def test_server_without_program(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    monkeypatch.delenv("REDRAFT_LLAMA_SERVER", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CapabilityError, match="'llama-server' needs that program"):
        LlamaServer(model, LlamaOptions(context_length=CONTEXT), frozenset(), 0)


@pytest.mark.parametrize(("script", "said"), [("echo no room >&2; exit 1", "no room"), ("exit 1", "it says nothing")])
def test_server_that_does_not_start(
    script: str, said: str, monkeypatch: pytest.MonkeyPatch, model: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "llama-server"
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(0o755)
    monkeypatch.setenv("REDRAFT_LLAMA_SERVER", str(broken))
    with pytest.raises(ModelError, match=said):
        LlamaServer(model, LlamaOptions(context_length=CONTEXT), frozenset(), 0)


def test_assistant_drafts_with_passes_of_its_own(library: Opened) -> None:
    found = steps(library("transformers-assistant"))
    assert all(step.draft_passes >= step.drafted > 0 for step in found if step.passes)


def test_limit_cuts_and_is_reported_once(open_: Opened) -> None:
    for name in ("llama-cpp-python", "llama-cpp-python-lookup", "local-agreement"):
        system = open_(name, max_tokens=3)
        (step, failures), (_later, none), (_other, again) = (system.translate(UPDATES[n]) for n in (1, 2, 5))
        assert len(step.tokens) == len(step.passes) + step.accepted == 3 and not step.finished
        assert [failure.message for failure in failures] == ["the translation was cut at 3 tokens"]
        assert (none, len(again)) == ([], 1)


@pytest.mark.parametrize("language", ["de", "zh", "ja"])
def test_local_agreement_only_ever_adds(language: str, open_: Opened) -> None:
    words = "I had a small dog that slept in the garden all day".split()
    updates = [
        *(Update("1", n, " ".join(words[: n + 2])) for n in range(9)),
        Update("1", 9, "I have a small dog that sleeps in the garden all day", final=False),
        Update("1", 10, "I have a small dog that sleeps in the garden all day.", final=True),
    ]
    run = Run(Contender("local-agreement", language), open_("local-agreement", language=language))
    for update in updates:
        run.record(update, 0)
    (record,) = run.records
    texts = [step.text for step in record.steps]
    assert all(after.startswith(before) for before, after in pairwise(texts))
    assert texts[0] == "" != texts[-2]
    assert record.steps[-1].unstable == ""
    assert run.display.erased == 0 < run.output.erased  # the hypotheses behind what is shown do change
    # What is committed is forced, not decoded again.
    forced = sum(len(step.tokens) + step.finished - len(step.passes) for step in record.steps)
    assert forced > 0


class Prompted(RandomModel):
    metadata: Mapping[str, str] = {PROMPT_KEY: "{source}<2{code}>"}


def test_local_agreement_forces_what_two_hypotheses_share() -> None:
    model = Prompted(seed=4, shift=0.3, end_bias=-1.0)
    task = Task(model, "de", 12)
    for n in (2, 3):
        system = LocalAgreement(task, n)
        hypotheses: list[tuple[int, ...]] = []
        lengths = []
        for seq in range(8):
            model.requests.clear()
            text = "aaaa bbbb cccc dddd eeee"[: 8 + 2 * seq]
            step, _ = system.translate(Update("1", seq, text))
            before = hypotheses[-n:]
            forced = 0
            while len(before) == n and len({each[: forced + 1] for each in before}) == 1 and forced < len(before[0]):
                forced += 1
            if step.passes:
                assert model.requests[0].prefix == task.encode(text) + (before[0][:forced] if forced else ())
                hypotheses.append(step.tokens)
                lengths.append(forced)
        assert len(hypotheses) > n and lengths[:n] == [0] * n and lengths[-1] > 0
        system.close()


@pytest.mark.parametrize("waitk", [0, 1])
def test_nemo_shows_all_and_forces_what_two_translations_share(waitk: int) -> None:
    model = Prompted(seed=4, shift=0.3, end_bias=-1.0)
    task = Task(model, "de", 12)
    with closing(Nemo(task, waitk)) as system:
        before, forced, advanced = tuple[int, ...](), tuple[int, ...](), 0
        for seq in range(8):
            model.requests.clear()
            text = "aaaa bbbb cccc dddd eeee ffff"[: 8 + 3 * seq]
            step, _ = system.translate(Update("1", seq, text))
            assert step.unstable == "" and step.text == b"".join(map(model.token_bytes, step.tokens)).decode().strip()
            if step.passes:
                assert model.requests[0].prefix == task.encode(text) + forced
            shared = common_prefix(before, step.tokens)
            lacks = len(text.split()) - waitk  # every token is a word
            forced, before = step.tokens[: max(shared, lacks * bool(waitk))], step.tokens
            advanced += len(forced) > shared
    assert forced and bool(advanced) == bool(waitk)


def test_align_att_emits_what_does_not_look_at_the_end(library: Opened, expected: list[Step]) -> None:
    """A model that must look before all of the source says nothing until the text is final; what is emitted stays."""
    system = library("align-att", frames=100)
    assert isinstance(system, AlignAtt)
    waiting = steps(system)
    assert [step.tokens for step in waiting[:4]] == [()] * 4
    assert [step.tokens for step in waiting[4:]] == [step.tokens for step in expected[4:]]
    same = [system.translate(Update("3", seq, "I have a dog.", final=seq == 2))[0] for seq in range(3)]
    assert [bool(step.tokens) for step in same] == [False, False, True]
    system._frames = 1
    texts = [step.text for step in steps(system)[:5]]
    assert all(after.startswith(before) for before, after in pairwise(texts)) and "" != texts[2] != texts[4]


def test_what_is_forced_counts_as_output() -> None:
    model = Prompted(seed=3, shift=0.3, end_bias=-9.0)  # never ends an output
    model.context_length = 40
    task = Task(model, "de", 12)
    system = LocalAgreement(task)
    frame = len(task.encode("x")) - 1
    passes = []
    for length in range(18, 41):
        step, failures = system.translate(Update("1", length, "x" * (length - frame)))
        assert len(step.tokens) == 12 and not step.finished
        assert len(failures) == (length in (18, 40))  # the limit; no room for even one token
        passes.append(len(step.passes))
    assert passes[:5] == [12, 12, 7, 2, 0] and not any(passes[5:])


def test_local_agreement_and_shorter_source(open_: Opened) -> None:
    system = open_("local-agreement")
    shown = [system.translate(UPDATES[n])[0] for n in (1, 2)][1].text
    step, failures = system.translate(Update("1", 3, ""))
    assert (step.text, step.unstable, failures) == (shown, "", []) and shown


def test_passes_of_log() -> None:
    log = PassLog()
    for cached, new in [(4, 3), (7, 11), (10, 1)]:  # a prompt of 7; two of ten draft tokens are kept
        with log.target(cached, new):
            pass
    with log.small():
        pass
    assert log.passes(7, 4, finished=True) == (
        Pass(4, 3, 0, 0, 0),
        Pass(7, 11, 10, 10, 2),
        Pass(10, 1, 0, 0, 0),
    )
    assert log.passes(7, 5, finished=False) == log.passes(7, 4, finished=True)
    assert log.draft_passes == 1 and log.seconds > 0
    with log.target(11, 6):  # the limit ends the output inside what this pass gives
        pass
    assert log.passes(7, 8, finished=False)[-1] == Pass(11, 6, 5, 5, 2)
    assert log.passes(7, 8, finished=True)[-1] == Pass(11, 6, 5, 5, 3)


def test_prompt_held_whole() -> None:
    log = PassLog()
    with log.target(7, 1):  # the row of the prompt of 7 was there: its token is run at once
        pass
    assert log.passes(7, 1, finished=True) == (Pass(7, 1, 0, 0, 0),)


def test_bad_input(open_: Opened, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="target language"):
        open_("llama-cpp-python", language="sw")
    with pytest.raises(ModelError, match="does not exist"):
        open_("llama-cpp-python", tmp_path / "absent.gguf")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(ModelError, match="cannot be loaded by llama-cpp-python"):
        open_("llama-cpp-python", broken)
