"""What the page of the benchmark `gpu` says: tables, sentences and a picture from its rows."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from redraft_bench.bench.plots import OTHERS, Label, Plot, beside
from redraft_bench.bench.read import Result
from redraft_bench.eval.table import listed, markdown_table, span
from redraft_bench.pages.language_models import NAMES, TEXTS, Row, model_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Rounds of passes from which on a rate of sessions is shown.
ENOUGH = 5
#: New tokens up to which the time of a pass is said in a sentence.
SHORT = 64
#: Numbers of new tokens in the overview, and sessions whose passes it shows over one token.
SIZES, SESSIONS = (1, 8, 32, 64, 256), (1, 8, 64)


REMARK = (
    "The backend is `hf` in 16-bit floats (`bfloat16`), in eager mode. Weights are random, in the shapes of Qwen3. The "
    "passes of a *stream* were recorded with a real model and are repeated with the same prompts, drafts and "
    "roll-backs, as far as time allowed. *Sessions* repeat the first stream without waiting, each from another place, "
    "and share every pass; rates from few passes are left out. Times varied much, since they depend on how fast Python "
    "launches kernels: compare methods by passes first. The *floor* is the time to read the weights once at the rate "
    "of a large copy. Ids are compared in 32-bit floats on a small random model."
)


def of(rows: Sequence[Row], part: str) -> list[Row]:
    """Return the rows of a part, whose methods are called by their names and options alone."""
    return [_short(row) for row in rows if row["part"] == part]


def _short(row: Row) -> Row:
    return row | {"method": row["method"].partition(", shows ")[0]} if "method" in row else row


def shapes(rows: Sequence[Row]) -> list[str]:
    """Return the shapes of rows, the smallest first."""
    return sorted({row["shape"] for row in rows if row["shape"]})


def card(rows: Sequence[Row]) -> str:
    """Return the name of the GPU."""
    names = [part.partition(":")[2] for row in rows for part in row["signature"].split("|") if part.startswith("card:")]
    return listed(list(dict.fromkeys(names)))


def findings(rows: Sequence[Row]) -> str:
    """Return sentences on passes, streams, sessions and ids."""
    found, passes = [], _passes(rows)
    names = [name for name in shapes(rows) if (name, 1, 1) in passes]
    if names:
        short = [row["ms"] for (_, sessions, new), row in passes.items() if sessions == 1 and new <= SHORT]
        words = f"On {card(rows)}, a pass over 1 to {SHORT} new tokens takes {span(short, '.0f')} ms in the shapes of "
        busy = [row["busy_ms"] for row in of(rows, "busy") if row["new"] == 1]
        words += f"Qwen3 {listed(names)}, whatever its length"
        words += f"; the GPU works for {span(busy, '.0f')} ms of one over a token" if busy else ""
        found.append(f"{words}.")
    found += [*_of_streams(rows)[:1], *_of_sessions(rows)]
    if ids := of(rows, "ids"):
        differ, updates = sum(row["mismatches"] for row in ids), sum(row["updates"] for row in ids)
        found.append(f"In 32-bit floats, {differ} of {updates} outputs of {len(ids)} methods differ from the CPU's.")
    return " ".join(found)


def _of_streams(rows: Sequence[Row]) -> list[str]:
    found = []
    for name, group in _recorded(of(rows, "stream")).items():
        methods = dict.fromkeys(row["method"] for row in group if row["method"] != "ar" and row.get("speedup"))
        spans = [
            f"{span([row['speedup'] for row in group if row['method'] == method], '.1f')} with `{method}`"
            for method in methods
        ]
        if spans:
            found.append(f"Updates recorded with {name} are faster than with `ar` by a factor of {listed(spans)}.")
    return found


def _of_sessions(rows: Sequence[Row]) -> list[str]:
    found = _rates(rows)
    if not found:
        return []
    most = max(row["sessions"] for row in found)
    rates = [row for row in found if row["sessions"] == most]
    spans = [
        f"{span([row['updates_per_second'] for row in rates if row['method'] == method], '.0f')} with `{method}`"
        for method in dict.fromkeys(row["method"] for row in rates)
    ]
    return [f"{most} sessions that share passes get {listed(spans)} updates a second."]


def _rates(rows: Sequence[Row]) -> list[Row]:
    return [row for row in of(rows, "sessions") if row["rounds"] >= ENOUGH]


def _passes(rows: Sequence[Row]) -> dict[tuple[str, int, int], Row]:
    return {(row["shape"], row["sessions"], row["new"]): row for row in of(rows, "pass")}


def _recorded(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each model and stream, by what they are called."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        data = TEXTS.get(row["data"], row["data"])
        found.setdefault(f"{_model(row['recorded'])} on {data}", []).append(row)
    return found


def _model(file: str) -> str:
    """Return what the model of a file is called."""
    known = model_of(file)
    return NAMES[known] if known else f"the model `{file.removesuffix('.gguf')}`"


def overview(rows: Sequence[Row]) -> str:
    """Return a table for passes, streams and sessions each."""
    return "\n".join(filter(None, (_pass_table(rows), *_stream_tables(rows), _session_table(rows))))


def _pass_table(rows: Sequence[Row]) -> str:
    passes, lines = _passes(rows), []
    rate = max((row["gigabytes_per_second"] for row in of(rows, "ceilings")), default=0.0)
    busy = {(row["shape"], row["new"]): row["busy_ms"] for row in of(rows, "busy")}

    def ms(name: str, sessions: int, new: int) -> str:
        row = passes.get((name, sessions, new))
        return f"{row['ms']:.1f}" if row else ""

    shared = [count for count in SESSIONS[1:] if any(key[1:] == (count, 1) for key in passes)]
    for name in shapes(of(rows, "pass")):
        read = next((row["gigabytes"] for key, row in passes.items() if key[0] == name), 0.0)
        floor = f"{1e3 * read / rate:.2f}" if rate else ""
        work = f"{busy[name, 1]:.1f}" if (name, 1) in busy else ""
        lines.append([name, floor, work, *(ms(name, 1, new) for new in SIZES), *(ms(name, n, 1) for n in shared)])
    headings = ["shape", "floor ms", "GPU at work ms", *(f"T({new}) ms" for new in SIZES)]
    headings += [f"{count} sessions, a token each, ms" for count in shared]
    return markdown_table(headings, lines) if lines else ""


def _stream_tables(rows: Sequence[Row]) -> list[str]:
    tables = []
    for name, group in _recorded(of(rows, "stream")).items():
        columns = shapes(group)
        by_key = {(row["method"], row["shape"]): row for row in group}
        lines = []
        for method in dict.fromkeys(row["method"] for row in group):
            there = [by_key.get((method, shape)) for shape in columns]
            each = fmean(row["passes"] / row["updates"] for row in there if row)
            lines.append([method, f"{each:.1f}", *(f"{row['ms']:.0f}" if row else "" for row in there)])
        table = markdown_table(["method", "passes an update", *columns], lines)
        tables.append(f"Milliseconds of an update recorded with {name}:\n\n{table}")
    return tables


def _session_table(rows: Sequence[Row]) -> str:
    found = _rates(rows)
    counts = sorted({row["sessions"] for row in found})
    rates = {(row["shape"], row["method"], row["sessions"]): row for row in found}
    lines = []
    for shape, method in sorted(
        dict.fromkeys((row["shape"], row["method"]) for row in found), key=lambda each: each[0]
    ):
        there = [rates.get((shape, method, count)) for count in counts]
        lines.append([shape, method, *(f"{row['updates_per_second']:.1f}" if row else "" for row in there)])
    table = markdown_table(["shape", "method", *map(str, counts)], lines)
    return f"Updates a second by number of sessions:\n\n{table}" if lines else ""


def _passes_drawn(axes: Axes, result: Result) -> None:
    labels, lines = [], []
    for name, colour in zip(shapes(result.rows), OTHERS, strict=False):
        found = [row for row in of(result.rows, "pass") if row["shape"] == name and row["sessions"] == 1]
        points = sorted((float(row["new"]), float(row["ms"])) for row in found)
        if points:
            axes.plot(*zip(*points, strict=True), "-", marker="o", color=colour)
            labels.append(Label(*points[-1], name, colour))
            lines.append(points)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("new tokens of a pass")
    axes.set_ylabel("time of the pass (ms)")
    axes.margins(0.1, 0.1)
    axes.set_ylim(bottom=0)
    beside(axes, labels, lines)


PLOT = Plot(
    "passes",
    "The time of a pass over n new tokens, by the shape of the model.",
    lambda result: (_passes_drawn,) if of(result.rows, "pass") else (),
)


def picture(rows: Sequence[Row]) -> tuple[str, Plot, Result] | None:
    """Return file name, plot and result of the picture; None if no pass was measured."""
    result = Result("gpu", "gpu", "", tuple(rows))
    return ("gpu-passes.svg", PLOT, result) if PLOT.panels(result) else None
