"""Fixtures of the recipe's tests."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import pytest


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Tests run beside each other; threads that share small products only wait for each other."""
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def forked() -> Iterator[None]:
    """Let new processes be copies of one that has imported torch, instead of importing it for seconds each."""
    if not find_spec("torch"):
        yield
        return
    import torch.multiprocessing as mp

    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["torch", "redraft_train.recipe.stages", "redraft_train.recipe.align"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mp, "get_context", lambda _method: server)
        patch.setattr(mp, "spawn", partial(mp.start_processes, start_method="forkserver"))
        yield
