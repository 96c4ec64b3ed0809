"""``redraft finetune``: options and result table; `redraft_train` does the work."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redraft.backends.options import HfOptions, options_of
from redraft.cli.shared import captioning
from redraft.cli.shared import options as common
from redraft.errors import MissingExtra, OptionError

if TYPE_CHECKING:
    from redraft_train.run import LanguageOutcome

INSTALL = "pip install packages/redraft-bench packages/redraft-train in a clone of Redraft"
#: Default number of sampled outputs besides the greedy one, if there are translations to compare with.
SAMPLES = 3
#: Values of ``--learn``.
LEARNT = ("outputs", "translations")
EXAMPLES = """\b
Examples:
  redraft finetune --model ./my-model --data spoken.txt --to de --out steadier
  redraft finetune --model hf:Qwen/Qwen3-0.6B --data pairs.tsv --to ja \\
      --out adapter --adapter
  redraft finetune --model hf:base.gguf --prompt prompt.txt --data pairs.tsv \\
      --to de --learn translations --out tuned
  redraft finetune --model ./small --teacher ./large --data talk.txt --to de \\
      --out small-aligned
"""


@click.command(cls=common.Grouped, short_help="Fine-tune a model so that it flickers less.", epilog=EXAMPLES)
@common.heading("Model and data")
@click.option("--model", "-m", metavar="MODEL", required=True, help=common.HF_MODELS)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="FILE",
    required=True,
    help="One English sentence per line, optionally with its translation after a tab.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FOLDER", required=True, help="Folder for the new model."
)
@common.to
@captioning.template
@captioning.prompt
@click.option("--adapter", is_flag=True, help="Write only the adapter instead of the merged model.")
@common.heading("Examples")
@click.option("--sources", type=common.Whole(1), default=30_000, help="Maximum number of sources to learn from.")
@click.option(
    "--learn",
    type=click.Choice(LEARNT),
    default=LEARNT[0],
    help="Targets: the model's own outputs make it steadier; translations in the data also teach it to translate.",
)
@click.option(
    "--teacher",
    metavar="MODEL",
    help="Learn the outputs of this model instead, which has the same vocabulary, to draft for it (BiLD).",
)
@click.option(
    "--samples",
    type=common.Whole(0, 64),
    help="Sampled outputs; the closest to the given translation by chrF wins.  "
    f"[default: {SAMPLES} if there are translations, else 0]",
)
@click.option("--beginnings", type=common.Whole(1, 64), default=2, help="Prefix pairs per source.")
@click.option(
    "--spoken", type=common.Real(0, 1), default=0.3, help="Share of sources without capitals and punctuation."
)
@click.option(
    "--tolerance",
    type=common.Real(0),
    default=2.5,
    help="Probability that a token may lose by the cut, in nats; more gives longer targets.",
)
@click.option("--held-out", type=common.Whole(0), default=60, help="Sources per language to evaluate on; 0 skips that.")
@common.heading("Training")
@click.option(
    "--early-exit",
    type=common.Whole(1, 999),
    metavar="LAYERS",
    help="Also train the first LAYERS layers to draft, by the mean of both losses (BiLD).",
)
@click.option("--epochs", type=common.Whole(1, 1000), default=3, help="Passes over the examples.")
@click.option("--rank", type=common.Whole(1, 1024), default=16, help="LoRA rank.")
@click.option(
    "--alpha",
    type=common.Real(0, min_open=True),
    default=32,
    help="LoRA scaling; updates are multiplied by alpha / rank.",
)
@click.option("--rate", type=common.Real(0, 1, min_open=True), default=5e-4, help="Peak learning rate.")
@click.option("--batch", type=common.Whole(1, 4096), default=16, help="Examples per step.")
@common.engine
@click.option("--seed", type=common.Whole(0), default=0, help="Random seed.")
@common.heading("Options")
@common.as_json
def finetune(
    model: str,
    data: Path,
    out: Path,
    to: Sequence[str],
    samples: int | None,
    teacher: str | None,
    early_exit: int | None,
    held_out: int,
    seed: int,
    **more: Any,
) -> None:
    """Fine-tune a model on translations and their beginnings, so that it flickers less, or drafts better.

    The model learns with LoRA, from its own translations of the sources, from those in the data, or from another
    model's. Interrupted runs resume. Afterwards, a table compares re-translation of held-out sources before and after;
    docs/training.md explains it.
    """
    languages = _languages(to)
    _require_places(model, out)
    if teacher is not None:
        _require_places(teacher, out, "--teacher")
        if early_exit or samples or more["learn"] == LEARNT[1]:
            raise OptionError("--teacher excludes --early-exit, --samples and --learn translations")
    try:
        from redraft.captions.prompt import prompt_file
        from redraft.captions.style import Style
        from redraft_train.adapt import FineTuning
        from redraft_train.lora import Lora
        from redraft_train.prefixes import Cuts
        from redraft_train.run import train
        from redraft_train.sources import divided, read_sources
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        raise MissingExtra(f"finetune needs {library}, which is not installed: {INSTALL}") from error
    learnt, measured = divided(read_sources(data), more["sources"], held_out, seed)
    translated, given = learnt[0].reference is not None, more["learn"] == LEARNT[1]
    if translated and len(languages) > 1:
        raise OptionError("--to must be a single language if the data contain translations")
    if given and not translated:
        raise OptionError("--learn must be outputs if the data contain no translations")
    if samples and (given or not translated):
        raise OptionError("--samples must be 0 if the data contain no translations, or if the model learns these")
    settings = FineTuning(
        out,
        languages,
        given=given,
        samples=SAMPLES if samples is None and translated and teacher is None else samples or 0,
        cuts=Cuts(more["beginnings"], more["spoken"], more["tolerance"]),
        lora=Lora(
            seed=seed,
            early_exit=early_exit or 0,
            **{name: more[name] for name in ("rank", "alpha", "rate", "epochs", "batch")},
        ),
        style=Style(template=more["template"], prompt=more["prompt"] and prompt_file(more["prompt"])),
        adapter=more["adapter"],
        seed=seed,
    )
    options = options_of(HfOptions, more["engine"], "transformers models")
    _print(*train(model, options, learnt, measured, settings, teacher), more["as_json"])


def _languages(to: Sequence[str]) -> tuple[str, ...]:
    """Return the target languages without duplicates."""
    from redraft.captions.languages import parse_language

    for tag in to:
        parse_language(tag)
    return tuple(dict.fromkeys(to))


def _require_places(model: str, out: Path, option: str = "--model") -> None:
    """Check that the model is a transformers model, and that the output folder can be written."""
    from redraft.backends.load import HF_PREFIX, on_transformers

    if not on_transformers(model):
        raise OptionError(
            f"{option} must be hf:NAME, hf:FILE.gguf or the folder of a model of transformers, not {model!r}"
        )
    if out.is_file():
        raise OptionError(f"--out must be a folder to write, and {str(out)!r} is a file")
    if Path(model.removeprefix(HF_PREFIX)).expanduser().resolve() == out.resolve():
        raise OptionError(f"--out must not be the folder of the model, {str(out)!r}")


def _print(outcomes: Sequence[LanguageOutcome], line: str, as_json: bool) -> None:
    rows = [outcome.flat() for outcome in outcomes]
    if as_json:
        from redraft.signature import print_json

        print_json(rows, line, sys.stdout)
        return
    from rich.console import Console
    from rich.table import Table

    shown = {"ne": ("NE", ".3f"), "chrf": ("chrF", ".1f"), "length": ("length", ".2f")}
    if any(row["agreement_after"] is not None for row in rows):
        shown |= {"agreement": ("agreement", ".1%")}
    table = Table("to", box=None)
    compared = [heading for name, _form in shown.values() for heading in (name, "after")]
    for heading in ("sources", "unfinished", "held out", *compared):
        table.add_column(heading, justify="right")
    for row in rows:
        counts = (str(row[name]) for name in ("target_language", "sources", "unfinished", "held_out"))
        figures = (
            "" if (value := row[f"{name}_{when}"]) is None else format(value, form)
            for name, (_heading, form) in shown.items()
            for when in ("before", "after")
        )
        table.add_row(*counts, *figures)
    console = Console()
    console.print(table)
    console.print(f"[dim]{line}[/dim]", highlight=False, soft_wrap=True)
