"""``redraft bench replay``: options; `redraft_bench.bench.replay` does the work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from redraft.backends.hf.options import DEVICES, DTYPES, HfOptions
from redraft.cli.shared import options as common
from redraft.errors import MissingExtra, OptionError, install
from redraft_bench.models.shape import SHAPES

if TYPE_CHECKING:
    from redraft.decoding.backend import Backend

EXAMPLES = """\b
Examples:
  redraft bench shape --like qwen3-4b --format Q4_K_M --out qwen3-4b-shape.gguf
  redraft bench replay --records FILE --model qwen3-4b-shape.gguf
  redraft bench replay --records FILE --shape qwen3-4b --dtype bfloat16 --device cuda
"""


@click.command(epilog=EXAMPLES, short_help="Replay recorded passes on a model of another size.")
@click.option(
    "--records",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="NAME.records.jsonl in the --out of a benchmark.",
)
@click.option("--model", "-m", metavar="MODEL", help="Replay on llama.cpp, on a model of that name or a GGUF file.")
@click.option("--shape", type=click.Choice(list(SHAPES)), help="Replay on transformers, with random weights.")
@common.dtype
@click.option("--device", type=click.Choice(DEVICES), default="auto", help="Device; auto uses a GPU if there is one.")
@click.option("--limit", type=common.Whole(0), default=20, help="Number of segments; 0 for all.")
@click.option("--seed", type=common.Whole(0), default=0, help="Random seed.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Also write the rows here.",
)
@common.threads
@common.as_json
@common.needs("hf", "--shape needs")
def replay(
    records: Path,
    model: str | None,
    shape: str | None,
    dtype: str | None,
    device: str,
    limit: int,
    seed: int,
    out: Path | None,
    threads: int,
    as_json: bool,
) -> None:
    """Replay the recorded passes of a benchmark on a model of any size, trained or with random weights.

    Outputs and acceptance come from the recording, times from the model that replays, with as many cached and new ids
    in every pass. Methods with a small model are skipped.
    """
    opened = _opener(model, shape, dtype, device, threads, seed)
    from rich.console import Console
    from rich.progress import track

    from redraft.signature import print_json
    from redraft_bench.bench import replay as replaying
    from redraft_bench.bench.recording import read_recording
    from redraft_bench.eval.table import print_table

    recording = read_recording(records, limit)
    for sentence in recording.left_out:
        click.echo(f"redraft: {sentence}", err=True)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    backend, facts = opened(recording.context_length)
    console = Console(stderr=True)

    def show(numbers: range) -> Iterable[int]:
        return track(numbers, "replaying", console=console, disable=not console.is_terminal)

    with closing(backend):
        played, curve = replaying.replay(backend, recording, seed=seed, show=show)
    stem, name = records.name.removesuffix(".records.jsonl"), str(facts["model"]).partition("@")[0]
    table = replaying.rows(played, curve, f"{stem} on {name}")
    line = replaying.signature(records, recording, seed, **facts)
    if out is not None:
        replaying.write_rows(table, curve, line, out, f"replay-{stem}-{name}")
    if as_json:
        print_json(table, line, sys.stdout)
        return
    console = Console()
    console.print("Replay: recorded passes, times of another model; nothing is translated.", highlight=False)
    print_table(table, line, console, replaying.COLUMNS)


def _opener(
    model: str | None, shape: str | None, dtype: str | None, device: str, threads: int, seed: int
) -> Callable[[int], tuple[Backend, dict[str, object]]]:
    """Return a function that opens the model for a context length; raises at once if an option is invalid."""
    if model is not None and shape is None:
        if dtype is not None:
            raise OptionError("--dtype is for --shape; that of a GGUF file is in it, so leave it out")
        from redraft_bench.bench.replay import open_gguf

        return lambda context_length: open_gguf(model, context_length, device, threads)
    if shape is not None and model is None:
        try:
            from redraft_bench.bench.replay_hf import open_shape
        except ModuleNotFoundError as error:
            raise MissingExtra(f"--shape needs {error.name} of the hf extra: {install('hf')}") from error
        precision = dtype or DTYPES[0]
        return lambda length: open_shape(shape, HfOptions(length, 1, precision, device, threads), seed)
    raise OptionError("give --model, a GGUF file, or --shape, a model of transformers, and not both")
