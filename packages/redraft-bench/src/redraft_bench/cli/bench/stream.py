"""``redraft bench stream``: write the stream that a table runs on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from redraft.cli.shared import options as common
from redraft_bench.cli.bench.run import data, data_options, lag


@click.command(short_help="Write a stream to a file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@common.all_of([data, *data_options, lag])
@click.option("--to", "-t", default="de", metavar="LANGUAGE", help="Language of the references.")
def stream(file: Path, to: str, **given: Any) -> None:
    """Write a stream to FILE, for `redraft translate --input jsonl` or for --data of a table.

    References and positions in a recording go to a second file beside it.
    """
    from redraft.captions.languages import parse_language
    from redraft_bench.bench.data import open_stream

    written = open_stream(given.pop("data"), parse_language(to).tag, **given)
    written.save(file)
    click.echo(
        f"{file}: {len(written.segments)} segments, {len(written.updates)} updates, {written.name}@{written.hash}"
    )
