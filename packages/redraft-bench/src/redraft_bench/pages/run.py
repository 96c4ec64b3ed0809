"""Run every table of docs/benchmarks with the shipped models, one after another.

    python -m redraft_bench.pages.run [--only ssbd --only trade] [--list]

Runs whose rows in benchmarks/results are from the shipped model are skipped, and `redraft bench` resumes interrupted
runs, so the same command resumes.  It takes hours on two cores; nothing else should run at the same time.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from redraft.models import shipped_path
from redraft.signature import file_hash
from redraft_bench.bench.data import RECOGNISED, TUNED
from redraft_bench.bench.read import ENDING, LANGUAGES

ROOT = Path(__file__).resolve().parents[5]
RESULTS = ROOT / "benchmarks" / "results"
#: Further options of a table.  With exact kernels, the table can hold exact methods to the ids of `ar`.
OPTIONS = {"cold": ("--engine", "exact=1")}
#: Data of the table ``stream`` -> number of utterances.
STREAMS = {"talk": 24, **{name: 0 for name in RECOGNISED if name != TUNED}, "recogniser": 8}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of ``redraft bench``.

    Attributes:
        table: name of the table.
        data: name of the data set.
        language: code of the target language.
        limit: number of sentences; 0 takes all.
    """

    table: str
    data: str
    language: str
    limit: int

    @property
    def name(self) -> str:
        """First part of its file names."""
        return f"{self.table}-{self.data}-{self.language}"

    def command(self, out: Path) -> list[str]:
        """Return its command line."""
        chosen = ["--data", self.data, "--to", self.language, "--limit", str(self.limit), "--engine", "threads=1"]
        options = [*chosen, *OPTIONS.get(self.table, ())]
        return [sys.executable, "-m", "redraft", "bench", "run", self.table, *options, "--out", str(out)]


def runs() -> Iterator[Run]:
    """Yield all runs, the most important ones first."""
    for data, limit in STREAMS.items():
        for language in LANGUAGES:
            yield Run("stream", data, language, limit)
    for language in LANGUAGES:
        for data in ("flores200.devtest", "acl6060.dev"):
            yield Run("ssbd", data, language, 40)
    for language in LANGUAGES:
        yield Run("trade", "acl6060.talks", language, 80)
        yield Run("trade", "acl-second", language, 0)
    for language in LANGUAGES:
        yield Run("cold", "flores200.devtest", language, 20)
    yield Run("peers", "flores200.devtest", "de", 10)
    for data in ("flores200.devtest", "acl6060.dev", "tatoeba2021", "mexpresso"):
        for language in LANGUAGES if data != "mexpresso" else ("de", "zh"):
            yield Run("quality", data, language, 0)
    for language in LANGUAGES:
        yield Run("quality", "spoken", language, 0)


def measured() -> set[str]:
    """Return the names of the runs whose rows are from the shipped model."""
    shipped = f"@{file_hash(shipped_path('demo'))}"
    files = RESULTS.glob(f"*{ENDING}")
    return {file.name.removesuffix(ENDING) for file in files if shipped in file.read_text(encoding="utf-8")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing; return the number of failed runs."""
    parser = argparse.ArgumentParser(description="Run every table of docs/benchmarks with the shipped models.")
    parser.add_argument("--only", action="append", default=[], help="a table, such as ssbd; repeat")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "bench", help="records, to resume from")
    parser.add_argument("--list", action="store_true", help="say what is missing, and run nothing")
    chosen = parser.parse_args(arguments)
    done = measured()
    missing = [run for run in runs() if run.name not in done and (not chosen.only or run.table in chosen.only)]
    failed = 0
    for number, run in enumerate(missing, 1):
        print(f"{number} of {len(missing)}: {run.name}", flush=True)
        if not chosen.list and not perform(run, chosen.out):
            failed += 1
            print(f"{run.name} failed", file=sys.stderr)
    return failed


def perform(run: Run, out: Path) -> bool:
    """Do one run and save its rows; return whether it succeeded."""
    if subprocess.run(run.command(out), stdout=subprocess.DEVNULL, check=False).returncode:
        return False
    rows = f"{run.name}{ENDING}"
    shutil.copyfile(out / rows, RESULTS / rows)
    return True


if __name__ == "__main__":
    sys.exit(main())
