"""The command that measures every table again."""

from __future__ import annotations

from pathlib import Path

import pytest

from redraft_bench.bench.read import ENDING
from redraft_bench.bench.tables import OWN
from redraft_bench.pages.run import RESULTS, main, runs


def test_runs_have_their_options() -> None:
    assert {run.table for run in runs()} == {*OWN} - {"language_model"}  # its models do not ship
    for run in runs():
        command = run.command(Path("out"))
        assert ("exact=1" in command) == (run.table == "cold")
        assert command[command.index("--to") + 1] == run.language


@pytest.mark.repository
def test_runs_are_those_whose_rows_are_kept() -> None:
    names = {file.name.removesuffix(ENDING) for file in RESULTS.glob(f"*{ENDING}")}
    tables = {run.table for run in runs()}
    assert {name for name in names if name.split("-")[0] in tables} <= {run.name for run in runs()}


def test_list_names_what_is_missing_and_runs_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("redraft_bench.pages.run.RESULTS", tmp_path)
    (tmp_path / f"cold-flores200.devtest-de{ENDING}").write_text('{"signature": "model:redraft-demo-q8_0.gguf@old"}')
    assert main(["--list", "--only", "cold", "--only", "peers"]) == 0
    runs_ = [f"cold-flores200.devtest-{language}" for language in ("de", "zh", "ja")] + ["peers-flores200.devtest-de"]
    assert capsys.readouterr().out.splitlines() == [f"{number} of 4: {run}" for number, run in enumerate(runs_, 1)]
