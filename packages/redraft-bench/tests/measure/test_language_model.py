"""The table of language models, which takes hours to measure: its options, what it prints, and its page."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from redraft_bench.eval.columns import COLUMNS
from redraft_bench.pages.language_models import Row, compared, larger, largest, overview
from redraft_bench.scripts.language_model import SHOWN, main


def _row(method: str, segments: int = 40, **figures: object) -> Row:
    row = {"model": "qwen-1.5b", "data": "talk", "target_language": "de", "cpu_speedup": 2.5, "limit_distance": 2.0}
    return {**row, "ne_display": 0.5, "method": method, "segments": segments, **figures}


ROWS = [_row(method) for method in ("ar", "local-agreement", "ssbd", "redraft")]


def test_printed_columns_exist() -> None:
    assert set(SHOWN) <= set(COLUMNS)


def test_figures_are_means_of_languages_and_text_without_references_has_no_chrf() -> None:
    tables = overview([*ROWS, *({**row, "target_language": "ja", "ne_display": 0.7} for row in ROWS)]).split("## ")
    lines = {table.partition("\n")[0]: [line for line in table.splitlines() if "Qwen" in line] for table in tables}
    assert lines["Flicker"] == ["| Qwen2.5-Coder 1.5B | the demo talk | 40 | 0.60 | 0.60 | 0.60 | 0.60 |"]
    assert lines["Quality"] == []


def test_sentences_are_from_the_longest_run() -> None:
    few = [_row("ar", 3), _row("redraft", 3, cpu_speedup=9.0)]
    assert largest([*few, *ROWS]) == [ROWS]
    assert "9.0" not in compared([*few, *ROWS])
    assert larger([*few, *ROWS]).endswith(
        "takes 40% of the processor time of re-translation on the demo talk; short sentences save less."
    )


def test_chosen_methods_on_a_talk(tmp_path: Path) -> None:
    out, records = tmp_path / "rows.jsonl", tmp_path / "records.jsonl"
    options = ["--data", "talk", "--limit", "1", "--to", "de", "--model", "demo-tiny", "--method", "ssbd"]
    found = CliRunner().invoke(main, [*options, "--records", str(records), "--out", str(out)], catch_exceptions=False)
    assert found.exit_code == 0
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [row["method"] for row in rows] == ["ar", "ssbd"]
    assert all(row["chrf"] is None and row["segments"] == 1 and "|lag:own|" in row["signature"] for row in rows)
