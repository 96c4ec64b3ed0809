"""The page on language models."""

from __future__ import annotations

import json
from pathlib import Path

from redraft_bench.pages.language_models import Row, compared, larger, overview, rows


def _row(method: str, segments: int = 40, **figures: object) -> Row:
    row = {"model": "qwen-1.5b", "data": "talk", "target_language": "de", "cpu_speedup": 2.5, "limit_distance": 2.0}
    return {**row, "ne_display": 0.5, "method": method, "segments": segments, **figures}


ROWS = [_row(method) for method in ("ar", "local-agreement", "ssbd", "redraft")]


def test_figures_are_means_of_languages_and_text_without_references_has_no_chrf() -> None:
    tables = overview([*ROWS, *({**row, "target_language": "ja", "ne_display": 0.7} for row in ROWS)]).split("## ")
    lines = {table.partition("\n")[0]: [line for line in table.splitlines() if "Qwen" in line] for table in tables}
    assert lines["Flicker"] == ["| Qwen2.5-Coder 1.5B | the demo talk | 40 | 0.60 | 0.60 | 0.60 | 0.60 |"]
    assert lines["Quality"] == []


def test_sentence_on_the_text() -> None:
    assert "3.0" in compared([*ROWS[:-1], _row("redraft", cpu_speedup=3.0)])
    assert larger(ROWS).endswith(
        "takes 40% of the processor time of re-translation on the demo talk; short sentences save less."
    )


def test_runs_of_the_table_are_read(tmp_path: Path) -> None:
    small = "qwen2.5-coder-0.5b-1d96"
    for model, language in ((small, "ja"), (small, "de"), ("gemma-3-270m", "de")):
        row = {"method": "ar", "bench": "language_model", "data": "talk", "target_language": language}
        row["signature"] = f"redraft:0|model:{model}.gguf@1"
        (tmp_path / f"language_model-talk-{language}-{model}.rows.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    found = [(row["model"], row["target_language"]) for row in rows(tmp_path)]
    assert found == [("gemma", "de"), ("qwen-0.5b", "de"), ("qwen-0.5b", "ja")]
