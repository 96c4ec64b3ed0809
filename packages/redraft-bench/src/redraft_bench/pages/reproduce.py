"""Reconstruct the command that measures a table from the signature of its rows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from redraft.backends.options import OPTIONS
from redraft.models import SHIPPED
from redraft_bench.bench.data import TASKS, tasks_of
from redraft_bench.bench.read import Result, options
from redraft_bench.bench.tables import TABLES


def reproduce(group: Sequence[Result]) -> str:
    """Return the command that measures results of one benchmark and data set; empty if there is none."""
    result, facts = group[0], group[0].facts
    if result.bench == "capacity":
        return shlex.join(_capacity(group))
    if result.bench not in TABLES:
        return ""
    words = ["redraft", "bench", "run", result.bench, "--data", result.data]
    words += [word for each in group for word in ("--to", each.language)]
    for fact, option, shipped in (("model", "--model", "demo"), ("small", "--draft-model", "demo-tiny")):
        names = [_file(value) for name, value in facts.items() if re.fullmatch(rf"{fact}\d*", name)]
        if names and names != [SHIPPED[shipped]]:
            words += [word for name in names for word in (option, name)]
    lag = str(TABLES[result.bench].lag)
    words += ["--lag", facts["lag"]] if facts.get("lag", lag) not in (lag, "none") else []
    words += _size(facts)
    words += ["--engine", "exact=1"] if facts.get("exact") == "True" else []
    engine = [name for name in OPTIONS if name in facts and name not in ("threads", "exact")]
    return shlex.join([*words, *(word for name in engine for word in ("--engine", f"{name}={facts[name]}"))])


def _capacity(group: Sequence[Result]) -> list[str]:
    words = ["redraft", "bench", "capacity", "--data", group[0].data]
    words += [word for each in group for word in ("--to", each.language)]
    methods = dict.fromkeys(str(row["method"]) for row in group[0].rows)
    words += [word for method in methods for word in ("--method", method)]
    words += [word for name, value in options(group[0].rows[0]).items() for word in ("--set", f"{name}={value}")]
    return [*words, "--seconds", f"{group[0].rows[0]['seconds']:g}", *_size(group[0].facts)]


def _size(facts: Mapping[str, str]) -> list[str]:
    limit = int(facts.get("segments", 0))
    if facts.get("data", "").startswith(f"{TASKS}@"):  # of tasks, the limit is for each kind
        limit = next(each for each in range(1, limit + 1) if len(tasks_of(TASKS, each)) >= limit)
    words = ["--limit", str(limit)] if limit else []
    words += ["--least-words", facts["least_words"]] if "least_words" in facts else []
    return [*words, "--engine", f"threads={facts['threads']}"] if facts.get("threads", "").isdigit() else words


def _file(label: str) -> str:
    """Return the name in ``name@hash``."""
    return label.partition("@")[0]
