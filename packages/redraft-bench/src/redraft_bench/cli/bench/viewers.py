"""``redraft bench viewers``: options; `redraft_bench.loadtest` does the work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import click

from redraft.cli.shared import options as common
from redraft.errors import OptionError
from redraft_bench.cli.bench.folder import folder
from redraft_bench.cli.bench.load import need_serve, progress_of, show

EXAMPLES = """\b
Examples:
  redraft bench viewers --viewers 2000 --replicas 2
  redraft bench viewers --viewers 500 --replicas 0
  redraft bench viewers --to de --to zh --to ja --language de
"""


@click.command(epilog=EXAMPLES, short_help="Measure what viewers cost.")
@click.option("--viewers", type=common.Whole(1, 50_000), default=2000, help="Number of viewers.")
@click.option(
    "--replicas",
    type=common.Whole(0, 64),
    default=2,
    help="Servers for viewers; 0 uses the session's own, without Redis.",
)
@click.option("--seconds", type=common.Real(0, min_open=True), default=60.0, help="Length of the measurement.")
@click.option("--method", default="redraft", metavar="NAME", help="Decoding method of the session.")
@click.option("--rate", type=common.Real(0, min_open=True), default=2.5, help="Words per second of the talk.")
@click.option("--to", "-t", multiple=True, default=("de",), metavar="LANGUAGE", help="Target language; repeatable.")
@click.option(
    "--language",
    multiple=True,
    metavar="LANGUAGE",
    help="Target language that viewers ask for; repeatable.  [default: all]",
)
@common.model
@common.engine
@folder("Folder for the rows and the servers' logs.")
@common.as_json
@common.needs("serve")
def viewers(
    viewers: int,
    replicas: int,
    seconds: float,
    method: str,
    rate: float,
    to: tuple[str, ...],
    language: tuple[str, ...],
    model: str,
    engine: Mapping[str, float | str],
    out: Path,
    as_json: bool,
) -> None:
    """Let many viewers watch one talk, on servers for viewers that get its captions through Redis.

    This starts all servers and Redis; --replicas needs the package redraft-fanout. The exit status is 1 if a viewer
    misses a final caption, gets one twice, or gets them out of order. docs/metrics.md defines the figures.
    """
    need_serve()
    from redraft.captions.languages import parse_language
    from redraft_bench.bench.tables import VIEWERS
    from redraft_bench.loadtest.job import Job
    from redraft_bench.loadtest.script import open_script
    from redraft_bench.loadtest.viewers import Show, run

    languages = tuple(dict.fromkeys(parse_language(each).tag for each in to))
    wanted = tuple(dict.fromkeys(parse_language(each, "--language").tag for each in language))
    if unknown := [each for each in wanted if each not in languages]:
        raise OptionError(f"--language must be one of {', '.join(languages)}, as in --to, not {unknown[0]}")
    script = open_script("talk", languages[0], rate)
    job = Job("viewers", script, languages, {}, "", model, engine, {}, out, 0, {"seconds": seconds})
    plan = Show(viewers, replicas, seconds, languages=languages, method=method, wanted=wanted)
    with progress_of(f"{viewers} viewers", seconds) as passed:
        row = asyncio.run(run(job, plan, passed))
    show(job, [row], as_json, VIEWERS)
    names = {"not_connected": "viewers could not connect", "lost": "captions were lost", "doubled": "came twice"}
    names["disordered"] = "came in another order"
    wrong = [f"{row[name]} {words}" for name, words in names.items() if row[name]]
    if wrong:
        click.echo(f"redraft: {', '.join(wrong)}", err=True)
        raise click.exceptions.Exit(1)
