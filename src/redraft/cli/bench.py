"""``redraft bench``: its group, and the commands on what a run has left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from redraft.cli import bench_run
from redraft.cli import options as common
from redraft.cli.bench_load import capacity, load
from redraft.cli.bench_replay import replay
from redraft.cli.bench_score import score
from redraft.errors import OptionError

EXAMPLES = """\b
Examples:
  redraft bench run beta --to de --limit 20
  redraft bench report --out runs/mine
"""


@click.group(epilog=EXAMPLES)
def bench() -> None:
    """Benchmark methods on your model, text and machine. Needs the `eval` extra.

    `redraft bench run` runs a table. Its lines take turns, update by update, so speed-ups are ratios within one run.
    Results are written to --out; the same command resumes an interrupted run, and `redraft bench report` shows all of
    them.

    The demo talk (--data talk) has no reference translations, so there is no BLEU or chrF. The test sets do not ship
    with Redraft; docs/metrics.md says where to put them.
    """


bench.add_command(bench_run.run)


#: Programs whose logs a run can be written as.
_LOGS = ("simulstream", "simuleval", "omnisteval")


@bench.command("stream", short_help="Write a stream to a file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@common.all_of([bench_run.data, *bench_run.data_options, bench_run.lag])
@click.option("--to", "-t", default="de", metavar="LANGUAGE", help="Language of the references.")
def write_stream(file: Path, to: str, **given: Any) -> None:
    """Write a stream to FILE, for `redraft translate --input jsonl` or for --data of a table.

    References and positions in a recording go to a second file beside it.
    """
    from redraft.captions.languages import parse_language
    from redraft.measure.bench.data import open_stream

    stream = open_stream(given.pop("data"), parse_language(to).tag, **given)
    stream.save(file)
    click.echo(f"{file}: {len(stream.segments)} segments, {len(stream.updates)} updates, {stream.name}@{stream.hash}")


@bench.command(short_help="Export a run for simulstream, SimulEval or OmniSTEval.")
@click.argument("records", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--line", required=True, help="Line of the table, such as 'ssbd beta=0.2, de'.")
@click.option("--format", type=click.Choice(_LOGS), default="simulstream", help="Program that reads the log.")
def export(records: Path, folder: Path, line: str, format: str) -> None:
    """Export one line of a run to FOLDER as the log of another program.

    RECORDS is a .records.jsonl file; its stream must be beside it. docs/metrics.md explains how to score the log.
    """
    from redraft.measure.eval import logs
    from redraft.measure.eval.record import read_records
    from redraft.measure.eval.stream import Stream

    found = list(read_records(records))
    chosen = [each for each in found if each.contender == line]
    if not chosen:
        names = "; ".join(dict.fromkeys(each.contender for each in found))
        raise OptionError(f"--line must be one of: {names}; not {line!r}")
    stream = Stream.load(records.with_name(records.name.replace(".records.jsonl", ".stream.jsonl")))
    language = line.rpartition(", ")[2]
    getattr(logs, f"write_{format}")(folder, chosen, stream, language)
    click.echo(f"{folder}: {len(chosen)} segments")


finished = common.bench_folder("The folder of the runs.")


@bench.command(short_help="Add COMET to the rows of finished runs.")
@finished
@click.option(
    "--with",
    "model",
    default="Unbabel/wmt22-comet-da",
    metavar="NAME|FILE",
    help="COMET model: a name on the hub, or a checkpoint.",
)
def comet(out: Path, model: str) -> None:
    """Score the final translations of all runs in a folder with COMET, and update their page.

    The library (pip install unbabel-comet) needs older dependencies than the hf extra, so install it in a separate
    environment. The runs can come from another one.
    """
    from redraft.measure.bench.report import write
    from redraft.measure.bench.score import add_comet

    for path in add_comet(out, model):
        click.echo(path)
    click.echo(write(out))


@bench.command(short_help="Write the report of a folder of runs.")
@finished
def report(out: Path) -> None:
    """Write the report of a folder of runs, with all tables and plots."""
    from redraft.measure.bench.report import write

    click.echo(write(out))


for _command in (replay, load, capacity, score):
    bench.add_command(_command)
