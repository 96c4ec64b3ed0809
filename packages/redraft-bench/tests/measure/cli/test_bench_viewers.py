"""``redraft bench viewers``: a small run for real, and refusals of options."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from redraft_bench.loadtest import viewers
from tests.cli.conftest import Run
from tests.programs import program

LANGUAGE = ("--to", "de", "--to", "ja", "--language", "de")


@pytest.mark.slow
def test_viewers(redraft: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program("redis-server")
    monkeypatch.setattr(viewers, "Show", partial(viewers.Show, alone=1.0))
    options = "--viewers 60 --seconds 4 --rate 10 --model demo-tiny --engine threads=1 --json --replicas 2"
    done = redraft("bench", "viewers", *options.split(), *LANGUAGE, "--out", str(tmp_path))
    assert (done.status, done.err) == (0, "")
    (row,) = done.rows
    assert (row["viewers"], row["lost"], row["doubled"], row["disordered"], row["not_connected"]) == (60, 0, 0, 0, 0)
    assert row["finals"] > 0 and row["added_lag_p50_ms"] is not None
    assert (row["sent"], row["method"]) == ("de", "redraft")


def test_language_that_talk_is_not_translated_into(redraft: Run) -> None:
    done = redraft("bench", "viewers", "--to", "de", "--to", "ja", "--language", "fr")
    assert done.status == 2
    assert "--language must be one of de, ja, as in --to, not fr" in done.err
