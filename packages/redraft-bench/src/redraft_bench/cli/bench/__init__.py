"""``redraft bench``: the group of benchmark commands."""

from __future__ import annotations

import click

from redraft_bench.cli.bench.compare import compare
from redraft_bench.cli.bench.load import capacity, load
from redraft_bench.cli.bench.report import report
from redraft_bench.cli.bench.run import run
from redraft_bench.cli.bench.viewers import viewers

EXAMPLES = """\b
Examples:
  redraft bench run trade --data acl6060.talks --to de --limit 20
  redraft bench report --out runs/mine
"""


@click.group(epilog=EXAMPLES)
def bench() -> None:
    """Benchmark methods on your model, text and machine.

    `redraft bench run` runs a table, whose lines take turns, update by update. The same command resumes an interrupted
    run, `redraft bench report` shows all runs in --out, and `redraft bench compare` the captions that differ. Test sets
    do not ship with Redraft; docs/metrics.md says where to put them.
    """


for _command in (run, report, compare, load, capacity, viewers):
    bench.add_command(_command)
