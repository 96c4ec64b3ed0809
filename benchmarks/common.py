"""What the benchmarks share: test sets, streams of them, options."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from redraft.backends.load import resolve
from redraft.errors import InputError
from redraft.eval.measure import Figure
from redraft.eval.signature import file_hash, text_hash
from redraft.eval.table import print_json, print_table
from redraft.events import Update
from redraft.streams.read import prefixes

#: Test set -> file of the English side, by target language; ``{to}`` stands for the language.
SETS = {
    "flores200.devtest": "flores200.devtest.{side}.txt",
    "acl6060.dev": "acl6060.dev.{side}.txt",
    "mexpresso": "mexpresso.{side}.txt",
    "tatoeba2021": "tatoeba2021.en-{to}.{side}.txt",
}


@dataclass(frozen=True, slots=True)
class TestSet:
    """Aligned segments: ``sources[i]`` is translated as ``references[i]``."""

    name: str
    sources: tuple[str, ...]
    references: tuple[str, ...]

    @property
    def hash(self) -> str:
        """Of sources and references."""
        return text_hash("\n".join((*self.sources, *self.references)))


def data_folder() -> Path:
    """The shared data: ``$REDRAFT_DATA``, else ``../shared/data``."""
    return Path(os.environ.get("REDRAFT_DATA", "../shared/data"))


def load_set(name: str, to: str, limit: int = 0, least_words: int = 0) -> TestSet:
    """The first ``limit`` segments (0: all) of a test set with at least so many source words.

    Raises:
        InputError: the set has no such language, or the data are not there.
    """
    folder = data_folder() / "test"
    sides = [folder / SETS[name].format(to=to, side=side) for side in ("en", to)]
    for path in sides:
        if not path.exists():
            raise InputError(
                f"{path} does not exist: set REDRAFT_DATA to the folder of the data, or choose another set"
            )
    lines = [path.read_text(encoding="utf-8").splitlines() for path in sides]
    pairs = [pair for pair in zip(*lines, strict=True) if len(pair[0].split()) >= least_words][: limit or None]
    return TestSet(name, tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))


def stream(sources: Sequence[str], lag: int) -> Iterator[Update]:
    """Every source revealed by ``lag`` words at a time (SSBD v2, section 4.1); ``lag`` 0 gives it whole."""
    for number, source in enumerate(sources):
        parts = prefixes(source, lag) if lag else [source]
        for seq, part in enumerate(parts):
            yield Update(str(number), seq, part, final=seq == len(parts) - 1)


set_option = click.option("--data", default="flores200.devtest", type=click.Choice(list(SETS)), show_default=True)
to_option = click.option("--to", default="de", help="Target language: de, zh or ja.", show_default=True)
model_option = click.option("--model", default="demo", help="A name or a GGUF file.", show_default=True)
limit_option = click.option("--limit", default=100, help="Segments; 0 takes all.", show_default=True)
lag_option = click.option("--lag", default=3, help="Words that come at a time.", show_default=True)
threads_option = click.option("--threads", default=0, help="CPU threads; 0 takes all cores.", show_default=True)


def report(figures: Sequence[dict[str, Figure]], line: str, as_json: bool) -> None:
    """Print rows with their signature, as a table or one JSON object a line."""
    if as_json:
        print_json(figures, line, sys.stdout)
    else:
        print_table(figures, line, Console())


def model_signature(name: str) -> str:
    """File and hash of a model beside the one that a table is of."""
    path = resolve(name)
    return f"{path.name}@{file_hash(path)}"


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
