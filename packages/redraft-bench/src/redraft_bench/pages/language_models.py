"""What the pages say about language models that were not made for Redraft: tables, and sentences from their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from redraft_bench.bench.read import ENDING, LANGUAGES, read_result
from redraft_bench.eval.table import listed, markdown_table, span

Row: TypeAlias = dict[str, Any]
#: Data set -> its name in sentences and the overview.
TEXTS = {"flores200.devtest": "Flores-200", "talk": "the demo talk", "acl-second": "a spoken talk of ACL"}
#: Heading -> function that formats a row's value.
Columns: TypeAlias = Mapping[str, Callable[[Row], str]]

#: The table whose rows are meant.
NAME = "language_model"
#: Model on the command line of scripts -> its name, and the beginning of its file's name.
NAMES = {"gemma": "Gemma 3 270M", "qwen-0.5b": "Qwen2.5-Coder 0.5B", "qwen-1.5b": "Qwen2.5-Coder 1.5B"}
FILES = {"gemma": "gemma-3-270m", "qwen-0.5b": "qwen2.5-coder-0.5b", "qwen-1.5b": "qwen2.5-coder-1.5b"}


REMARK = (
    "The models, as downloaded, in Q4_K_M, translate through their chat template (Gemma by three examples, with "
    "`--prompt`). Each update of a sentence of Flores-200 adds three words; a talk has the updates of its recogniser. "
    "Times are processor times of one thread for whole updates, nearly all of it passes, with other programs running. "
    "Those of `redraft` include the search for better final captions, which `--option search=0` turns off. Figures are "
    "means of German, Chinese and Japanese."
)
#: The methods of the overview.
COMPARED = ("ar", "local-agreement", "ssbd", "redraft")
#: Heading of a table -> figure, its format, and what it means.
SHOWN = {
    "Speed": ("cpu_speedup", ".1f", "The processor time of `ar`, divided by that of the method."),
    "Distance from the limit": (
        "limit_distance",
        ".1f",
        "The processor time, divided by what a drafter that knows the output would need.",
    ),
    "Flicker": ("ne_display", ".2f", "Tokens that change after they are shown, per token of the final caption (NE)."),
    "Quality": ("chrf", ".1f", "chrF of the final translations."),
}


def model_of(file: str) -> str | None:
    """Return the key in `NAMES` of a model's file."""
    return next((model for model, beginning in FILES.items() if file.casefold().startswith(beginning)), None)


def rows(results: Path) -> list[Row]:
    """Return the rows of all runs in a folder, in the order of `NAMES`, `TEXTS` and languages."""
    found = []
    for path in results.glob(f"{NAME}-*{ENDING}"):
        result = read_result(path)
        model = model_of(result.facts.get("model", ""))
        found += [{**row, "model": model} for row in result.rows]
    order = [*NAMES], [*TEXTS], [*LANGUAGES]
    fields = ("model", "data", "target_language")
    return sorted(found, key=lambda row: [places.index(row[name]) for places, name in zip(order, fields, strict=True)])


def _runs(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each model, text and language."""
    return [list(run) for _, run in groupby(rows, key=lambda row: (row["model"], row["data"], row["target_language"]))]


def overview(rows: Sequence[Row]) -> str:
    """Return a table for each figure of `SHOWN`: the methods of `COMPARED`, model by model and text by text."""
    runs: dict[tuple[str, str], list[list[Row]]] = {}
    for group in _runs(rows):
        runs.setdefault((group[0]["model"], group[0]["data"]), []).append(group)
    texts = []
    for heading, (field, form, about) in SHOWN.items():
        lines = [
            [NAMES[model], TEXTS[data], str(groups[0][0]["segments"]), *_means(groups, field, form)]
            for (model, data), groups in runs.items()
            if all(row.get(field) is not None for group in groups for row in group if row["method"] in COMPARED)
        ]
        table = markdown_table(("model", "text", "sentences", *map("`{}`".format, COMPARED)), lines)
        texts.append(f"## {heading}\n\n{about}\n\n{table}")
    return "\n".join(texts)


def _means(groups: Sequence[Sequence[Row]], field: str, form: str) -> list[str]:
    by_method = [{row["method"]: row[field] for row in group if row["method"] in COMPARED} for group in groups]
    return [format(fmean(each[method] for each in by_method), form) for method in COMPARED]


def compared(rows: Sequence[Row]) -> str:
    """Return sentences for each model: what methods save and retract, on the text with the most sentences."""
    groups = _runs(rows)
    found = []
    for model in models(rows):
        most = max((group[0] for group in groups if group[0]["model"] == model), key=lambda row: row["segments"])
        same = [row for group in groups for row in group if row["model"] == model and row["data"] == most["data"]]
        found.append(_comparison(model, most["data"], same))
    return " ".join(found)


def _comparison(model: str, data: str, rows: Sequence[Row]) -> str:
    def figures(method: str, field: str, form: str) -> str:
        return span([row[field] for row in rows if row["method"] == method], form)

    ours, ssbd, peer = (figures(name, "cpu_speedup", ".1f") for name in ("redraft", "ssbd", "local-agreement"))
    retracted = [f"{figures(name, 'ne_display', '.2f')} with `{name}`" for name in ("ar", "ssbd", "redraft")]
    return (
        f"With {NAMES[model]} on {TEXTS[data]}, `redraft` is {ours} times as fast as `ar`, `ssbd` {ssbd} and "
        f"`local-agreement` {peer} times. For each token of the final output, captions retract {listed(retracted)}."
    )


def larger(rows: Sequence[Row]) -> str:
    """Return a sentence on what `redraft` takes of the processor time of `ar` with chat models, text by text."""
    found = [row for row in rows if row["model"] != "gemma" and row["method"] == "redraft"]
    shares, of = list[str](), " of the processor time of re-translation"  # said once
    for data in dict.fromkeys(row["data"] for row in found):
        share = span([1 / row["cpu_speedup"] for row in found if row["data"] == data], ".0%")
        shares.append(f"{share}{'' if shares else of} on {TEXTS[data]}")
    names = listed([NAMES[model] for model in models(found)])
    return f"With {names}, an update takes {listed(shares)}; short sentences save less."


def kept_up(rows: Sequence[Row]) -> str:
    """Return a sentence for each model: the p95 of its answers with `redraft` and with `ar`, by languages."""
    found = []
    for model in models(rows):
        late = {(row["method"], row["languages"]): row["answer_p95"] for row in rows if row["model"] == model}
        counts = sorted({count for name, count in late if {("ar", count), ("redraft", count)} <= late.keys()})
        ours, plain = (listed([f"{late[name, count]:.1f}" for count in counts]) for name in ("redraft", "ar"))
        found.append(
            f"With {NAMES[model]}, 95% of the answers of `redraft` come within {ours} s in "
            f"{listed([str(count) for count in counts])} languages, and those of `ar` within {plain} s."
        )
    return " ".join(found)


def models(rows: Sequence[Row]) -> list[str]:
    """Return the models of rows, each once."""
    return list(dict.fromkeys(row["model"] for row in rows))
