"""``redraft bench compare``: the final captions in which two lines of finished runs differ."""

from __future__ import annotations

from pathlib import Path

import click

from redraft.cli.shared import options as common
from redraft_bench.cli.bench.folder import folder

EXAMPLES = """\b
Examples:
  redraft bench run quality --data talk --to de --line ar --line redraft
  redraft bench compare ar redraft
  redraft bench compare ar redraft --out runs/mine --limit 0
"""


@click.command(epilog=EXAMPLES, short_help="List the final captions in which two lines of runs differ.")
@click.argument("first")
@click.argument("second")
@folder("The folder of the runs.")
@click.option("--limit", type=common.Whole(0), default=20, help="Captions to list for each run; 0 lists all.")
@common.as_json
def compare(first: str, second: str, out: Path, limit: int, as_json: bool) -> None:
    """List the final captions in which two lines of finished runs differ, and compare their scores.

    FIRST and SECOND are lines of `redraft bench run`, such as "ar" and "redraft stop=0". Captions come in the order of
    the greatest difference of chrF, if there are references. The intervals of the differences are paired.
    """
    import json

    from redraft_bench.bench.compare import comparisons, printed

    found = comparisons(out, first, second)
    for each in found:
        if as_json:
            for row in each.rows():
                click.echo(json.dumps(row, ensure_ascii=False))
        else:
            click.echo(printed(each, limit))
