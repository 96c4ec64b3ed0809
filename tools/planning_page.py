"""The generated parts of docs/planning.md: the worked example, and the accuracy of the formula."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from redraft.cli.main import cli

#: The worked example.
COMMAND = "--sessions 1000 --targets 3 --viewers 1000000 --model tower-2b --gpu h200"

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def example(table: Table) -> str:
    """Return the command with its output as tables.

    Raises:
        RuntimeError: the command failed.
    """
    result = CliRunner().invoke(cli, ["plan", *COMMAND.split(), "--json"])
    if result.exit_code:
        raise RuntimeError(f"redraft plan {COMMAND} has failed: {result.output or result.exception}")
    lines = [json.loads(line) for line in result.output.splitlines()]
    methods = [each for each in lines if each["kind"] == "method"]
    known = [each for each in lines if each["kind"] == "assumption"]
    viewers = methods[0]["viewer_replicas"]
    parts = (
        f"```sh\nredraft plan {COMMAND}\n```\n",
        "An estimate from a data sheet: nothing was measured on this hardware.\n",
        table(
            (
                "method",
                methods[0]["unit"],
                "sessions on each",
                "limit",
                "p95 lag (s)",
                "session replicas",
                "cache (GB)",
            ),
            [_method(each) for each in methods],
        ),
        f"The viewers need {viewers} viewer replicas. The plan rests on:\n",
        table(("what", "value", "source"), [(each["what"], each["value"], each["source"]) for each in known]),
    )
    return "\n" + "\n".join(parts) + "\n"


def _method(each: dict[str, Any]) -> tuple[str, ...]:
    numbers = (each["units"], f"{each['sessions_per_unit']:,}", each["limit"], f"{each['lag_p95_seconds']:.2f}")
    return (f"`{each['method']}`", *map(str, numbers), str(each["session_replicas"]), f"{each['cache_gb']:.0f}")


def comparison(results: Path, table: Table) -> str:
    """Return a table of the maximum sessions by formula, by simulation and as measured.

    Args:
        results: output of ``python -m benchmarks.planning``, and load tests by hand, with ``load_test`` true.
        table: formats a table.
    """
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    cells = [
        (
            f"`{each['method']}`",
            "load test" if each.get("load_test") else "rehearsal",
            *(str(each[name]) for name in ("formula", "simulation", "measured")),
            *(f"{each[name] / each['measured'] - 1:+.0%}" for name in ("formula", "simulation")),
        )
        for each in rows
    ]
    headings = ("method", "measured by", "formula", "simulation", "measured", "formula off by", "simulation off by")
    text = table(headings, cells)
    models = ", ".join(sorted({each["model"] for each in rows}))
    processors = ", ".join(sorted({each["processor"] for each in rows}))
    return f"\n{text}\nModel `{models}`, one core of {processors}.\n"
