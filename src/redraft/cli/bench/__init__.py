"""``redraft bench``: the group of benchmark commands."""

from __future__ import annotations

import click

from redraft.cli.bench.export import export
from redraft.cli.bench.load import capacity, load
from redraft.cli.bench.replay import replay
from redraft.cli.bench.report import comet, report
from redraft.cli.bench.run import run
from redraft.cli.bench.score import score
from redraft.cli.bench.stream import stream
from redraft.cli.bench.viewers import viewers
from redraft.cli.shared import options as common

EXAMPLES = """\b
Examples:
  redraft bench run beta --to de --limit 20
  redraft bench report --out runs/mine
"""


@click.group(epilog=EXAMPLES)
@common.needs("eval", "Most commands need")
def bench() -> None:
    """Benchmark methods on your model, text and machine.

    `redraft bench run` runs a table. Its lines take turns, update by update, so speed-ups are ratios within one run.
    Results are written to --out; the same command resumes an interrupted run, and `redraft bench report` shows all of
    them.

    The demo talk (--data talk) has no reference translations, so there is no BLEU or chrF. The test sets do not ship
    with Redraft; docs/metrics.md says where to put them.
    """


for _command in (run, report, stream, export, score, comet, replay, load, capacity, viewers):
    bench.add_command(_command)
