"""Devices that are stopped: every recognised word is in a caption or named (all sources: `tests.cli.stops`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.stops import Forks


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    from tests.cli.stops import Forks

    made = Forks()
    yield made
    made.close()


@pytest.mark.parametrize(("source", "way"), [("microphone", "lost device"), ("system", "closed output")])
def test_stop(forks: Forks, source: str, way: str, tmp_path: Path) -> None:
    from tests.cli.stops import stop

    assert stop(source, way, 0, tmp_path, forks).complete
