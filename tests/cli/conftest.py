"""Runs the command line in the process of the tests."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redraft.cli import main
from redraft.speech import process, registry
from tests.speech.recognisers import Scripted


@dataclass(frozen=True)
class Done:
    """What a command has left behind."""

    status: int | None
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Done]


@pytest.fixture
def redraft(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs the command line in this process."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path / "fetched"))

    def run(*arguments: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert isinstance(stopped.value.code, int)
        return Done(stopped.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """What `redraft listen` recognises with, in place of any recogniser."""
    made = Scripted(words=4, sentence="I have a dog")
    module = SimpleNamespace(
        SUMMARY="for tests", MODELS={"small": "a model"}, place=lambda _: 0.0, recogniser=lambda _: made
    )
    point = SimpleNamespace(name="moonshine", load=lambda: module)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.ENTRY_POINT_GROUP else [])
    monkeypatch.setattr(process, "isolated", lambda *_: made)
    return made
