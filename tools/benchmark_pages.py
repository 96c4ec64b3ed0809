"""The page of one benchmark: command, tables and pictures; and the meaning of all columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from redraft_bench.bench.plots.kinds import PLOTS, Plot, plots_of
from redraft_bench.bench.read import Result
from redraft_bench.bench.report import LIVE as LOAD_TESTS
from redraft_bench.bench.report import heading
from redraft_bench.bench.tables import LIVE, STREAMED, TABLES
from redraft_bench.eval.columns import COLUMNS, cell, column, filled
from tools.benchmark_streams import overview
from tools.build_docs import table
from tools.checks import BACK, below, folded
from tools.reproduce import reproduce

#: Columns in addition to those of the terminal.
MORE = {
    "ssbd": ("bleu", "tokens_per_second"),
    "redraft": ("ne_output", "chrf", "model_share"),
    "mask": ("laal",),
    "peers": ("same_as_ar", "tokens_per_second", "laal"),
    "replay": ("tokens_per_second",),
    "capacity": ("lanes_a_pass",),
    "load": ("seconds", "sessions", "refusals", "caption_lag_slope", "lanes_a_pass"),
}
#: Benchmark -> the plots to show.
PICTURES = {
    "stream": ("front",),
    "ssbd": ("quality", "limit", "acceptance", "cost"),
    "redraft": ("speedups",),
    "beta": ("quality", "speed"),
    "mask": ("flicker", "lag"),
    "cold": ("limit",),
    "jacobi": ("limit",),
    "bild": ("tradeoff", "tradeoff-passes"),
    "aasd": ("limit",),
    "peers": ("speedups",),
    "replay": ("speedups", "limit", "cost"),
    "capacity": ("talks",),
}
#: Number of rows from which a table is folded.
FOLDED = 20


def page_name(result: Result) -> str:
    """Return the name of the page for a result: the benchmark's name; replays have their own page."""
    if not result.replayed or result.bench == "replay":
        return result.bench
    return f"replay-{result.bench}"


def title(result: Result) -> str:
    """Return the heading of the page for a result."""
    return heading(result).rstrip(".")


def groups(results: Sequence[Result]) -> Iterator[list[Result]]:
    """Yield the results of one benchmark on one data set with one model, in all languages."""
    for _, group in groupby(results, key=lambda each: (each.replayed, each.bench, each.data, each.other_model)):
        yield list(group)


def page(results: Sequence[Result], notes: Path) -> str:
    """Return the page for the results of one benchmark.

    Args:
        results: the results.
        notes: folder of remarks, in a file ``BENCH.md`` for each benchmark.
    """
    parts = [f"# {title(results[0])}\n", f"{BACK.rstrip()} · [What the columns mean](README.md#columns)\n"]
    recognised = results[0].bench in TABLES and TABLES[results[0].bench].recognised
    if recognised:
        parts += overview(results)
    for group in groups(results):
        parts += (
            [f"## {group[0].data_name[:1].upper()}{group[0].data_name[1:]}\n", _folded(group)]
            if recognised
            else _section(group)
        )
    note = notes / f"{results[0].bench}.md"
    if note.exists() and not results[0].replayed:
        parts += ["## Notes\n", note.read_text(encoding="utf-8")]
    return "\n".join(parts)


def glossary(results: Sequence[Result]) -> str:
    """Return a section on the columns of the results' tables."""
    used = {name for result in results for name in _columns(result)}
    lines = [f"- **{each.heading}**: {each.about}\n" for name, each in COLUMNS.items() if name in used]
    return f"## Columns\n\n{''.join(dict.fromkeys(lines))}"


def _section(group: Sequence[Result], level: int = 2) -> Iterator[str]:
    command = reproduce(group)
    if command:
        # Blocks marked ``sh`` are run by the tests, and the recording of a replay is not checked in.
        yield f"```{'text' if group[0].replayed else 'sh'}\n{command}\n```\n"
    for result in group:
        yield f"{'#' * level} {result.name}{' (replay)' if result.replayed else ''}\n"
        yield folded(f"{len(result.rows)} rows", markdown(result)) if len(result.rows) > FOLDED else markdown(result)
        yield below(result.signatures)
    for name, plot, _results in pictures(group):
        yield f"![{plot.name}]({name})\n\n*{plot.about}*\n"


def _folded(group: Sequence[Result]) -> str:
    """Return the section of a stream in all languages, folded."""
    languages = " and ".join(result.language_name for result in group)
    return folded(f"All methods and sources, to {languages}", "\n".join(_section(group, level=3)))


def markdown(result: Result) -> str:
    """Return the table of a result, with the columns of its benchmark."""
    fields = _columns(result)
    columns = [column(field, result.rows) for field in fields]
    rows = [[cell(row, field, each.form) for field, each in zip(fields, columns, strict=True)] for row in result.rows]
    return table([each.heading for each in columns], rows)


def _columns(result: Result) -> list[str]:
    columns = {**{name: each.columns for name, each in TABLES.items()}, **dict.fromkeys(LOAD_TESTS, LIVE)}
    usual = columns.get(result.bench, STREAMED)
    wanted = {*usual, *MORE.get(result.bench, ())}
    return filled(result.rows, [name for name in COLUMNS if name in wanted])


def pictures(group: Sequence[Result]) -> list[tuple[str, Plot, list[Result]]]:
    """Return file name, plot and results of every picture for one benchmark and data set."""
    found = []
    for plot in PLOTS:
        drawn = [result for result in group if plot in plots_of(result)]
        if drawn and plot.name in PICTURES.get(drawn[0].bench, ()):
            parts = page_name(drawn[0]), drawn[0].data, drawn[0].other_model, plot.name
            stem = "-".join(filter(None, parts))
            found.append((f"{re.sub(r'[^0-9A-Za-z.-]+', '-', stem)}.svg", plot, drawn))
    return found
