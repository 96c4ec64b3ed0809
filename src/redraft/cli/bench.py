"""``redraft bench``: a command for every table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redraft.cli import options as common
from redraft.cli.bench_load import capacity, load
from redraft.cli.bench_replay import replay
from redraft.cli.bench_score import score
from redraft.errors import OptionError
from redraft.measure.bench.tables import TABLES, Table

if TYPE_CHECKING:
    from redraft.measure.bench.run import Bench, Engine

EXAMPLES = """\b
Examples:
  redraft bench beta --to de --limit 20
  redraft bench ssbd --data my-talk.jsonl --model ~/models/some-model.gguf --to fr --out runs/mine
  redraft bench cold --data flores200.devtest --to de --to ja
  redraft bench report --out runs/mine
"""

SETS = "flores200.devtest, acl6060.dev, mexpresso, tatoeba2021, wmt20chat.test"
TALKS = "acl6060.talks (word by word in time), recogniser (a real recogniser's output)"
#: What is measured unless told otherwise: the talk that ships, or for the bench of quality a set with references.
TALK, REFERENCED = "talk", "flores200.devtest"


@click.group(epilog=EXAMPLES, short_help="Measure: the papers' tables, other libraries, the limit.")
def bench() -> None:
    """Measure methods on your model, your text and your machine. Needs the `eval` extra.

    The lines of a table take turns, update by update, so that speed-ups are ratios within one run. Everything is
    written to --out: the same command resumes a run that was cut off, and `redraft bench report` shows them all.

    The demo's talk (--data talk) has no reference translations, so there is no BLEU or chrF. The test sets do not ship:
    docs/metrics.md says where to put them.
    """


def _data(default: str) -> Callable[[Any], Any]:
    text = f"talk, the demo's; a test set: {SETS}; {TALKS}; or a JSON Lines file of your own (docs/streams.md)."
    return click.option("--data", default=default, metavar="NAME|FILE", help=text)


data_options = (
    click.option(
        "--input",
        "-i",
        "form",
        type=click.Choice(("jsonl", "simulstreaming")),
        default="jsonl",
        help="Form of a stream of your own.",
    ),
    click.option("--limit", type=common.Whole(0), default=100, help="Sentences to take; 0 takes all."),
    click.option(
        "--least-words", type=common.Whole(0), default=0, help="Leave out sentences of a test set with fewer words."
    ),
    click.option("--noise", is_flag=True, help="Mishear the newest words at first, as a recogniser does."),
    click.option(
        "--revisions",
        type=common.Real(0, 0.9),
        default=0.0,
        help="Share of updates that rewrite what was heard, as a recogniser does that sends its whole unfinished tail; "
        "0.55 is one such.",
    ),
    click.option(
        "--seed",
        type=common.Whole(0),
        default=0,
        help="Random seed of noise and revisions, and of the confidence intervals.",
    ),
)
run_options = (
    click.option(
        "--to", "-t", multiple=True, default=("de",), metavar="LANGUAGE", help="Target language; repeat for several."
    ),
    common.model,
    click.option(
        "--draft-model",
        "small",
        multiple=True,
        metavar="MODEL",
        help="Small model, for methods that draft with one; `bench bild` takes several.  [default: demo-tiny for "
        "demo, else none]",
    ),
    click.option(
        "--method", "methods", multiple=True, metavar="NAME", help="Only ar and the lines of these methods; repeat."
    ),
    common.bench_folder("Folder for records, rows and the page."),
    common.threads,
    common.gpu_layers,
    common.exact,
    common.dtype,
    common.as_json,
)
drafts = click.option("--drafts", required=True, metavar="MODEL", help="The model that makes the draft translations.")


def _lag(words: int) -> Callable[[Any], Any]:
    return click.option(
        "--lag", type=common.Whole(0), default=words, help="Words added per update; 0 gives whole sentences."
    )


def _command(table: Table) -> click.Command:
    @bench.command(table.name, help=table.summary, short_help=table.summary.partition(" (")[0])
    @common.all_of(
        [
            _data(REFERENCED if table.name == "quality" else TALK),
            *data_options,
            _lag(table.lag),
            *run_options,
            *([drafts] if table.postedit else []),
        ]
    )
    def command(
        as_json: bool,
        to: tuple[str, ...],
        out: Path,
        methods: tuple[str, ...],
        drafts: str | None = None,
        **given: Any,
    ) -> None:
        from rich.console import Console

        from redraft.measure.bench.report import write
        from redraft.measure.bench.results import finish
        from redraft.measure.eval.quality import quality
        from redraft.measure.eval.table import print_json, print_table

        quality([""], [""], "en")  # what is missing is to be said before the run
        # Languages, data and models are looked at before anything runs.
        jobs = [_bench(table, language, out, given=dict(given), methods=methods, drafts=drafts) for language in to]
        for job in jobs:
            show = partial(_progress, f"{table.name} {job.stream.name} {job.language}")
            rows, line = finish(job, job.run(show), given["seed"])
            if as_json:
                print_json(rows, line, sys.stdout)
            else:
                print_table(rows, line, Console(), table.columns)
        if not as_json:
            click.echo(f"report: {write(out)}")

    return command


for _table in TABLES.values():
    _command(_table)


#: Programs whose logs a run can be written as.
_LOGS = ("simulstream", "simuleval", "omnisteval")


@bench.command("stream", short_help="Write a stream to a file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@common.all_of([_data(TALK), *data_options, _lag(3)])
@click.option("--to", "-t", default="de", metavar="LANGUAGE", help="Language of the references.")
def write_stream(file: Path, to: str, **given: Any) -> None:
    """Write a stream to FILE, for `redraft translate --input jsonl` or for --data of another bench.

    References and places in a recording go to a second file beside it.
    """
    from redraft.captions.languages import parse_language
    from redraft.measure.bench.data import open_stream

    stream = open_stream(given.pop("data"), parse_language(to).tag, **given)
    stream.save(file)
    click.echo(f"{file}: {len(stream.segments)} segments, {len(stream.updates)} updates, {stream.name}@{stream.hash}")


@bench.command(short_help="Write a run's log for the scorers of simulstream, SimulEval or OmniSTEval.")
@click.argument("records", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--line", required=True, help="Line of the table, such as 'ssbd beta=0.2, de'.")
@click.option("--format", type=click.Choice(_LOGS), default="simulstream", help="Program that reads the log.")
def export(records: Path, folder: Path, line: str, format: str) -> None:
    """Write one line of a run, RECORDS, into FOLDER as another program's log.

    RECORDS is a .records.jsonl file; the stream beside it is read as well. docs/metrics.md says how to score the log.
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
    help="COMET's model: a name on the hub, or a checkpoint.",
)
def comet(out: Path, model: str) -> None:
    """Score the final translations of all runs in a folder with COMET, and make their page anew.

    The library (pip install unbabel-comet) asks for older releases than the hf extra, so it is best installed into an
    environment of its own; the runs need not have been made there.
    """
    from redraft.measure.bench.report import write
    from redraft.measure.bench.score import add_comet

    for path in add_comet(out, model):
        click.echo(path)
    click.echo(write(out))


@bench.command(short_help="Make the page of a folder of runs.")
@finished
def report(out: Path) -> None:
    """Make the page with all tables and plots of a folder of runs."""
    from redraft.measure.bench.report import write

    click.echo(write(out))


for _command_apart in (replay, load, capacity, score):
    bench.add_command(_command_apart)


def _bench(
    table: Table, language: str, out: Path, *, given: dict[str, Any], methods: Sequence[str], drafts: str | None
) -> Bench:
    """The bench of a command's options: those of the stream, and those of the engine, which are left in ``given``."""
    from redraft.captions.languages import parse_language
    from redraft.measure.bench.data import open_stream, reveals
    from redraft.measure.bench.drafts import translations
    from redraft.measure.bench.run import Bench

    tag = parse_language(language).tag
    of_stream = {
        name: given.pop(name) for name in ("form", "limit", "least_words", "lag", "noise", "revisions", "seed")
    }
    data = given.pop("data")
    facts = {name: of_stream[name] for name in ("lag", "least_words") if of_stream[name] or name == "lag"}
    if not reveals(data):
        if common.is_given("lag"):
            raise OptionError(f"--lag: {data!r} has updates of its own, so leave it out")
        facts.pop("lag")
    stream, engine = open_stream(data, tag, **of_stream), _engine(**given)
    job = Bench(_only(table, methods, tag, engine.smalls), stream, tag, engine, out, (), facts)
    if drafts is None:
        return job
    made = translations(drafts, stream, tag, job.engine.options)
    return replace(job, drafts=made, extra={**facts, "drafts": drafts})


def _only(table: Table, methods: Sequence[str], language: str, smalls: Sequence[str]) -> Table:
    """The lines of some methods, and the baseline; says which lines are missing for want of a small model."""
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
    *, model: str, small: tuple[str, ...], threads: int, gpu_layers: int, exact: bool, dtype: str | None
) -> Engine:
    from redraft.backends.llamacpp import LlamaOptions
    from redraft.measure.bench.run import Engine
    from redraft.models import SMALL_OF

    known = (SMALL_OF[model],) if model in SMALL_OF else ()
    options = LlamaOptions(context_length=1024, threads=threads, gpu_layers=gpu_layers, exact=exact)
    return Engine(model, small or known, options, dtype)


def _progress(title: str, segments: Sequence[int]) -> Iterable[int]:
    from rich.console import Console
    from rich.progress import track

    return track(segments, title, console=Console(stderr=True))
