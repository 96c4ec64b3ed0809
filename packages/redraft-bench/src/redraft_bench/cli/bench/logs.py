"""``redraft bench export``: a run as the log of another program."""

from __future__ import annotations

from pathlib import Path

import click

from redraft.errors import OptionError

#: Programs whose log formats are supported.
_LOGS = ("simulstream", "omnisteval")


@click.command(short_help="Export a run for simulstream or OmniSTEval.")
@click.argument("records", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--line", required=True, help="Line of the table, such as 'ssbd beta=0.2, de'.")
@click.option("--format", type=click.Choice(_LOGS), default="simulstream", help="Program that reads the log.")
def export(records: Path, folder: Path, line: str, format: str) -> None:
    """Export one line of a run to FOLDER as the log of another program.

    RECORDS is a .records.jsonl file; its stream must be beside it. docs/metrics.md explains how to score the log.
    """
    from redraft_bench.eval import logs
    from redraft_bench.eval.record import read_records
    from redraft_bench.eval.stream import Stream

    found = list(read_records(records))
    chosen = [each for each in found if each.contender == line]
    if not chosen:
        names = "; ".join(dict.fromkeys(each.contender for each in found))
        raise OptionError(f"--line must be one of: {names}; not {line!r}")
    stream = Stream.load(records.with_name(records.name.replace(".records.jsonl", ".stream.jsonl")))
    language = line.rpartition(", ")[2]
    getattr(logs, f"write_{format}")(folder, chosen, stream, language)
    click.echo(f"{folder}: {len(chosen)} segments")
