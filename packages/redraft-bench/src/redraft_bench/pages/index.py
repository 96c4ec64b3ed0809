"""The index of docs/benchmarks: for every table a link, its question, and headline figures; and all columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from redraft_bench.bench.read import Result
from redraft_bench.eval.columns import column, named
from redraft_bench.eval.figures import Row
from redraft_bench.eval.table import span
from redraft_bench.pages.checks import Check, earlier
from redraft_bench.pages.page import ABOUT, glossary, groups, title
from redraft_bench.pages.streams import summary

INTRODUCTION = """# Benchmarks

Each page answers one question, with the command that reproduces it, and with signatures that state model, data,
settings and machine. `redraft bench` is a package of its own ([Install](../install.md#extras)), and some commands need
[test sets](../metrics.md#data). The methods of a table take turns, update by update, so speed-ups are ratios within one
run. Tables have means of the languages, and a range such as 1.2–1.5 covers all; the rows in `benchmarks/results` have
each language, with intervals, and more methods. *Measured on earlier weights* marks tables of demo models that have
been trained further since.

Small runs of the papers' own tables and figures are on [a page of their own](papers.md).

[Metrics](../metrics.md) defines the figures, and the model card, `src/redraft/models/README.md`, has the translation
quality of the demo models. These pages are generated from `benchmarks/results` by `python -m
redraft_bench.pages.build`; do not edit them.
"""
#: Subject of the index -> its pages, in order; the last one has all others.
SUBJECTS: dict[str, Sequence[str]] = {
    "Is it better than what I use?": ("stream", "peers", "language_model", "live"),
    "Methods": ("trade", "ssbd", "cold", "finals"),
    "Speech and servers": ("listening", "capacity", "load", "viewers"),
    "Speed and exactness": (),
}
#: Page -> lines (named as by `redraft_bench.eval.columns.named`) and columns shown in the index.
HEADLINES = {
    "ssbd": ("ssbd beta=0.2|redraft, shows 2 agree, first sight 0.4", ("cpu_speedup", "speedup", "ne_display")),
    "trade": (
        "ar|ssbd beta=0.2|redraft, shows 2 agree, first sight 0.4|local-agreement n=2",
        ("lag_good", "retracted"),
    ),
    "cold": ("pld|aasd verification=entropy", ("pass_speedup", "speedup")),
    "peers": (
        "redraft, shows 2 agree, first sight 0.4|llama-cpp-python|local-agreement|nemo waitk=3|align-att",
        ("cpu_speedup", "ne_display"),
    ),
    "capacity": (r"(?:ssbd|ar|redraft)\b(?!.*batch_lanes=1).*", ("talks",)),
    "viewers": (".*", ("viewers_a_core", "added_lag_p95_ms")),
}


def index(results: Sequence[Result], checks: Sequence[Check]) -> str:
    """Return the index of result pages and of other measurements, by subject."""
    entries = {}
    for name, bench in groupby(results, key=lambda each: each.bench):
        found = list(bench)
        headlines = [f"{_data(group[0])}: {words}" for group in groups(found) if (words := _headline(name, group))]
        if name == "stream":
            headlines = [summary(found)]
        signatures = [each for result in found for each in result.signatures]
        entries[name] = _entry(title(found[0]), name, ABOUT.get(name, ""), headlines, signatures)
    for check in checks:
        signatures = [str(row["signature"]) for row in check.rows]
        entries[check.name] = _entry(check.title, check.name, check.about, filter(None, [check.headline()]), signatures)
    parts = [INTRODUCTION]
    for subject, names in SUBJECTS.items():
        # Pages without a subject follow those of the last one.
        listed = [entries.pop(name) for name in names if name in entries] + (not names) * [*entries.values()]
        if listed:
            parts.append(f"## {subject}\n\n{''.join(listed)}")
    return "\n".join([*parts, glossary(results)])


def _entry(title: str, name: str, about: str, headlines: Iterable[str], signatures: Iterable[str]) -> str:
    words = f"{about} {'*Measured on earlier weights.*' * bool(earlier(signatures))}".rstrip()
    heading = f"- [{title.partition(' (')[0]}]({name}.md)"
    return "\n".join([f"{heading}: {words}" if words else heading, *(f"    - {line}" for line in headlines)]) + "\n"


def _data(result: Result) -> str:
    """Return the data set, and the model if it is another one, without the language."""
    return result.name.replace(f", to {result.language_name}", "")


def _headline(name: str, group: Sequence[Result]) -> str:
    """Return the headline figures of the selected lines over all languages; empty if no line exists."""
    pattern, fields = HEADLINES.get(name, ("", ()))
    rows = [row for result in group for row in result.rows if re.fullmatch(pattern, named(row))]
    lines: dict[str, list[Row]] = {}
    for row in rows:
        line = named(row)
        lines.setdefault(line if line in pattern.split("|") else str(row["method"]), []).append(row)
    return "; ".join(f"`{method}` {_figures(found, fields)}" for method, found in lines.items())


def _figures(rows: Sequence[Row], fields: Iterable[str]) -> str:
    found = []
    for field in fields:
        values = [value for row in rows if isinstance(value := row.get(field), int | float)]
        if values:
            each = column(field, rows)
            found.append(f"{each.heading} {span(values, each.form or 'g')}")
    return ", ".join(found)
