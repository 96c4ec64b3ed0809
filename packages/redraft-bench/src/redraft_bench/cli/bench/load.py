"""``redraft bench load`` and ``redraft bench capacity``: options; `redraft_bench.loadtest` does the work."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import click

from redraft.cli.shared import options as common
from redraft.errors import OptionError, from_extra
from redraft_bench.bench.tables import LIVE
from redraft_bench.cli.bench.folder import folder

if TYPE_CHECKING:
    from redraft.decoding.method import Value
    from redraft_bench.eval.figures import Row
    from redraft_bench.loadtest.crowd import Outcome, Plan
    from redraft_bench.loadtest.job import Job

LOAD_EXAMPLES = """\b
Examples:
  redraft bench load --talks 8 --minutes 1
  redraft bench load --talks 16 --no-admission --max-p95 2
  redraft bench load --talks 4 --minutes 20 --talk-minutes 2 --max-slope 1
"""
CAPACITY_EXAMPLES = """\b
Examples:
  redraft bench capacity --engine threads=1
  redraft bench capacity --method ar --set engines=1 --first 16
"""

#: Options for starting a server.
_OF_THE_SERVER = {"model": "--model", "engine": "--engine", "settings": "--set", "admission": "--no-admission"}

shared = common.all_of(
    (
        common.heading("Talks"),
        common.option,
        click.option(
            "--to",
            "-t",
            multiple=True,
            default=("de",),
            metavar="LANGUAGE",
            help="Target language; repeatable, divided among the talks.",
        ),
        click.option(
            "--data",
            default="talk",
            metavar="NAME|FILE",
            help="Text to speak, as in `redraft bench run`.",
        ),
        click.option("--rate", type=common.Real(0, min_open=True), default=2.5, help="Words per second of a talk."),
        common.heading("Schedule"),
        click.option("--stagger", type=common.Real(0), default=10.0, help="Seconds over which the starts are spread."),
        click.option("--warm-up", type=common.Real(0), default=5.0, help="Seconds after that until captions count."),
        click.option("--seed", type=common.Whole(0), default=0, help="Random seed."),
        common.heading("Server"),
        click.option("--server", metavar="URL", help="Address of a running server.  [default: start one]"),
        common.model,
        common.engine,
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="Setting of the server; repeatable.",
        ),
    )
)

output = folder("Folder for the rows and the server's log.")


@click.command(
    cls=common.Grouped,
    epilog=LOAD_EXAMPLES,
    short_help="Load a server with many talks: lag, refusals, memory.",
)
@common.heading("Talks")
@click.option("--talks", type=common.Whole(1, 5000), required=True, help="Number of simultaneous talks.")
@click.option(
    "--method", "methods", multiple=True, default=("redraft",), metavar="NAME", help="Method; repeatable, one run each."
)
@click.option("--minutes", type=common.Real(0, min_open=True), default=1.0, help="Length of a run.")
@click.option(
    "--talk-minutes",
    type=common.Real(0),
    default=0.0,
    help="Length of a talk, then another begins; 0 for the whole run.",
)
@shared
@click.option("--admission/--no-admission", default=True, help="Let the server refuse talks beyond its capacity.")
@common.heading("Limits")
@click.option("--max-p95", type=common.Real(0), help="Fail if p95 of the caption lag exceeds this (s).")
@click.option("--max-slope", type=common.Real(0), help="Fail if the server's memory grows faster (MB/min).")
@common.heading("Options")
@output
@common.as_json
@common.needs("serve")
def load(
    talks: int,
    methods: tuple[str, ...],
    minutes: float,
    talk_minutes: float,
    admission: bool,
    max_p95: float | None,
    max_slope: float | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Load a server with many simultaneous talks, each in its own session.

    The exit status is 1 if a limit is exceeded, a session ends early, an update is not answered, or the server still
    holds sessions, lanes or slots at the end. docs/metrics.md defines the figures.
    """
    need_serve()
    from redraft_bench.loadtest import runs
    from redraft_bench.loadtest.figures import beyond

    job, plans = _prepared("load", methods, talks, 60 * minutes, given, talk_seconds=60 * talk_minutes)
    rows = [asyncio.run(runs.load(job, plan, admission=admission, progress=_progress, tell=_tell)) for plan in plans]
    show(job, rows, as_json, LIVE)
    broken = [f"{row['method']}: {sentence}" for row in rows for sentence in beyond(row, max_p95, max_slope)]
    for sentence in broken:
        click.echo(f"redraft: {sentence}", err=True)
    if broken:
        raise click.exceptions.Exit(1)


@click.command(cls=common.Grouped, epilog=CAPACITY_EXAMPLES, short_help="Find out how many talks a server handles.")
@common.heading("Talks")
@click.option(
    "--method",
    "methods",
    multiple=True,
    default=("ar", "ssbd", "redraft"),
    metavar="NAME",
    help="Method; repeatable, one search each.",
)
@click.option("--seconds", type=common.Real(0, min_open=True), default=45.0, help="Length of a trial.")
@click.option("--first", type=common.Whole(1, 5000), default=1, help="Number of talks to try first.")
@click.option("--most", type=common.Whole(1, 5000), default=512, help="Highest number of talks to try.")
@shared
@common.heading("Limits")
@click.option(
    "--max-p95", type=common.Real(0, min_open=True), default=1.0, help="Highest acceptable p95 of the caption lag (s)."
)
@common.heading("Options")
@output
@common.as_json
@common.needs("serve")
def capacity(
    methods: tuple[str, ...],
    seconds: float,
    max_p95: float,
    first: int,
    most: int,
    as_json: bool,
    **given: Any,
) -> None:
    """Find out how many talks a server can handle, by doubling and then bisecting.

    A server handles a number of talks if p95 of the caption lag stays within --max-p95, no session ends early, and
    every update is answered.
    """
    need_serve()
    from redraft_bench.loadtest import runs

    job, plans = _prepared("capacity", methods, 1, seconds, given, max_p95=max_p95)
    found = [
        asyncio.run(runs.capacity(job, plan, first, most, max_p95, progress=_progress, tell=_tell)) for plan in plans
    ]
    show(job, found, as_json, LIVE)


def need_serve() -> None:
    """Check that the extra `serve` is installed."""
    with from_extra("serve", "a load test needs"):
        import redraft_bench.loadtest.process  # noqa: F401


def _prepared(
    bench: str, methods: tuple[str, ...], talks: int, seconds: float, given: dict[str, Any], **facts: float
) -> tuple[Job, list[Plan]]:
    """Return the load test and a plan for each method; checks everything before anything runs."""
    from redraft.captions.languages import parse_language
    from redraft_bench.loadtest.crowd import Plan
    from redraft_bench.loadtest.job import Job
    from redraft_bench.loadtest.process import parse_settings
    from redraft_bench.loadtest.script import open_script

    _leave_to_the_server(given["server"])
    stagger, warm_up = given["stagger"], given["warm_up"]
    if seconds <= stagger + warm_up:
        raise OptionError(
            f"a run must last over {stagger + warm_up:g} seconds, --stagger and --warm-up, not {seconds:g}"
        )
    languages = tuple(dict.fromkeys(parse_language(each).tag for each in given["to"]))
    options: dict[str, Value] = {}
    for method in methods:
        options = common.method_options(method, given["option"])
    job = Job(
        bench,
        open_script(given["data"], languages[0], given["rate"]),
        languages,
        options,
        given["server"] or "",
        given["model"],
        given["engine"],
        parse_settings(given["settings"]),
        given["out"],
        given["seed"],
        {"seconds": seconds, "stagger": stagger, "warm_up": warm_up, **facts},
    )
    shared = (stagger, warm_up, facts.get("talk_seconds", 0.0), given["seed"])
    return job, [Plan(talks, seconds, languages, method, options, *shared) for method in methods]


def _leave_to_the_server(server: str | None) -> None:
    """Raise an error for options that only apply to a server started here."""
    given = common.given()
    wrong = [word for name, word in _OF_THE_SERVER.items() if name in given]
    if server is not None and wrong:
        raise OptionError(f"{', '.join(wrong)} cannot be combined with --server, which decides this itself")


def _tell(outcome: Outcome) -> None:
    """Print why sessions were refused or ended early: one sentence per kind."""
    for what, errors in (("refused", outcome.refused), ("broken off", outcome.broken)):
        for code, sentence in {error.code: str(error) for error in errors}.items():
            number = sum(error.code == code for error in errors)
            click.echo(f"redraft: {number} sessions {what} ({code}), such as: {sentence}", err=True)


def show(job: Job, rows: list[Row], as_json: bool, columns: Sequence[str]) -> None:
    """Print rows: these columns, or all fields as JSON."""
    from rich.console import Console

    from redraft.signature import print_json
    from redraft_bench.eval.table import print_table

    if as_json:
        print_json(rows, job.signature, sys.stdout)
    else:
        print_table(rows, job.signature, Console(), columns)


def _progress(plan: Plan) -> AbstractContextManager[Callable[[float], None]]:
    return progress_of(f"{plan.method}, {plan.talks} talks", plan.seconds)


@contextmanager
def progress_of(what: str, seconds: float) -> Iterator[Callable[[float], None]]:
    """Show a progress bar; the function that it yields is called with the seconds elapsed."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=seconds)
        yield lambda passed: bar.update(task, completed=min(passed, seconds))
