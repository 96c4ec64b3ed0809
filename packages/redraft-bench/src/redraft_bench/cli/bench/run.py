"""``redraft bench run`` and ``redraft bench stream``: options; `redraft_bench.bench.run` does the work."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redraft.cli.shared import options as common
from redraft.errors import OptionError
from redraft_bench.bench.tables import TABLES, Table
from redraft_bench.cli.bench.folder import folder

if TYPE_CHECKING:
    from redraft_bench.bench.run import Bench, BenchModels

#: Default data sets: the demo talk, or for the quality table a set with references.
TALK, REFERENCED = "talk", "flores200.devtest"

_TABLES = "".join(f"  {each.name:<7} {each.summary.partition(' (')[0].rstrip('.')}\n" for each in TABLES.values())
EXAMPLES = f"""\b
Tables:
{_TABLES}
\b
Examples:
  redraft bench run trade --data acl6060.talks --to de --limit 20
  redraft bench run ssbd --data my.jsonl --model my.gguf --to fr --out mine
  redraft bench run cold --data flores200.devtest --to de --to ja
"""

run_options = (
    click.option(
        "--data",
        default=TALK,
        metavar="NAME|FILE",
        help="talk, dickens, a test set such as flores200.devtest (docs/metrics.md), or a JSON Lines file.",
    ),
    click.option("--limit", type=common.Whole(0), default=100, help="Number of sentences; 0 for all."),
    click.option(
        "--least-words", type=common.Whole(0), default=0, help="Skip sentences of a test set with fewer words."
    ),
    click.option("--lag", type=common.Whole(0), default=3, help="Words added per update; 0 for whole sentences."),
    click.option("--to", "-t", multiple=True, default=("de",), metavar="LANGUAGE", help="Target language; repeatable."),
    common.model,
    click.option(
        "--draft-model",
        "small",
        metavar="MODEL",
        help="Small model that drafts.  [default: demo-tiny for demo]",
    ),
    click.option("--method", "methods", multiple=True, metavar="NAME", help="Run only ar and this method; repeatable."),
    folder("Folder for records, rows and the page."),
    common.threads,
    common.gpu_layers,
    common.exact,
    common.dtype,
    common.as_json,
)


@click.command(
    cls=common.Grouped,
    groups={
        "Data": ("data", "limit", "least_words", "lag", "to"),
        "Methods and models": ("methods", "model", "small"),
        "Engine": ("threads", "gpu_layers", "exact", "dtype"),
    },
    epilog=EXAMPLES,
    short_help="Run a table of methods on your model, text and machine.",
)
@click.argument("name", metavar="TABLE", type=click.Choice(list(TABLES)))
@common.all_of(run_options)
def run(
    name: str,
    as_json: bool,
    to: tuple[str, ...],
    out: Path,
    methods: tuple[str, ...],
    **given: Any,
) -> None:
    """Run TABLE and print its figures; a report with plots goes to --out.

    Tables of whole sentences use a --lag of 0 by default. quality uses flores200.devtest as --data, and leaves out the
    segments of test sets with up to three words, since models are trained on such turns.
    """
    from rich.console import Console

    from redraft.signature import print_json
    from redraft_bench.bench.results import finish
    from redraft_bench.eval.quality import quality
    from redraft_bench.eval.sets import SETS, TURN
    from redraft_bench.eval.table import print_table
    from redraft_bench.pages.report import write

    table = TABLES[name]
    if not common.is_given("lag"):
        given["lag"] = table.lag
    if name == "quality" and not common.is_given("data"):
        given["data"] = REFERENCED
    if name == "quality" and given["data"] in SETS and not common.is_given("least_words"):
        given["least_words"] = TURN + 1
    quality([""], [""], "en")  # fails before the run if a dependency is missing
    # Check languages, data and models before anything runs.
    jobs = [_bench(table, language, out, given=dict(given), methods=methods) for language in to]
    for job in jobs:
        show = partial(_progress, f"{name} {job.stream.name} {job.language}")
        rows, line = finish(job, job.run(show))
        if as_json:
            print_json(rows, line, sys.stdout)
        else:
            print_table(rows, line, Console(), table.columns)
    if not as_json:
        click.echo(f"report: {write(out)}")


def _bench(table: Table, language: str, out: Path, *, given: dict[str, Any], methods: Sequence[str]) -> Bench:
    """Make a run from a command's options; removes the stream's options from ``given`` and leaves the engine's."""
    from redraft.captions.languages import parse_language
    from redraft_bench.bench.data import open_stream, reveals
    from redraft_bench.bench.run import Bench

    tag = parse_language(language).tag
    data = given.pop("data")
    of_stream = {name: given.pop(name) for name in ("limit", "least_words", "lag")}
    if common.is_given("lag") and not reveals(data):
        raise OptionError(f"--lag: {data!r} has updates of its own, so leave it out")
    facts = {"lag": of_stream["lag"]} if reveals(data) else {}
    if of_stream["least_words"]:
        facts["least_words"] = of_stream["least_words"]
    stream, engine = open_stream(data, tag, **of_stream), _engine(**given)
    return Bench(_only(table, methods, tag, engine.smalls), stream, tag, engine, out, facts)


def _only(table: Table, methods: Sequence[str], language: str, smalls: Sequence[str]) -> Table:
    """Keep only some methods and the baseline; name the lines that lack a draft model."""
    known = [*dict.fromkeys(each.method for each in table.contenders(language, smalls or ("a small model",)))]
    there = {each.method for each in table.contenders(language, smalls)}
    for method in methods:
        if method not in known:
            raise OptionError(f"--method must be one of {', '.join(known)}, not {method!r}")
    wanted = {"ar", *(methods or known)}
    missing = [method for method in known if method in wanted - there]
    if missing and (methods or there == {"ar"}):
        raise OptionError(
            f"{', '.join(missing)}: a small model of the same vocabulary is needed: name it with --draft-model"
        )
    if missing:
        click.echo(
            f"redraft: {', '.join(missing)} left out, since no small model is named with --draft-model", err=True
        )
    return replace(
        table, contenders=lambda to, smalls: [each for each in table.contenders(to, smalls) if each.method in wanted]
    )


def _engine(
    *, model: str, small: str | None, threads: int, gpu_layers: int, exact: bool, dtype: str | None
) -> BenchModels:
    from redraft.backends.llamacpp import LlamaOptions
    from redraft.models import SMALL_OF
    from redraft_bench.bench.run import BenchModels

    known = (SMALL_OF[model],) if model in SMALL_OF else ()
    options = LlamaOptions(context_length=1024, threads=threads, gpu_layers=gpu_layers, exact=exact)
    return BenchModels(model, (small,) if small else known, options, dtype)


def _progress(title: str, segments: Sequence[int]) -> Iterable[int]:
    from rich.console import Console
    from rich.progress import track

    return track(segments, title, console=Console(stderr=True))
