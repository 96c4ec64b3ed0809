"""``redraft train prefix``: its options, and its figures before and after; `recipe` does the work."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redraft.backends.hf.options import DEVICES, DTYPES, HfOptions
from redraft.cli import options as common
from redraft.cli.translate import TEMPLATES
from redraft.errors import MissingExtra, OptionError
from redraft.models import shape

if TYPE_CHECKING:
    from redraft.cli.prefixes import Row

LANGUAGES = ("de", "zh", "ja")
FORMATS = tuple(shape.FORMATS)
#: Options for the one kind of model alone.
OF_GGUF = ("tokens", "share", "format", "processes")
OF_TRANSFORMERS = ("epochs", "rank", "alpha", "rate", "batch", "adapter", "template", "device", "dtype", "threads")
#: Sampled outputs beside the greedy one, where there are translations to compare with.
SAMPLES = 3
EXAMPLES = """\b
Examples:
  redraft train prefix --model demo --data ../shared/data --out steadier.gguf
  redraft train prefix --model ./my-model --data sentences.txt --to de --out my-model-steadier
"""


@click.command(epilog=EXAMPLES, short_help="Teach a model beginnings of its own translations.")
@click.option(
    "--model",
    "-m",
    default="demo",
    metavar="MODEL",
    help="demo, demo-tiny or a GGUF file of the recipe, trained whole; or hf:NAME or the folder of a model of "
    "transformers, trained by LoRA.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="PATH",
    required=True,
    envvar="REDRAFT_DATA",
    show_envvar=True,
    help="GGUF: the folder with train/, as in docs/training.md. Transformers: a text file with an English sentence a "
    "line, or one and its translation with a tab between.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="The new model: a GGUF file, or a folder of transformers.",
)
@click.option("--to", "-t", multiple=True, metavar="LANGUAGE", help="Target; repeat.  [default, GGUF: de, zh and ja]")
@click.option("--sources", type=common.Whole(1), default=30_000, help="The most sources that the model translates.")
@click.option(
    "--samples",
    type=common.Whole(0, 64),
    help="Sampled outputs that compete with the greedy one; the nearest to the given translation by chrF is learnt.  "
    f"[default: {SAMPLES} where there are translations, else 0]",
)
@click.option("--beginnings", type=common.Whole(1, 64), default=2, help="Prefix pairs made of each source.")
@click.option(
    "--spoken", type=common.Real(0, 1), default=0.3, help="Share of sources written as a recogniser writes them."
)
@click.option(
    "--tolerance",
    type=common.Real(0),
    default=2.5,
    help="How much less probable a token may be after the beginning of a source than after the whole, in nats; more "
    "makes the beginnings of translations longer.",
)
@click.option("--held-out", type=common.Whole(0), default=60, help="Sources to measure by, for each target; 0: none.")
@click.option("--tokens", type=common.Whole(1), default=8_000_000, help="GGUF: length of the training, in tokens.")
@click.option("--share", type=common.Real(0, 1), default=0.65, help="GGUF: share of the model's own examples.")
@click.option("--format", type=click.Choice(FORMATS), default="Q8_0", help="GGUF: weights of the file.")
@click.option("--processes", type=common.Whole(1, 64), default=2, help="GGUF: processes of one thread.")
@click.option("--epochs", type=common.Whole(1, 1000), default=3, help="LoRA: how often every example is learnt.")
@click.option("--rank", type=common.Whole(1, 1024), default=16, help="LoRA: rank of the added matrices.")
@click.option("--alpha", type=common.Real(0, min_open=True), default=32, help="LoRA: they count alpha / rank times.")
@click.option("--rate", type=common.Real(0, 1, min_open=True), default=5e-4, help="LoRA: peak learning rate.")
@click.option("--batch", type=common.Whole(1, 4096), default=16, help="LoRA: examples a step.")
@click.option("--adapter", is_flag=True, help="LoRA: write the adapter alone, not the model with it.")
@click.option("--template", type=click.Choice(TEMPLATES), help="Transformers: prompt template, as of translate.")
@click.option("--device", type=click.Choice(DEVICES), default="auto", help="Transformers: where to compute.")
@common.dtype
@common.threads
@click.option("--seed", type=common.Whole(0), default=0, help="Of all that is drawn.")
@common.as_json
def prefix(model: str, as_json: bool, **chosen: Any) -> None:
    """Teach a model beginnings of its own translations, so that live translations flicker less.

    The model translates sources, and learns its translations together with beginnings of them: each ends where the
    beginning of the source ends to support it, by the model's own probabilities. What a run that was cut off needs to
    go on is kept beside the new model. Afterwards a table tells, for plain re-translation of sources that were held
    out, 3 words at a time: normalised erasure, chrF where there are translations, and how long partial outputs are
    (1 keeps pace with the source).
    """
    from redraft.backends.load import on_transformers

    on_hf = on_transformers(model)
    for name in OF_GGUF if on_hf else OF_TRANSFORMERS:
        if common.is_given(name):
            kind = "GGUF files" if on_hf else "models of transformers"
            raise OptionError(f"--{name} is for {kind}, which {model!r} is not: leave it out")
    rows, line = _of_transformers(model, **chosen) if on_hf else _of_recipe(model, **chosen)
    _print([row.flat() for row in rows], line, as_json)


def _of_recipe(
    model: str, data: Path, out: Path, to: Sequence[str], samples: int | None, held_out: int, seed: int, **more: Any
) -> tuple[list[Row], str]:
    from redraft.backends.load import resolve

    languages = tuple(dict.fromkeys(to)) or LANGUAGES
    for tag in languages:
        if tag not in LANGUAGES:
            raise OptionError(f"to must be {', '.join(LANGUAGES[:-1])} or {LANGUAGES[-1]} for this model, not {tag!r}")
    if out.is_dir():
        raise OptionError(f"out must be a GGUF file to write, and {str(out)!r} is a folder")
    path = resolve(model)
    with needing("train"):
        from recipe.__main__ import KEEP_MEMORY
        from recipe.distil import Distillation
        from recipe.prefix import Settings
        from redraft.cli.prefixes import train_recipe
        from redraft.finetune.prefixes import Cuts
    os.environ.update(KEEP_MEMORY)  # for the processes that are started
    samples = SAMPLES if samples is None else samples
    cuts = Cuts(more["beginnings"], more["spoken"], more["tolerance"])
    distillation = Distillation(more["sources"], samples, cuts=cuts, seed=seed)
    kept = {name: more[name] for name in OF_GGUF}
    settings = Settings(path, data, out, languages, distillation=distillation, **kept)
    return train_recipe(settings, held_out)


def _of_transformers(
    model: str, data: Path, out: Path, to: Sequence[str], samples: int | None, held_out: int, seed: int, **more: Any
) -> tuple[list[Row], str]:
    from redraft.backends.load import HF_PREFIX
    from redraft.captions.languages import parse_language
    from redraft.translator import Style

    if not to:
        raise OptionError("to must name one target language or more, such as --to de")
    for tag in to:
        parse_language(tag)
    if out.is_file():
        raise OptionError(f"out must be a folder to write, and {str(out)!r} is a file")
    if Path(model.removeprefix(HF_PREFIX)).expanduser().resolve() == out.resolve():
        raise OptionError(f"out must be another folder than that of the model, {str(out)!r}")
    with needing("lora"):
        from redraft.cli.prefixes import train_lora
        from redraft.finetune.adapt import Settings
        from redraft.finetune.lora import Lora
        from redraft.finetune.prefixes import Cuts
        from redraft.finetune.sources import divided, read_sources
    learnt, measured = divided(read_sources(data), more["sources"], held_out, seed)
    translated = learnt[0].reference is not None
    languages = tuple(dict.fromkeys(to))
    if translated and len(languages) > 1:
        raise OptionError("to must be one language where the data hold translations, for they are in one")
    if samples and not translated:
        raise OptionError("samples must be 0 where the data hold no translations to choose by")
    settings = Settings(
        out,
        languages,
        samples=SAMPLES if samples is None and translated else samples or 0,
        cuts=Cuts(more["beginnings"], more["spoken"], more["tolerance"]),
        lora=Lora(seed=seed, **{name: more[name] for name in ("rank", "alpha", "rate", "epochs", "batch")}),
        style=Style(template=more["template"]),
        adapter=more["adapter"],
        seed=seed,
    )
    options = HfOptions(dtype=more["dtype"] or DTYPES[0], device=more["device"], threads=more["threads"])
    return train_lora(model, options, learnt, measured, settings)


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Say which extra is missing where what is imported is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        raise MissingExtra(f"training needs {library} of the {extra} extra: pip install 'redraft[{extra}]'") from error


def _print(rows: Sequence[dict[str, Any]], line: str, as_json: bool) -> None:
    if as_json:
        from redraft.measure.eval.table import print_json

        print_json(rows, line, sys.stdout)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("to", box=None)
    for heading in ("sources", "unfinished", "held out", "NE", "after", "chrF", "after", "length", "after"):
        table.add_column(heading, justify="right")
    for row in rows:
        counts = (str(row[name]) for name in ("target_language", "sources", "unfinished", "held_out"))
        figures = (
            "" if (value := row[f"{name}_{when}"]) is None else format(value, form)
            for name, form in (("ne", ".3f"), ("chrf", ".1f"), ("length", ".2f"))
            for when in ("before", "after")
        )
        table.add_row(*counts, *figures)
    console = Console()
    console.print(table)
    console.print(f"[dim]{line}[/dim]", highlight=False, soft_wrap=True)
