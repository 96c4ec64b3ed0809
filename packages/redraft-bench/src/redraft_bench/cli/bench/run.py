"""``redraft bench run`` and ``redraft bench stream``: options; `redraft_bench.bench.run` does the work."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import indent, wrap
from typing import TYPE_CHECKING, Any

import click

from redraft.cli.shared import options as common
from redraft.cli.shared.captioning import prompt, template
from redraft.errors import OptionError
from redraft.signature import text_hash
from redraft_bench.bench.lines import GENERAL
from redraft_bench.bench.tables import OWN, TABLES, Table
from redraft_bench.cli.bench.folder import folder

if TYPE_CHECKING:
    from redraft_bench.bench.run import Bench, BenchModels

_TABLES = "".join(f"  {name:<7} {TABLES[name].summary.partition(' (')[0].rstrip('.')}\n" for name in OWN)
#: Tables and figures of papers, in lines that fit a terminal.
_PAPERS = "".join(
    f"{line}\n" for line in wrap(", ".join(name for name in TABLES if name not in OWN), 76, break_on_hyphens=False)
)
EXAMPLES = f"""\b
Tables:
{_TABLES}
\b
Tables and figures of papers (docs/papers.md):
{indent(_PAPERS, "  ")}
\b
Examples:
  redraft bench run trade --data acl6060.talks --to de --limit 20
  redraft bench run ssbd --data my.tsv --model my.gguf --from de --to fr
  redraft bench run ssbd --line "ssbd beta=0,0.2,0.5 mask_k=0,3 plain=0,1"
  redraft bench run cold --line "my-plug-in window=2,4,8" --line pld
"""

run_options = (
    common.heading("Data"),
    click.option(
        "--data",
        metavar="NAME|FILE",
        help="talk, dickens, a test set such as flores200.devtest, or a file: docs/metrics.md.  [default: the table's]",
    ),
    click.option("--limit", type=common.Whole(0), default=100, help="Number of sentences; 0 for all."),
    click.option(
        "--least-words", type=common.Whole(0), default=0, help="Skip sentences of a test set with fewer words."
    ),
    click.option("--lag", type=common.Whole(0), default=3, help="Words added per update; 0 for whole sentences."),
    click.option("--to", "-t", multiple=True, default=("de",), metavar="LANGUAGE", help="Target language; repeatable."),
    click.option("--from", "source_language", default="en", metavar="LANGUAGE", help="Language of the source."),
    common.heading("Methods and models"),
    click.option(
        "--line",
        "lines",
        multiple=True,
        metavar='"METHOD NAME=VALUE,..."',
        help="A line instead of the table's; values with commas between are a line each; repeatable. "
        f"Settings: options of the method, and {', '.join(GENERAL)}.",
    ),
    common.model,
    click.option(
        "--draft-model",
        "small",
        metavar="MODEL",
        help="Small model that drafts.  [default: demo-tiny for demo]",
    ),
    click.option("--method", "methods", multiple=True, metavar="NAME", help="Run only ar and this method; repeatable."),
    template,
    prompt,
    common.engine,
    common.heading("Options"),
    folder("Folder for records, rows and the page."),
    common.as_json,
)


@click.command(
    cls=common.Grouped,
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
    lines: tuple[str, ...],
    **given: Any,
) -> None:
    """Run TABLE and print its figures; a report goes to --out, with a plot if lines differ by more than the method.

    Tables of whole sentences use a --lag of 0 by default. quality uses flores200.devtest as --data, and leaves out the
    segments of test sets with up to three words, since models are trained on such turns. Sources, translations and
    references go to --out too, as text files with one segment per line, for metrics such as COMET.
    """
    from rich.console import Console

    from redraft.signature import print_json
    from redraft_bench.bench.results import finish
    from redraft_bench.eval.quality import quality
    from redraft_bench.eval.sets import SETS, TURN
    from redraft_bench.eval.table import print_table
    from redraft_bench.pages.report import write

    table = _chosen(TABLES[name], lines, methods)
    if "lag" not in common.given():
        given["lag"] = table.lag
    given["data"] = given["data"] or table.data
    if name == "quality" and given["data"] in SETS and "least_words" not in common.given():
        given["least_words"] = TURN + 1
    quality([""], [""], "en")  # fails before the run if a dependency is missing
    # Check languages, data and models before anything runs.
    jobs = [_bench(table, language, out, given=dict(given)) for language in to]
    for job in jobs:
        _leave_out(job, bool(lines or methods))
    for job in jobs:
        show = partial(_progress, f"{name} {job.stream.name} {job.language}")
        rows, line = finish(job, job.run(show))
        if as_json:
            print_json(rows, line, sys.stdout)
        else:
            print_table(rows, line, Console(), table.columns)
    if not as_json:
        click.echo(f"report: {write(out)}")


def _chosen(table: Table, lines: Sequence[str], methods: Sequence[str]) -> Table:
    """Return the table with other lines, or with those of some methods only; `ar` comes first.

    A method that the table lacks, such as that of a plug-in, has a line without settings.
    """
    from redraft.decoding.methods import get_method
    from redraft_bench.bench.peers import PEERS

    chosen = [*(lines or table.lines)]
    if methods:
        for method in methods:
            if method not in PEERS:
                get_method(method)  # fails if there is none
        wanted = [line for line in chosen if line.split()[0] in ("ar", *methods)]
        there = {line.split()[0] for line in wanted}
        chosen = [*wanted, *(method for method in methods if method not in there)]
    if not any(line.split()[:1] == ["ar"] for line in chosen):
        chosen.insert(0, "ar")
    return replace(table, lines=tuple(chosen))


def _bench(table: Table, language: str, out: Path, *, given: dict[str, Any]) -> Bench:
    """Make a run from a command's options; removes the stream's options from ``given`` and leaves the engine's."""
    from redraft.captions.languages import parse_language
    from redraft.captions.prompt import prompt_file
    from redraft.captions.style import Style
    from redraft_bench.bench.data import open_stream, reveals, tasks_of
    from redraft_bench.bench.run import Bench

    tag = parse_language(language).tag
    data, source, own = given.pop("data"), given.pop("source_language"), given.pop("prompt")
    style = Style(source, given.pop("template"), own and prompt_file(own))
    of_stream = {name: given.pop(name) for name in ("limit", "least_words", "lag")}
    if "lag" in common.given() and not reveals(data):
        raise OptionError(f"--lag: {data!r} has updates of its own, so leave it out")
    facts: dict[str, object] = {"lag": of_stream["lag"]} if reveals(data) else {}
    facts |= {"least_words": of_stream["least_words"]} if of_stream["least_words"] else {}
    facts |= {"from": source} if source != "en" else {}
    facts |= {"template": style.template} if style.template else {}
    facts |= {"prompt": text_hash(style.prompt)} if style.prompt else {}
    stream = open_stream(data, tag, source=source, **of_stream)
    return Bench(table, stream, tag, _models(**given), out, facts, style, tasks_of(data, of_stream["limit"]))


def _leave_out(bench: Bench, chosen: bool) -> None:
    """Name the lines that the models cannot run on standard error.

    Raises:
        CapabilityError: no line but `ar` is left of those that the user chose.
    """
    from redraft.errors import CapabilityError

    bench.leave_out()
    if chosen and bench.left_out and {each.method for each in bench.contenders} <= {"ar"}:
        raise CapabilityError("; ".join(dict.fromkeys(bench.left_out.values())))
    for name, why in bench.left_out.items():
        click.echo(f"redraft: left out: {name}: {why}", err=True)


def _models(*, model: str, small: str | None, engine: Mapping[str, float | str]) -> BenchModels:
    from redraft.models import SMALL_OF
    from redraft_bench.bench.run import BenchModels

    known = (SMALL_OF[model],) if model in SMALL_OF else ()
    return BenchModels(model, (small,) if small else known, {"context_length": 1024, **engine})


def _progress(title: str, segments: Sequence[int]) -> Iterable[int]:
    from rich.console import Console
    from rich.progress import track

    return track(segments, title, console=Console(stderr=True))
