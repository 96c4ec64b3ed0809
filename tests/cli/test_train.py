"""``redraft train``: what it refuses, and what it prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from recipe.corpus import LANGUAGES
from redraft.cli import train_prefix as command
from tests.cli.conftest import Run
from tests.cli.test_bad_input import check_refusal

ALIGN = ["train", "align"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"--to": "fr"}, ["--to", "'fr'", "'de', 'zh', 'ja'"]),
        ({"--sentences": "0"}, ["--sentences", "'0'", "of 1 or more"]),
        ({"--tokens": "many"}, ["--tokens", "'many'", "of 1 or more"]),
        ({"--processes": "65"}, ["--processes", "'65'", "from 1 to 64"]),
        ({"--format": "Q1"}, ["--format", "'Q1'", "'Q8_0'"]),
        ({"--out": "/"}, ["--out", "'/'", "is a directory"]),
    ],
    ids=str,
)
def test_bad_options_are_refused(redraft: Run, tmp_path: Path, changed: dict[str, str], words: list[str]) -> None:
    options = {"--data": str(tmp_path), "--out": str(tmp_path / "out.gguf"), **changed}
    check_refusal(redraft(*ALIGN, *(word for pair in options.items() for word in pair)), words)


@pytest.mark.parametrize("missing", ["--data", "--out"])
def test_what_is_needed_is_named(redraft: Run, tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDRAFT_DATA", raising=False)
    options = {"--data": str(tmp_path), "--out": str(tmp_path / "out.gguf")}
    given = [word for name, value in options.items() if name != missing for word in (name, value)]
    check_refusal(redraft(*ALIGN, *given), ["Missing option", missing])


@pytest.mark.parametrize("library", ["torch", "tqdm"])
def test_without_the_extra(redraft: Run, tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name.startswith("recipe."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    done = redraft(*ALIGN, "--data", str(tmp_path), "--out", str(tmp_path / "out.gguf"))
    check_refusal(done, ["training needs", "train extra", "pip install 'redraft[train]'"])
    assert [*tmp_path.iterdir()] == []


def test_without_a_command_there_is_help(redraft: Run) -> None:
    assert redraft("train") == redraft("train", "--help")


def test_names_are_those_of_the_library() -> None:
    from redraft.backends.quantise import FORMATS

    assert command.LANGUAGES == LANGUAGES
    assert tuple(FORMATS) == command.FORMATS


class TestWithTheExtra:
    @pytest.fixture(autouse=True)
    def extra(self) -> None:
        for library in ("torch", "tokenizers", "gguf", "tqdm"):
            pytest.importorskip(library, reason="the train extra is not installed")

    def test_a_data_folder_without_texts(self, redraft: Run, tmp_path: Path) -> None:
        done = redraft(*ALIGN, "--data", str(tmp_path), "--out", str(tmp_path / "out.gguf"))
        assert (done.status, done.out) == (2, "")
        folders = f"{tmp_path / 'train'} or {tmp_path / 'train2'}"
        assert done.err.splitlines()[-1] == f"redraft: data: no en-de.*tsv.gz in {folders}; see docs/training.md"
        assert not (tmp_path / "out.gguf").exists()
        done = redraft(*ALIGN, "--data", "/no/such", "--out", str(tmp_path / "out.gguf"))
        assert (done.status, "data: no en-de.*tsv.gz in /no/such/train" in done.err) == (2, True)

    def test_a_model_that_is_not_the_recipes(self, redraft: Run, tmp_path: Path) -> None:
        (tmp_path / "train").mkdir()
        for language in LANGUAGES:
            (tmp_path / "train" / f"en-{language}.tsv.gz").touch()
        (tmp_path / "text.gguf").write_text("no model")
        paths = ["--data", str(tmp_path), "--out", str(tmp_path / "out.gguf")]
        done = redraft(*ALIGN, *paths, "--small", str(tmp_path / "text.gguf"))
        assert (done.status, done.err.splitlines()[-1].endswith("is not a GGUF file")) == (2, True)
        done = redraft(*ALIGN, *paths, "--large", "wonder")
        assert (done.status, "model 'wonder' is neither a name nor a file" in done.err) == (2, True)

    def test_a_folder_without_data_is_refused_before_anything_is_written(self, redraft: Run, tmp_path: Path) -> None:
        done = redraft(*ALIGN, "--data", str(tmp_path), "--out", str(tmp_path / "new" / "out.gguf"))
        check_refusal(done, ["data", "no en-de.*tsv.gz in", "docs/training.md"])
        assert [*tmp_path.iterdir()] == []

    @pytest.fixture
    def aligned(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
        """Alignment that only notes its settings."""
        from recipe import align

        seen: list[object] = []

        def done(settings: align.Settings) -> tuple[list[align.Alignment], str]:
            seen.append(settings)
            settings.out.write_bytes(b"a model")
            before, after = align.Agreement(120, 0.25, 3.5), align.Agreement(120, 0.5, 2.25)
            return [align.Alignment(tag, 1200, 3, before, after) for tag in settings.languages], "0123456789ab"

        monkeypatch.setattr(align, "align", done)
        monkeypatch.setattr(align, "require_data", lambda folder: None)
        return seen

    def test_json_has_a_row_a_language_with_the_signature(
        self, redraft: Run, tmp_path: Path, aligned: list[object]
    ) -> None:
        out = tmp_path / "new" / "out.gguf"
        paths = ["--data", str(tmp_path), "--out", str(out)]
        done = redraft(*ALIGN, *paths, "--to", "ja", "--to", "de", "--to", "ja", "--seed", "7", "--json")
        assert done.status == 0
        assert [row["target_language"] for row in done.rows] == ["ja", "de"]
        row = done.rows[0]
        assert (row["agreement_before"], row["agreement_after"]) == (0.25, 0.5)
        assert (row["cross_entropy_before"], row["cross_entropy_after"]) == (3.5, 2.25)
        assert (row["sentences"], row["unfinished"], row["positions"]) == (1200, 3, 120)
        for part in ("model:out.gguf@", "data:calibration@0123456789ab", "large:redraft-demo-q8_0.gguf", "seed:7"):
            assert part in row["signature"]
        assert json.dumps(row) in done.out

    def test_the_table_and_the_defaults(self, redraft: Run, tmp_path: Path, aligned: list[object]) -> None:
        done = redraft(*ALIGN, "--data", str(tmp_path), "--out", str(tmp_path / "out.gguf"))
        assert done.status == 0
        assert [line.split()[0] for line in done.out.splitlines()[:4]] == ["to", "de", "zh", "ja"]
        assert done.out.splitlines()[1].split() == ["de", "1200", "3", "120", "25.0%", "50.0%", "3.500", "2.250"]
        (settings,) = aligned
        assert (settings.sentences, settings.tokens, settings.processes) == (30_000, 3_000_000, 2)  # type: ignore[attr-defined]
        assert "30900 sources for the large model, 3M tokens for the small one, 2 x 1 thread" in done.err
