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

_TABLES = "".join(f"  {each.name:<8} {each.summary.partition(' (')[0].rstrip('.')}\n" for each in TABLES.values())
EXAMPLES = f"""\b
Tables:
{_TABLES}
\b
Examples:
  redraft bench run trade --data acl6060.talks --to de --limit 20
  redraft bench run ssbd --data my-talk.jsonl --model my-model.gguf --to fr --out runs/mine
  redraft bench run cold --data flores200.devtest --to de --to ja
"""

data = click.option(
    "--data",
    default=TALK,
    metavar="NAME|FILE",
    help="talk, dickens, a test set such as flores200.devtest (docs/metrics.md), or a JSON Lines file.",
)
data_options = (
    click.option(
        "--input",
        "-i",
        "form",
        type=click.Choice(("jsonl", "simulstreaming")),
        default="jsonl",
        help="Format of your own file.",
    ),
    click.option("--limit", type=common.Whole(0), default=100, help="Number of sentences; 0 for all."),
    click.option(
        "--least-words", type=common.Whole(0), default=0, help="Skip sentences of a test set with fewer words."
    ),
    click.option("--noise", is_flag=True, help="Simulate recognition errors in the newest words."),
    click.option(
        "--revisions",
        type=common.Real(0, 0.9),
        default=0.0,
        help="Share of updates that rewrite earlier text; 0.55 is typical of a recogniser.",
    ),
    click.option(
        "--seed",
        type=common.Whole(0),
        default=0,
        help="Random seed.",
    ),
)
lag = click.option("--lag", type=common.Whole(0), default=3, help="Words added per update; 0 for whole sentences.")
run_options = (
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
    click.option("--hold-back", is_flag=True, help=common.HOLD_BACK),
    common.as_json,
)


@click.command(
    cls=common.Grouped,
    groups={
        "Data": ("data", "form", "limit", "least_words", "noise", "revisions", "seed", "lag", "to"),
        "Methods and models": ("methods", "model", "small"),
        "Engine": ("threads", "gpu_layers", "exact", "dtype"),
    },
    epilog=EXAMPLES,
    short_help="Run a table of methods on your model, text and machine.",
)
@click.argument("name", metavar="TABLE", type=click.Choice(list(TABLES)))
@common.all_of([data, *data_options, lag, *run_options])
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
    from redraft_bench.bench.report import write
    from redraft_bench.bench.results import finish
    from redraft_bench.eval.quality import quality
    from redraft_bench.eval.sets import SETS, TURN
    from redraft_bench.eval.table import print_table

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
        rows, line = finish(job, job.run(show), given["seed"])
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
    hold_back = given.pop("hold_back")
    of_stream = {
        name: given.pop(name) for name in ("form", "limit", "least_words", "lag", "noise", "revisions", "seed")
    }
    data = given.pop("data")
    facts: dict[str, object] = {
        name: of_stream[name] for name in ("lag", "least_words") if of_stream[name] or name == "lag"
    }
    if not reveals(data):
        if common.is_given("lag"):
            raise OptionError(f"--lag: {data!r} has updates of its own, so leave it out")
        facts.pop("lag")
    if table.recognised and hold_back:
        raise OptionError(f"--hold-back: the table {table.name} has lines with and without it, so leave it out")
    if hold_back:
        facts["hold_back"] = True
    stream, engine = open_stream(data, tag, **of_stream), _engine(**given)
    chosen = _only(table, methods, tag, engine.smalls)
    if hold_back:
        chosen = _holding_back(chosen)
    return Bench(chosen, stream, tag, engine, out, facts)


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


def _holding_back(table: Table) -> Table:
    return replace(
        table, contenders=lambda to, smalls: [replace(each, hold_back=True) for each in table.contenders(to, smalls)]
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
