"""Writing a model of a known one's sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run


class TestShape:
    def test_file_is_written_that_doctor_can_measure(self, redraft: Run, tmp_path: Path) -> None:
        path = tmp_path / "tiny.gguf"
        done = redraft("bench", "shape", "--like", "tiny", "--format", "Q8_0", "--out", str(path))
        assert (done.status, done.out) == (0, f"{path}: 1.4M random weights as Q8_0, 0.00 GB\n")
        done = redraft("doctor", "--model", str(path), "--threads", "1", "--json")
        assert done.status == 0
        assert done.rows[0]["new_tokens"] == 1

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--out", "a.gguf"], ["--like", "Missing option"]),
            (["--like", "tiny"], ["--out", "Missing option"]),
            (["--like", "gpt", "--out", "a.gguf"], ["--like", "'gpt'", "'qwen3-0.6b'", "'tower-2b'"]),
            (["--like", "tiny", "--format", "Q9", "--out", "a.gguf"], ["--format", "'Q9'", "'Q4_K_M'"]),
            (["--like", "tiny", "--seed", "-1", "--out", "a.gguf"], ["--seed", "'-1'", "of 0 or more"]),
            (["--like", "tiny", "--out", "/no/such/a.gguf"], ["in a folder that exists", "/no/such/a.gguf"]),
        ],
    )
    def test_refusals(self, redraft: Run, arguments: list[str], words: list[str]) -> None:
        done = redraft("bench", "shape", *arguments)
        assert (done.status, done.out) == (2, "")
        (line,) = done.err.splitlines()
        assert [word for word in words if word not in line] == []
