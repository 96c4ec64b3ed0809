"""Devices that are stopped: every recognised word is in a caption or named (all sources: `tests.cli.stops`)."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize(("source", "way"), [("microphone", "lost device"), ("system", "closed output")])
def test_stop(source: str, way: str, tmp_path: Path) -> None:
    for name in ("starlette", "websockets", "soundfile", "soxr"):
        pytest.importorskip(name)
    from tests.cli.stops import stop

    assert stop(source, way, 0, tmp_path).complete
