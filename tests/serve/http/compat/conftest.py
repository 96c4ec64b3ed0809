"""A server that stands in for all services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from redraft.captions import spoken
from tests.captions.detector import Detector

COMPAT = ("deepl", "libretranslate", "openai")


@pytest.fixture(autouse=True)
def detector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for the extra ``detect``."""
    monkeypatch.setattr(spoken, "_detector", Detector)


@pytest.fixture(scope="module")
def imitating() -> Iterator[Any]:
    from tests.serve.servers import running

    with running(compat=COMPAT, busy=1000, updates_per_second=1000) as found:
        yield found
