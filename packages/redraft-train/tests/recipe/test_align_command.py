"""``python -m redraft_train.recipe align``: what it refuses, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")
pytest.importorskip("fastchrf", reason="needs recipe.txt of redraft-train")

from redraft_train.agreement import Agreement
from redraft_train.recipe import align
from redraft_train.recipe.__main__ import recipe


def run(*arguments: str) -> Result:
    return CliRunner().invoke(recipe, ["align", *arguments], env={"COLUMNS": "100"})


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return ["--data", str(tmp_path), "--out", str(tmp_path / "new" / "out.gguf")]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (["--to", "fr"], "'fr' is not one of 'de', 'zh', 'ja'"),
        (["--sentences", "0"], "'--sentences': 0 is not in the range"),
        (["--tokens", "many"], "'many' is not a valid integer"),
        (["--processes", "65"], "65 is not in the range"),
        (["--format", "Q1"], "'Q1' is not one of"),
        (["--out", "/"], "is a directory"),
        (["--data", "/no/such"], "'/no/such' does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options_are_refused(paths: list[str], changed: list[str], words: str) -> None:
    done = run(*paths, *changed)
    assert done.exit_code == 2
    assert words in done.output


def test_no_data(paths: list[str], tmp_path: Path) -> None:
    done = run(*paths)
    folders = " or ".join(str(tmp_path / name) for name in ("train", "train2", "train3", "train4"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"Error: data: no en-de.*tsv.gz in {folders}; see docs/training.md\n"
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
def aligned(monkeypatch: pytest.MonkeyPatch) -> list[align.Settings]:
    """Alignment that only notes its settings."""
    seen: list[align.Settings] = []

    def done(settings: align.Settings) -> tuple[list[align.Alignment], str]:
        seen.append(settings)
        settings.out.write_bytes(b"a model")
        before, after = Agreement(120, 0.25, 3.5), Agreement(120, 0.5, 2.25)
        return [align.Alignment(tag, 1200, 3, before, after) for tag in settings.languages], "0123456789ab"

    monkeypatch.setattr(align, "align", done)
    monkeypatch.setattr(align, "require_data", lambda folder: None)
    return seen


def test_json_has_row_language_with_signature(paths: list[str], aligned: list[align.Settings]) -> None:
    done = run(*paths, "--to", "ja", "--to", "de", "--to", "ja", "--seed", "7", "--json")
    assert done.exit_code == 0
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["target_language"] for row in rows] == ["ja", "de"]
    assert (rows[0]["agreement_before"], rows[0]["agreement_after"]) == (0.25, 0.5)
    assert (rows[0]["cross_entropy_before"], rows[0]["cross_entropy_after"]) == (3.5, 2.25)
    assert (rows[0]["sentences"], rows[0]["unfinished"], rows[0]["positions"]) == (1200, 3, 120)
    for part in ("model:out.gguf@", "data:calibration@0123456789ab", "large:redraft-demo-q8_0.gguf", "seed:7"):
        assert part in rows[0]["signature"]
