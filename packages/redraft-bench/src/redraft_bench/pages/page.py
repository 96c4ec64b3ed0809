"""The page of one benchmark: command, tables and pictures; and the meaning of all columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import fmean

from redraft_bench.bench.plots import PLOTS, Plot, plot_of
from redraft_bench.bench.read import Result
from redraft_bench.bench.tables import LIVE, STREAMED, TABLES, VIEWERS
from redraft_bench.eval.columns import OUT_OF, cell, column, filled, named
from redraft_bench.eval.figures import Row
from redraft_bench.eval.table import legend, listed, markdown_table
from redraft_bench.pages.checks import BACK, below
from redraft_bench.pages.reproduce import reproduce
from redraft_bench.pages.streams import ordered, overview, typical

#: Page -> the question that it answers.
ABOUT = {
    "stream": "Redraft, re-translation, SSBD and LocalAgreement on the text that recognisers send, with its revisions.",
    "ssbd": "Speed of each streaming method compared with re-translation (`ar`), and how much it retracts.",
    "trade": "Which method and display to use: quality, lag, flicker and processor time at several settings of each.",
    "cold": "What the decoders of the other papers save without a previous output to draft from.",
    "peers": "Redraft compared with llama-cpp-python, transformers, LocalAgreement, NeMo's policy and AlignAtt.",
    "capacity": "Live talks that two cores handle with p95 of the caption lag below a second.",
    "load": "The memory of a server with a chat model, with one talk and with many.",
    "viewers": "What the viewers of a talk cost, and whether each of them gets every final caption once and in order.",
}
#: Benchmark -> the columns that answer its question, if they are not those of the terminal.
SHOWN = {
    "load": LIVE,
    "viewers": VIEWERS,
    "ssbd": (
        *("method", "display", "chrf", "ne_display", "target_passes", "pass_speedup", "speedup", "cpu_speedup"),
        "limit_distance",
    ),
    "trade": (
        *("method", "display", "chrf", "ne_display", "retracted", "stood", "lag_first", "lag_good"),
        *("dal", "cpu_ms"),
    ),
    "cold": ("method", "same_as_ar", "chrf", "pass_speedup", "speedup", "limit_distance"),
    "capacity": (
        *("method", "talks", "caption_lag_p50_ms", "caption_lag_p95_ms", "ne_units", "lanes_a_pass"),
        *("server_cpu", "server_mb"),
    ),
}
#: Benchmark -> lines that its page leaves out (named as by `redraft_bench.eval.columns.named`).
LEFT_OUT = {
    "ssbd": r"pld|gs-jacobi.*|bild.*|.*shows mask 3.*",
}
#: Benchmark -> the data sets that have a picture on its page, if others have none.
PICTURED: dict[str, tuple[str, ...]] = {
    "trade": ("acl6060.talks",),
    **dict.fromkeys(("ssbd", "cold", "peers", "language_model"), ()),
}
#: Headings of the load tests (`redraft_bench.loadtest`).
LOADS = {
    "capacity": "How many live talks a server can handle",
    "load": "Many live talks at once against a server",
    "viewers": "Many viewers of a talk",
}
#: File name of the picture of all streams.
FRONT = "stream-front.svg"


def title(result: Result) -> str:
    """Return the heading of the page for a result, with the paper's table that it reproduces."""
    found = TABLES[result.bench].summary if result.bench in TABLES else LOADS.get(result.bench, result.bench)
    return found.rstrip(".")


def groups(results: Sequence[Result]) -> Iterator[list[Result]]:
    """Yield the results of one benchmark on one data set with one model, in all languages."""
    for _, group in groupby(results, key=lambda each: (each.bench, each.data, each.other_model)):
        yield list(group)


def page(results: Sequence[Result], notes: Path) -> str:
    """Return the page for the results of one benchmark.

    Args:
        results: the results.
        notes: folder of remarks, in a file ``BENCH.md`` for each benchmark.
    """
    bench = results[0].bench
    parts = [f"# {title(results[0])}\n", f"{BACK.rstrip()} · [What the columns mean](README.md#columns)\n"]
    if bench in TABLES and TABLES[bench].recognised:
        results = ordered(results)
        commands = "\n".join(reproduce(group) for group in groups(results))
        parts += [*overview(results, FRONT), f"```sh\n{commands}\n```\n"]
        parts.append(below([each for result in results for each in result.signatures]))
    else:
        parts += [f"{about}\n"] if (about := ABOUT.get(bench)) else []
        left_out = re.compile(LEFT_OUT.get(bench, ""))
        for group in groups(results):
            kept = [
                replace(each, rows=tuple(r for r in each.rows if not left_out.fullmatch(named(r)))) for each in group
            ]
            parts += section(kept, 2)
    note = notes / f"{bench}.md"
    if note.exists():
        parts += ["## Notes\n", note.read_text(encoding="utf-8")]
    return "\n".join(parts)


def _where(group: Sequence[Result]) -> str:
    """Return the data set and all languages of a group, as a heading."""
    languages = listed([result.language_name for result in group])
    words = group[0].name.replace(f"to {group[0].language_name}", f"to {languages}")
    return words[:1].upper() + words[1:] if words.split()[0].islower() else words


def section(group: Sequence[Result], level: int, *, whole: bool = False, code: str = "sh") -> Iterator[str]:
    """Yield heading, command, table, signatures and picture of a group; figures of several languages are means.

    Args:
        group: the results.
        level: that of the heading.
        whole: leave out the command, and show every interval and picture, as reports do.
        code: language of the block with the command; the tests check the options of ``sh``.
    """
    yield f"{'#' * level} {_where(group)}\n"
    if not whole:
        yield from command_of(group, code)
    lines: dict[object, list[Row]] = {}
    for place, result in enumerate(group):
        for row in result.rows:
            # Methods have a row for each number of talks or viewers.
            key = named(row), *(row.get(name) for name in ("talks", "viewers", "replicas"))
            lines.setdefault(key, [{}] * len(group))[place] = row
    rows = [mean(line) for line in lines.values()]
    fields = filled(rows, _columns(group[0]))
    columns = [column(field, rows) for field in fields]
    cells = [
        [cell(row, field, each.form, bounds=whole) for field, each in zip(fields, columns, strict=True)] for row in rows
    ]
    yield markdown_table([each.heading for each in columns], cells)
    languages = [result.language_name for result in group]
    means = [f"Means of {listed(languages)}."] if len(group) > 1 else []
    widest = [] if whole else _widest([row for line in lines.values() for row in line], fields)
    if means or widest:
        yield " ".join([*means, *widest]) + "\n"
    yield below([each for result in group for each in result.signatures])
    if shown := picture(group, every=whole):
        name, plot, _result = shown
        yield f"![{plot.name}]({name})\n\n*{plot.about}*\n"


def mean(rows: Sequence[Row]) -> Row:
    """Return the row of a method over several languages: means, and sums of segments; nothing where one lacks it."""
    first = next(row for row in rows if row)
    found: Row = {}
    for name, value in first.items():
        values = [row.get(name) for row in rows]
        numbers = [each for each in values if isinstance(each, int | float) and not isinstance(each, bool)]
        if len(numbers) == len(rows) > 1:
            found[name] = sum(numbers) if name in {*OUT_OF, *OUT_OF.values()} else fmean(numbers)
        else:
            found[name] = value if len({*values}) == 1 or name in _OF_A_LINE else None
    return found


#: Fields that name a line, whether or not all languages have it.
_OF_A_LINE = ("method", "options", "display")


def _widest(rows: Sequence[Row], fields: Sequence[str]) -> list[str]:
    """Return the widest 95% interval of each figure, as a sentence; nothing if none was computed."""
    found = []
    for field in fields:
        halves = [
            (high - low) / 2
            for row in rows
            if isinstance(low := row.get(f"{field}_low"), int | float)
            and isinstance(high := row.get(f"{field}_high"), int | float)
        ]
        if halves:
            each = column(field, rows)
            found.append(f"{each.heading} ±{max(halves):{each.form}}")
    return [f"Widest 95% intervals: {', '.join(found)}."] if found else []


def glossary(results: Sequence[Result]) -> str:
    """Return a section on the columns of the results' tables."""
    return legend({name for result in results for name in filled(result.rows, _columns(result))})


def command_of(group: Sequence[Result], code: str = "sh") -> Iterator[str]:
    """Yield the command that measures a group, as a block of code."""
    if command := reproduce(group):
        yield f"```{code if group[0].bench in TABLES else 'text'}\n{command}\n```\n"


def _columns(result: Result) -> Sequence[str]:
    """Return the fields that may be columns of a benchmark's table."""
    return SHOWN.get(result.bench) or (TABLES[result.bench].columns if result.bench in TABLES else STREAMED)


def front(results: Sequence[Result]) -> tuple[str, Plot, Result] | None:
    """Return file name, plot and medians of all streams; None without streams."""
    streams = [each for each in results if each.bench == "stream"]
    return (FRONT, PLOTS["stream"], typical(streams)) if streams else None


def picture(group: Sequence[Result], *, every: bool = False) -> tuple[str, Plot, Result] | None:
    """Return file name, plot and result of the picture for one benchmark and data set, in its first language.

    Args:
        every: whether there is one of every data set and language, as in reports; otherwise, only of `PICTURED`.
    """
    first = group[0]
    plot = plot_of(first)
    pictured = first.bench != "stream" and first.data in PICTURED.get(first.bench, (first.data,))
    if plot is None or not (every or pictured):
        return None
    stem = "-".join(filter(None, (first.bench, first.data, first.language * every, first.other_model, plot.name)))
    return f"{re.sub(r'[^0-9A-Za-z.-]+', '-', stem)}.svg", plot, first
