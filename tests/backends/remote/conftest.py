"""Fixtures of tests on a real vLLM server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from redraft.decoding.backend import Backend

#: As `tests.backends.remote.vllm_server.PYTHON_VARIABLE`, which cannot be imported without the extra ``remote``.
_VARIABLE = "REDRAFT_VLLM_PYTHON"
NEEDS_VLLM = [
    pytest.mark.scale,
    pytest.mark.skipif(_VARIABLE not in os.environ, reason="needs vLLM: make test-scale"),
]


@pytest.fixture(scope="module")
def local(server: Any) -> Iterator[Backend]:
    """The model of the module's server on transformers."""
    from redraft.backends.load import open_backend
    from tests.backends.remote.files import POSITIONS

    with closing(
        open_backend(str(server.folder), {"context_length": POSITIONS - 1, "device": "cpu"}, slots=4)
    ) as backend:
        yield backend
