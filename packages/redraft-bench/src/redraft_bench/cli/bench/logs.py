"""``redraft bench score`` and ``redraft bench export``: logs of other systems, and in their formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from redraft.cli.shared.options import as_json
from redraft.errors import OptionError

_FILE = click.Path(dir_okay=False, path_type=Path)


EXAMPLE = """\b
Example:
  redraft bench score instances.log --to de --references references.txt
"""


@click.command(short_help="Score another system's log.", epilog=EXAMPLE)
@click.argument("log", type=_FILE)
@click.option("--to", "-t", required=True, metavar="LANGUAGE", help="Language of the translations.")
@click.option("--references", type=_FILE, metavar="FILE", help="References, one per line.  [default: those in the log]")
@click.option("--segments", type=_FILE, metavar="FILE", help="Segments of the recordings (wav, offset, duration).")
@as_json
def score(log: Path, to: str, references: Path | None, segments: Path | None, as_json: bool) -> None:
    """Score LOG: the instances.log of SimulEval or OmniSTEval, or simulstream's metrics.jsonl.

    With --segments and --references, each line of instances.log is a whole recording, and OmniSTEval reports LongYAAL
    (extra `omnisteval`).
    """
    import json

    from redraft.captions.languages import parse_language
    from redraft_bench.eval.long_yaal import score_log
    from redraft_bench.eval.quality import quality
    from redraft_bench.eval.read_logs import read_log, read_text
    from redraft_bench.eval.timing import latency_figures

    lines = None if references is None else read_text(references).splitlines()
    if segments is not None and references is None:
        raise OptionError("--segments needs --references, a line for each segment")
    records, stream = read_log(log, to, lines if segments is None else None)
    code = parse_language(to).code
    row: dict[str, Any] = {"log": log.name, "target_language": to, "segments": len(records)}
    if segments is not None and references is not None:
        found = score_log(log, segments, references, to)
        row |= {"bleu": found.bleu, "chrf": found.chrf, "long_yaal": found.ideal}
        row["long_yaal_ca"] = found.computation_aware
    elif all(code in segment.references for segment in stream.segments):
        reference = [segment.references[code] for segment in stream.segments]
        scores = quality([record.translation for record in records], reference, code)
        row |= {"bleu": round(scores.bleu, 4), "chrf": round(scores.chrf, 4)}
    row |= latency_figures(records, stream, to)
    if as_json:
        click.echo(json.dumps(row))
        return
    width = max(map(len, row))
    for name, value in row.items():
        if value is not None:
            click.echo(f"{name:{width}}  {value}")


#: Programs whose log formats are supported.
_LOGS = ("simulstream", "simuleval", "omnisteval")


@click.command(short_help="Export a run for simulstream, SimulEval or OmniSTEval.")
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
