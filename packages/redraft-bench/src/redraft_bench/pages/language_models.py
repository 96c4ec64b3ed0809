"""What the pages say about language models that were not made for Redraft: tables, and sentences from their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from redraft.captions.languages import parse_language
from redraft_bench.eval.limit import SHARES
from redraft_bench.eval.table import listed, markdown_table, side_by_side, span

Row: TypeAlias = dict[str, Any]
#: Data set -> its name in sentences and the overview.
TEXTS = {"flores200.devtest": "Flores-200", "acl-second": "a spoken talk of ACL", "talk": "the demo talk"}
#: Heading -> function that formats a row's value.
Columns: TypeAlias = Mapping[str, Callable[[Row], str]]

#: Model on the command line -> its name.
NAMES = {"gemma": "Gemma 3 270M", "qwen-0.5b": "Qwen2.5-Coder 0.5B", "qwen-1.5b": "Qwen2.5-Coder 1.5B"}


def _optional(field: str, form: str) -> Callable[[Row], str]:
    return lambda row: "" if row.get(field) is None else format(row[field], form)


COLUMNS: Columns = {
    "model": lambda row: NAMES[row["model"]],
    "text": lambda row: TEXTS[row["data"]],
    "sentences": lambda row: str(row["segments"]),
    "to": lambda row: row["target_language"],
    "method": lambda row: f"{row['method']} {row['options']}".strip(),
    "A/D": _optional("draft_acceptance", ".0%"),
    "passes": lambda row: str(row["target_passes"]),
    "by passes": _optional("pass_speedup", ".2f"),
    "CPU seconds": lambda row: f"{row['cpu_seconds']:.0f}",
    "by CPU time": _optional("cpu_speedup", ".2f"),
    "text / draft / tokens": lambda row: " / ".join(f"{row[name]:.0%}" for name in SHARES),
    "× limit": _optional("limit_distance", ".2f"),
    "NE": lambda row: f"{row['ne_output']:.2f}",
    "NE shown": lambda row: f"{row['ne_display']:.2f}",
    "chrF": lambda row: (
        "" if row.get("chrf") is None else f"{row['chrf']:.1f} ({row['chrf_low']:.1f}–{row['chrf_high']:.1f})"
    ),
}
REMARK = (
    "The models, as downloaded, in Q4_K_M, translate through their chat template (Gemma by three examples). Each "
    "update of a sentence of Flores-200 adds three words; a talk has the updates of its recogniser. Times are "
    "processor times of one thread for whole updates, nearly all of it passes, with other programs running. Cells have "
    "four figures, `ar` · LocalAgreement · `ssbd` · `redraft`: *by CPU time* is the time of `ar` divided by the "
    "method's, *× limit* the time divided by what a drafter that knows the output would need, and *retracted* how many "
    "tokens change after they are shown, for each token of the final caption (NE)."
)
ABOUT = (
    "*A/D* is the share of the drafted tokens that were accepted. *Text / draft / tokens* divides the time of the "
    "passes into reading the new text, verifying the draft, and what follows, mostly one token a pass. `aasd` needs "
    "predictions for every token of the prompt, most of its cost. `cd` cannot correct itself, which costs quality. "
    "Methods with a small model have Qwen2.5-Coder 0.5B beside the 1.5B. Lines of fewer sentences are from runs of all "
    "methods.\n"
)
#: The methods of the overview.
COMPARED = ("ar", "local-agreement", "ssbd", "redraft")
#: Heading of the overview -> figure and its format.
SHOWN = {
    "by CPU time": ("cpu_speedup", ".1f"),
    "× limit": ("limit_distance", ".1f"),
    "retracted": ("ne_display", ".2f"),
    "chrF": ("chrf", ".1f"),
}


def largest(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each model, text and language that are from the most sentences."""
    groups: dict[tuple[str, str, str], dict[int, list[Row]]] = {}
    for row in rows:
        runs = groups.setdefault((row["model"], row["data"], row["target_language"]), {})
        runs.setdefault(row["segments"], []).append(row)
    return [runs[max(runs)] for runs in groups.values()]


def overview(rows: Sequence[Row]) -> str:
    """Return a table with a line for each model, text and language: the methods of `COMPARED` side by side."""
    headings = ("model", "text", "sentences", "to", *SHOWN)
    return f"{markdown_table(headings, list(_lines(rows)))}\n{ABOUT}"


def _lines(rows: Sequence[Row]) -> Iterator[list[str]]:
    above = [""]
    for group in largest(rows):
        row = group[0]
        names = [NAMES[row["model"]], TEXTS[row["data"]], str(row["segments"])]
        yield [*([""] * 3 if names == above else names), parse_language(row["target_language"]).name, *_figures(group)]
        above = names


def _figures(rows: Sequence[Row]) -> Iterator[str]:
    by_method = {row["method"]: row for row in rows}
    for field, form in SHOWN.values():
        cells = [_optional(field, form)(by_method[method]) for method in COMPARED]
        yield side_by_side(cells) if any(cells) else ""


def compared(rows: Sequence[Row]) -> str:
    """Return sentences for each model: what methods save and retract, on the text with the most sentences."""
    groups = largest(rows)
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
    found = [row for group in largest(rows) for row in group if row["model"] != "gemma" and row["method"] == "redraft"]
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
