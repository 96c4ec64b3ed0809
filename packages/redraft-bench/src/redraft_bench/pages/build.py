"""Write docs/benchmarks with its pictures, and parts of README.md and other pages, from the rows of benchmark runs.

    python -m redraft_bench.pages.build            write them
    python -m redraft_bench.pages.build --check    fail where a page is out of date; pictures are not compared

``benchmarks/results`` has a ``.rows.jsonl`` file for every run of ``redraft bench``; ``benchmarks/notes`` has the
remarks on a benchmark, in a file of its name.  No figure is typed by hand: ``--check`` fails on those in prose
(`redraft_bench.pages.typed_figures`).  Without rows, nothing is written.  docs/benchmarks contains nothing else:
files that belong to no result are removed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from redraft_bench.bench.plots import Plot
from redraft_bench.bench.read import Result, read_results
from redraft_bench.pages import papers
from redraft_bench.pages.checks import Check, card, checks
from redraft_bench.pages.index import index
from redraft_bench.pages.language_models import NAME as LANGUAGE_MODEL
from redraft_bench.pages.language_models import larger
from redraft_bench.pages.page import FRONT, front, groups, page, picture
from redraft_bench.pages.streams import ABOUT_PICTURE, costs, summary
from redraft_bench.pages.typed_figures import typed
from tools.build_docs import between

ROOT = Path(__file__).resolve().parents[5]
PAGES = Path("docs") / "benchmarks"
CALM = Path("docs") / "calm.md"
PAPERS = Path("docs") / "papers.md"
CARD = Path("src") / "redraft" / "models" / "README.md"
#: The benchmark whose table is in the model card, and has no page; and those with pages of their own.
QUALITY = "quality"
APART = (QUALITY, LANGUAGE_MODEL)


def documents(root: Path = ROOT) -> dict[Path, str]:
    """Return path -> text of every page that is generated from results, completely or in part."""
    results = read_results(root / "benchmarks" / "results")
    found = checks(root / "benchmarks" / "results")
    pages = {}
    if results or found:
        pages[root / PAGES / "README.md"] = index([each for each in results if each.bench not in APART], found)
    for name, bench in groupby((each for each in results if each.bench not in APART), key=lambda each: each.bench):
        pages[root / PAGES / f"{name}.md"] = page(list(bench), root / "benchmarks" / "notes")
    pages |= {root / PAGES / f"{each.name}.md": each.page() for each in found}
    if of_papers := papers.results(root):
        pages[root / PAGES / papers.NAME] = papers.page(of_papers)
        text = (root / PAPERS).read_text(encoding="utf-8")
        pages[root / PAPERS] = between(text, "trends", papers.trends(of_papers))
    shown = [each for each in results if each.bench == "stream"]
    if shown:
        text = (root / "README.md").read_text(encoding="utf-8")
        pages[root / "README.md"] = between(text, "results", readme(shown, found))
        text = (root / CALM).read_text(encoding="utf-8")
        pages[root / CALM] = between(text, "costs", _costs(shown))
    if any(result.bench == QUALITY for result in results):
        text = (root / CARD).read_text(encoding="utf-8")
        pages[root / CARD] = between(text, "quality", card(results))
    return pages


def readme(results: Sequence[Result], found: Sequence[Check]) -> str:
    """Return the part of the README on the results of the table ``stream`` and on language models."""
    sentence = f"{summary(results).removesuffix('.')} ([benchmark]({PAGES.as_posix()}/stream.md))."
    for each in found:
        if each.name == "language_model":
            saved = larger(each.rows).removesuffix(".")
            sentence += f" {saved} ([benchmark]({PAGES.as_posix()}/{each.name}.md))."
    picture = f"![Retracted words over the lag, for four methods]({PAGES.as_posix()}/{FRONT})"
    return f"{_wrapped(sentence)}\n\n{picture}\n\n{_wrapped(f'*{ABOUT_PICTURE}*')}\n"


def _wrapped(text: str) -> str:
    return "\n".join(wrap(text, 120, break_on_hyphens=False))


def _costs(results: Sequence[Result]) -> str:
    """Return the part of docs/calm.md on what the methods cost."""
    table, about = costs(results)
    return f"\n{table}\n{_wrapped(about)}\n\n"


def drawn(root: Path) -> dict[Path, tuple[Plot, Result]]:
    """Return path -> plot and result of every picture."""
    everything = read_results(root / "benchmarks" / "results")
    found = checks(root / "benchmarks" / "results")
    shown = [
        front(everything),
        *map(picture, groups([*everything, *papers.results(root)])),
        *(each.drawn() for each in found),
    ]
    return {root / PAGES / name: (plot, result) for name, plot, result in filter(None, shown)}


def surplus(root: Path, wanted: set[Path]) -> list[Path]:
    """Return the pages and pictures in docs/benchmarks that are not wanted."""
    there = (root / PAGES).iterdir() if (root / PAGES).is_dir() else ()
    return sorted(path for path in there if path.suffix in (".md", ".svg") and path not in wanted)


def write(root: Path = ROOT) -> None:
    """Write all pages and pictures, and remove those that belong to no result."""
    pages, shown = documents(root), drawn(root)
    for path in (*pages, *shown):
        path.parent.mkdir(parents=True, exist_ok=True)
    for path, (plot, result) in shown.items():
        text = plot.draw(result, f"benchmarks-{path.stem}")
        path.write_text(text + "\n", encoding="utf-8", newline="\n")
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    for path in surplus(root, {*pages, *shown}):
        path.unlink()


def stale(root: Path = ROOT) -> list[str]:
    """Return the pages that are out of date, the missing pictures, and the files that belong to no result."""
    pages, shown = documents(root), drawn(root)
    old = [path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    absent = [path for path in shown if not path.exists()]
    return [path.relative_to(root).as_posix() for path in (*old, *absent, *surplus(root, {*pages, *shown}))]


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Run the command line; return an error message, or None."""
    parser = argparse.ArgumentParser(description="Write docs/benchmarks from the results of benches.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where pages are out of date")
    if not parser.parse_args(arguments).check:
        write()
        return None
    if by_hand := list(typed(ROOT)):
        return f"benchmarks: these figures are typed by hand, so take them from the rows: {'; '.join(by_hand)}"
    found = stale()
    words = "benchmarks: out of date, run `python -m redraft_bench.pages.build`"
    return f"{words}: {', '.join(found)}" if found else None


if __name__ == "__main__":
    sys.exit(main())
