"""Writes docs/benchmarks.md with its pictures, and the figures in README.md, from the rows that benches have left.

    python -m tools.build_benchmarks            write them
    python -m tools.build_benchmarks --check    fail where a page is out of date; pictures are not compared

``benchmarks/results`` holds a ``.rows.jsonl`` file for every run of ``redraft bench``, and ``benchmarks/notes`` what is
to be said of a bench, in a file of its name.  No figure is typed by hand.  Where there are no rows nothing is written.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from redraft.bench.claims import verdicts
from redraft.bench.columns import COLUMNS, cell, column, filled
from redraft.bench.load import PERTURBED, Result, read_results
from redraft.bench.plots.kinds import PLOTS, Plot, draw, plots_of
from redraft.bench.report import LIVE as LOAD_TESTS
from redraft.bench.report import heading
from redraft.bench.tables import LIVE, STREAMED, TABLES
from redraft.eval.revise import REVISED
from redraft.models import SHIPPED
from tools.build_docs import between, table
from tools.checks import below, card, folded, sections

ROOT = Path(__file__).resolve().parents[1]
PAGE = "benchmarks.md"
CARD = Path("src") / "redraft" / "models" / "README.md"

#: Columns beside those of the terminal.
MORE = {
    "ssbd": ("bleu", "tokens_per_second"),
    "redraft": ("ne_output", "chrf", "model_share"),
    "mask": ("laal",),
    "peers": ("same_as_ar", "tokens_per_second", "laal"),
    "replay": ("tokens_per_second",),
    "capacity": ("lanes_a_pass",),
    "load": ("seconds", "sessions", "refusals", "caption_lag_slope", "lanes_a_pass"),
}
#: Bench -> its plots that are shown.
PICTURES = {
    "ssbd": ("quality", "limit", "acceptance", "cost"),
    "redraft": ("speedups",),
    "beta": ("quality", "speed"),
    "mask": ("flicker", "lag"),
    "cold": ("limit",),
    "bild": ("tradeoff", "tradeoff-passes"),
    "aasd": ("limit",),
    "peers": ("speedups",),
    "replay": ("speedups", "limit", "cost"),
    "capacity": ("talks",),
}
#: Tables of more rows are folded.
FOLDED = 20

INTRODUCTION = """# Benchmarks

Made by `python -m tools.build_benchmarks` from `benchmarks/results`; changes here are lost. The signature under a
table says what was measured, on what, with how many threads. The lines of a table take turns, update by update, so
that speed-ups are ratios within one run. Claims are checked when the page is made; those that do not hold are open.
Where a demo model has been trained further since a table was measured, that is said below it.
"""


def documents(root: Path = ROOT) -> dict[Path, str]:
    """Every page that is made from results, whole or in part, as it ought to read."""
    results = read_results(root / "benchmarks" / "results")
    pages = {}
    if results:
        pages[root / "docs" / PAGE] = page(results, root / "benchmarks" / "notes")
    shown = next((result for result in results if result.bench == "beta" and not result.replayed), None)
    if shown:
        readme = (root / "README.md").read_text(encoding="utf-8")
        pages[root / "README.md"] = between(readme, "results", summary(shown))
    if any(result.bench == "quality" for result in results):
        text = (root / CARD).read_text(encoding="utf-8")
        pages[root / CARD] = between(text, "quality", card(results))
    return pages


def groups(results: Sequence[Result]) -> Iterator[list[Result]]:
    """The results of one bench on one data set by one model, in all languages."""
    for _, group in groupby(results, key=lambda each: (each.replayed, each.bench, each.data, each.other_model)):
        yield list(group)


def page(results: Sequence[Result], notes: Path) -> str:
    """docs/benchmarks.md.

    Args:
        notes: a folder with what is said below the tables of a bench, in a file ``BENCH.md``.
    """
    parts: list[str] = []
    for _, bench in groupby(results, key=lambda each: (each.replayed, each.bench)):
        found = list(bench)
        parts.append(f"## {heading(found[0]).rstrip('.')}\n")
        for group in groups(found):
            parts += _section(group)
        note = notes / f"{found[0].bench}.md"
        if note.exists() and not found[0].replayed:
            parts.append(note.read_text(encoding="utf-8"))
    parts += sections(notes.parent / "results")
    used = {name for result in results for name in _columns(result)}
    parts.append("## Columns\n")
    parts.append("".join(f"- **{each.heading}**: {each.about}\n" for name, each in COLUMNS.items() if name in used))
    return "\n".join([INTRODUCTION, _contents(parts), *parts])


def _contents(parts: Sequence[str]) -> str:
    """Links to the headings."""
    headings = [part.removeprefix("## ").strip() for part in parts if part.startswith("## ")]
    return "".join(f"- [{each}](#{_anchor(each)})\n" for each in headings)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def _section(group: Sequence[Result]) -> Iterator[str]:
    command = reproduce(group)
    if command:
        # Blocks of sh are tried by the tests; the recording of a replay is not checked in.
        yield f"```{'text' if group[0].replayed else 'sh'}\n{command}\n```\n"
    for result in group:
        yield f"### {result.name}{' (replay)' if result.replayed else ''}\n"
        yield folded(f"{len(result.rows)} rows", markdown(result)) if len(result.rows) > FOLDED else markdown(result)
        yield below(result.signatures)
        yield _claims(result)
    for name, plot, _results in pictures(group):
        yield f"![{plot.name}]({name})\n\n*{plot.about}*\n"


def markdown(result: Result) -> str:
    """The table of a result, with the columns that matter for its bench."""
    fields = _columns(result)
    columns = [column(field, result.rows) for field in fields]
    rows = [[cell(row, field, each.form) for field, each in zip(fields, columns, strict=True)] for row in result.rows]
    return table([each.heading for each in columns], rows)


def _columns(result: Result) -> list[str]:
    columns = {**{name: each.columns for name, each in TABLES.items()}, **dict.fromkeys(LOAD_TESTS, LIVE)}
    usual = columns.get(result.bench, STREAMED)
    wanted = {*usual, *MORE.get(result.bench, ())}
    return filled(result.rows, [name for name in COLUMNS if name in wanted])


def _claims(result: Result) -> str:
    found = verdicts(result.rows)
    failed = sum(bool(each.broken) for each in found)
    lines = []
    for each in found:
        lines.append(f"- {'✗' if each.broken else '✓'} {each.claim}\n")
        lines += [f"  - {sentence}\n" for sentence in each.broken]
    if not found:
        return ""
    return folded(f"{len(found) - failed} of {len(found)} claims hold", "".join(lines), opened=failed > 0)


def reproduce(group: Sequence[Result]) -> str:
    """The command that measures results of one bench and data set, as their signature has it; nothing if none does."""
    result, facts = group[0], group[0].facts
    if result.replayed:
        return shlex.join(_replay(facts)) if "replay" in facts else ""
    if result.bench not in TABLES:
        return ""
    data, _, revisions = result.data.removesuffix(PERTURBED).partition(REVISED)
    words = ["redraft", "bench", result.bench, "--data", data]
    words += ["--revisions", revisions] if revisions else ["--noise"] if data != result.data else []
    words += [word for each in group for word in ("--to", each.language)]
    for fact, option, shipped in (("model", "--model", "demo"), ("small", "--draft-model", "demo-tiny")):
        names = [_file(value) for name, value in facts.items() if re.fullmatch(rf"{fact}\d*", name)]
        if names and names != [SHIPPED[shipped]]:
            words += [word for name in names for word in (option, name)]
    for option, usual in (("lag", str(TABLES[result.bench].lag)), ("drafts", ""), ("seed", "0"), ("dtype", "")):
        words += [f"--{option}", facts[option]] if facts.get(option, usual) not in (usual, "none") else []
    return shlex.join([*words, *_size(facts), *(["--exact"] if facts.get("exact") == "True" else [])])


def _replay(facts: Mapping[str, str]) -> list[str]:
    words = ["redraft", "bench", "replay", "--records", _file(facts["replay"])]
    if facts.get("engine") != "transformers":
        return [*words, "--model", _file(facts["model"]), *_size(facts)]
    shape, dtype, device = facts["model"].rsplit("-", 2)
    return [*words, "--shape", shape, "--dtype", dtype, "--device", device, *_size(facts)]


def _size(facts: Mapping[str, str]) -> list[str]:
    words = ["--limit", facts["segments"]] if "segments" in facts else []
    words += ["--least-words", facts["least_words"]] if "least_words" in facts else []
    return [*words, "--threads", facts["threads"]] if facts.get("threads", "").isdigit() else words


def _file(label: str) -> str:
    """The name in ``name@hash``."""
    return label.partition("@")[0]


def summary(result: Result) -> str:
    """What the README shows of a result."""
    about = f"{heading(result)} {result.name}. More in [docs/{PAGE}](docs/{PAGE})."
    return f"{about}\n\n{markdown(result)}\n{below(result.signatures)}"


def pictures(group: Sequence[Result]) -> list[tuple[str, Plot, list[Result]]]:
    """File name, plot and results of every picture of one bench and data set."""
    found = []
    for plot in PLOTS:
        drawn = [result for result in group if plot in plots_of(result)]
        if drawn and plot.name in PICTURES.get(drawn[0].bench, ()):
            first = drawn[0]
            parts = "replay" * first.replayed, first.bench, first.data, first.other_model, plot.name
            stem = "-".join(filter(None, parts))
            found.append((f"benchmarks-{re.sub(r'[^0-9A-Za-z.-]+', '-', stem)}.svg", plot, drawn))
    return found


def write(root: Path = ROOT) -> None:
    """Write all pages and pictures anew."""
    drawn = set()
    for group in groups(read_results(root / "benchmarks" / "results")):
        for name, plot, results in pictures(group):
            path = root / "docs" / name
            path.write_text(draw(plot, results, Path(name).stem) + "\n", encoding="utf-8", newline="\n")
            drawn.add(path)
    for path in set((root / "docs").glob("benchmarks-*.svg")) - drawn:
        path.unlink()
    for path, text in documents(root).items():
        path.write_text(text, encoding="utf-8", newline="\n")


def stale(root: Path = ROOT) -> list[str]:
    """The pages that do not read as they ought to, and the pictures that are not there."""
    wanted = documents(root)
    old = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    names = [each[0] for group in groups(read_results(root / "benchmarks" / "results")) for each in pictures(group)]
    absent = [root / "docs" / name for name in names if not (root / "docs" / name).exists()]
    return [str(path.relative_to(root)) for path in (*old, *absent)]


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Do what the command line says; returns what is wrong, if anything."""
    parser = argparse.ArgumentParser(description="Write docs/benchmarks.md from the results of benches.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where pages are out of date")
    if not parser.parse_args(arguments).check:
        write()
        return None
    found = stale()
    words = "benchmarks: out of date, run `python -m tools.build_benchmarks`"
    return f"{words}: {', '.join(found)}" if found else None


if __name__ == "__main__":
    sys.exit(main())
