"""The commands on the benchmark pages: they follow the signature of a table, and are commands."""

from __future__ import annotations

import shlex
from typing import Any

import click
import pytest

from redraft.cli.main import cli
from redraft_bench.bench.read import Result
from redraft_bench.cli.bench.load import capacity
from redraft_bench.eval.figures import Row
from redraft_bench.pages.reproduce import reproduce


def result(signature: str, bench: str = "trade", **more: Any) -> Result:
    return Result(bench, "flores200.devtest", "de", ({"method": "ar", **more},), (signature,))


@pytest.mark.parametrize(
    ("bench", "signature", "expected"),
    [
        ("trade", "", ""),
        ("trade", "lag:3|segments:1012|threads:adaptive|exact:False", "--limit 1012"),
        ("trade", "lag:5|segments:9|exact:True|threads:2", "--lag 5 --limit 9 --engine threads=2 --engine exact=1"),
        ("trade", "data:tasks@1|segments:3", "--limit 1"),
        ("trade", "data:tasks@1|segments:16", "--limit 8"),
        ("cold", "lag:0", ""),
        ("cold", "lag:3", "--lag 3"),
        ("trade", "model:redraft-demo-q8_0.gguf@1|small:redraft-demo-tiny-q8_0.gguf@2", ""),
        (
            "trade",
            "model:qwen3 8b.gguf@1|small:a.gguf@2",
            "--model 'qwen3 8b.gguf' --draft-model a.gguf",
        ),
    ],
)
def test_command_follows_signature_and_is_understood(bench: str, signature: str, expected: str) -> None:
    command = reproduce([result(signature, bench)])
    assert command == f"redraft bench run {bench} --data flores200.devtest --to de {expected}".strip()
    group = cli.get_command(click.Context(cli), "bench")
    assert isinstance(group, click.Group)
    name, *rest = shlex.split(command)[2:]
    group.commands[name].make_context(name, rest, program()).close()  # an unknown option raises


def program() -> click.Context:
    """The first parent of a command: it keeps its settings for good."""
    return click.Context(cli, **cli.context_settings)


def test_what_no_command_measures_has_none() -> None:
    assert reproduce([result("", "a bench of one's own")]) == ""


def test_capacity() -> None:
    rows: list[Row] = [{"method": method, "options": "slots=255", "seconds": 20.0} for method in ("ssbd", "ar")]
    command = reproduce([Result("capacity", "talk", "de", tuple(rows), ("model:redraft-demo-q8_0.gguf@1|threads:1",))])
    assert command == (
        "redraft bench capacity --data talk --to de --method ssbd --method ar --set slots=255 --seconds 20 "
        "--engine threads=1"
    )
    capacity.make_context("capacity", shlex.split(command)[3:], program()).close()
