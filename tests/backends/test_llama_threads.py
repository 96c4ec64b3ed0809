"""Passes of llama.cpp use the chosen number of threads, and give the same result on any number."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from redraft.backends import llamacpp
from redraft.backends.engine import lib
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import open_contexts, open_model
from redraft.backends.options import LlamaOptions
from redraft.backends.threads import FreeCores
from redraft.decoding.types import ROOT, Draft, Provenance, Score

PREFIX = tuple(range(5, 40))
DRAFT = Draft.chain(list(range(50, 66)), Provenance.PREVIOUS)


def logits(backend: LlamaCpp) -> np.ndarray:
    slot = backend.open_slot()
    rows = backend.score([(slot, Score(PREFIX, DRAFT))])[0]
    found = np.array([[rows.logprob(node, token) for token in range(64)] for node in range(ROOT, len(DRAFT))])
    backend.close_slot(slot)
    return found


@pytest.mark.parametrize("exact", [False, True])
def test_their_number_changes_no_logit(exact: bool) -> None:
    found = []
    for threads in (1, 2):
        options = LlamaOptions(context_length=256, threads=threads, exact=exact)
        with closing(open_model("demo-tiny", options)) as backend:
            found.append(logits(backend))
    assert np.array_equal(found[0], found[1])


def test_every_pass_runs_on_threads_decided_on(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    set_threads = lib.llama_set_n_threads

    def note(context: object, single: int, batched: int) -> None:
        assert single == batched
        given.append(single)
        set_threads(context, single, batched)

    monkeypatch.setattr(lib, "llama_set_n_threads", note)
    planned = [1, 2, 2, 1]
    monkeypatch.setattr(LlamaCpp, "_choose_threads", lambda _backend, _free: lambda: planned.pop(0))
    with closing(open_model("demo-tiny", LlamaOptions(context_length=256))) as backend:
        slot = backend.open_slot()
        backend.score([(slot, Score(PREFIX))])
        backend.score([(slot, Score(PREFIX, DRAFT))])
        backend.score([(slot, Score(PREFIX))])
    assert given == [2, 1], "set where it changes"
    assert not planned


@pytest.mark.parametrize(
    ("threads", "layers", "small", "expected"),
    [(0, 0, True, (1, 1)), (0, 0, False, (4, 3)), (3, 0, True, (3, 3)), (3, 0, False, (3, 3)), (0, -1, True, (4, 4))],
)
def test_number(
    monkeypatch: pytest.MonkeyPatch, threads: int, layers: int, small: bool, expected: tuple[int, int]
) -> None:
    """On four cores that are all free, and next to a process that uses one."""
    monkeypatch.setattr(llamacpp, "usable_cores", lambda: 4)
    monkeypatch.setattr(llamacpp, "on_gpu", lambda layers: layers != 0)
    monkeypatch.setattr(llamacpp, "SMALL_MODEL", 1 << 40 if small else 1)
    idle = now = 0.0
    free = FreeCores(4, lambda: (idle, 0.0), lambda: now)
    with closing(open_model("demo-tiny", LlamaOptions(context_length=64, threads=threads))) as backend:
        backend.options = LlamaOptions(threads=threads, gpu_layers=layers)
        choose = backend._choose_threads(free)
    before = choose()
    now, idle = 1.0, 3.0
    assert (before, choose()) == expected


@pytest.mark.parametrize(("count", "expected"), [(1, 0), (2, 1)])
def test_contexts_share_cores(monkeypatch: pytest.MonkeyPatch, count: int, expected: int) -> None:
    monkeypatch.setattr("redraft.backends.load.usable_cores", lambda: 2)
    contexts = open_contexts("demo-tiny", LlamaOptions(context_length=64), count)
    try:
        assert {each.options.threads for each in contexts} == {expected}
    finally:
        for each in reversed(contexts):
            each.close()


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "4000"), ({"GOMP_SPINCOUNT": "5"}, "5"), ({"OMP_WAIT_POLICY": "active"}, "None")],
)
def test_openmp_is_told_how_long_to_spin_before_it_is_loaded(given: dict[str, str], expected: str) -> None:
    # Only what is in the environment when the package is imported counts, so the engine must not be loaded by then.
    code = (
        "import os, sys, redraft.backends; print('llama_cpp' in sys.modules, os.environ.get('GOMP_SPINCOUNT')); "
        "import redraft.backends.llamacpp"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", *given)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment | given, capture_output=True, text=True, check=True, timeout=200
    )
    assert done.stdout.split() == ["False", expected]
