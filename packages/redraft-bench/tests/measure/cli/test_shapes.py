"""Writing a model of a known one's sizes, and replaying a record on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redraft.cli.main import cli
from redraft.errors import RedraftError
from redraft_bench.eval.record import PassRecord, Record, Step, write_records
from tests.cli.conftest import Run

PASSES = {
    "ar, de": [PassRecord(0, 10, 0, 0, 0), PassRecord(10, 1, 0, 0, 0), PassRecord(11, 1, 0, 0, 0)],
    "ssbd beta=0.2, de": [PassRecord(0, 12, 2, 2, 2)],
}


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Two segments by two methods, and by one with a small model."""
    path = tmp_path / "a.records.jsonl"
    for segment in range(2):
        for name, passes in (*PASSES.items(), ("bild, de", PASSES["ar, de"])):
            step = Step(
                0, "a", True, None, 10, (7, 8), "b", "", True, 1.0, 1.0, tuple(passes), 3 * (name == "bild, de")
            )
            write_records(path, [Record(segment, str(segment), name, (step,))])
    return path


def run(*arguments: object) -> Result:
    # Not the command by itself: it would keep the help option that it has there.
    return CliRunner().invoke(cli, ["bench", "replay", *map(str, arguments)])


def refusal(*arguments: object) -> str:
    """What a refused command says."""
    done = run(*arguments)
    assert done.exit_code != 0
    return str(done.exception) if isinstance(done.exception, RedraftError) else done.stderr


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


class TestReplay:
    def test_rows_on_llama_cpp(self, records: Path) -> None:
        done = run("--records", records, "--model", "demo", "--threads", 1, "--device", "cpu", "--json")
        assert done.exit_code == 0, done.output
        first, second = (json.loads(line) for line in done.stdout.splitlines())
        assert (first["method"], first["replay"], first["segments"], first["target_passes"]) == ("ar", True, 2, 6)
        assert (second["method"], second["options"], second["target_passes"]) == ("ssbd", "beta=0.2", 2)
        assert first["speedup"] == 1 and second["speedup"] > 0 and second["limit_distance"] > 0
        for part in ("replay:a.records.jsonl@", "shape:qwen3-6x512|quant:Q8_0|engine:llama.cpp|device:cpu|threads:1"):
            assert part in first["signature"]
        assert "redraft: bild, de is left out, since the passes of a small model" in done.stderr

    def test_shape_on_transformers(self, records: Path) -> None:
        pytest.importorskip("transformers", reason="the hf extra is not installed")
        done = run("--records", records, "--shape", "tiny", "--device", "cpu", "--threads", 1, "--json")
        assert done.exit_code == 0, done.output
        row = json.loads(done.stdout.splitlines()[0])
        assert (
            "|model:tiny-float32-cpu|weights:random|shape:qwen3-2x256|dtype:float32|engine:transformers|"
            in row["signature"]
        )

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ([], ["--model", "--shape", "not both"]),
            (["--model", "demo", "--shape", "tiny"], ["--model", "--shape", "not both"]),
            (["--model", "demo", "--dtype", "bfloat16"], ["--dtype", "leave it out"]),
            (["--model", "/no/such.gguf"], ["'/no/such.gguf'", "does not exist"]),
            (["--shape", "gpt"], ["--shape", "'gpt'", "'qwen3-0.6b'"]),
            (["--model", "demo", "--limit", "-1"], ["--limit", "'-1'"]),
            (["--model", "demo", "--device", "tpu"], ["--device", "'tpu'", "'cuda'"]),
        ],
    )
    def test_refusals(self, records: Path, arguments: list[str], words: list[str]) -> None:
        said = refusal("--records", records, *arguments)
        assert [word for word in words if word not in said] == []
