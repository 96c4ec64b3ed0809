"""Writes docs/results.md and the figures in README.md and the model card from the rows that the benchmarks have left.

    python -m tools.build_results

``benchmarks/results/*.jsonl`` hold one JSON object a line as printed with ``--json``; nothing is typed by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.build_docs import between

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
Row = dict[str, Any]

#: Heading -> how a row fills it.
BIAS = {
    "method": lambda row: " ".join(part for part in (row["method"], row["options"], row["mask"]) if part),
    "passes": lambda row: str(row["target_passes"]),
    "A/D": lambda row: _share(row["draft_acceptance"]),
    "A/O": lambda row: _share(row["output_acceptance"]),
    "NE": lambda row: f"{row['ne_output']:.2f}",
    "NE shown": lambda row: f"{row['ne_display']:.2f}",
    "speed-up (passes)": lambda row: f"{row['pass_speedup']:.2f}",
    "speed-up (time)": lambda row: f"{row['speedup']:.2f}",
    "BLEU": lambda row: f"{row['bleu']:.1f}",
    "chrF": lambda row: f"{row['chrf']:.1f}",
}
QUALITY = {
    "set": lambda row: row["signature"].split("|data:")[1].split("@")[0],
    "to": lambda row: row["target_language"],
    "segments": lambda row: str(row["updates"]),
    "BLEU": lambda row: f"{row['bleu']:.1f}",
    "chrF": lambda row: f"{row['chrf']:.1f}",
    "cut short": lambda row: str(row["runaways"]),
}
EXACT = {
    "weights": lambda row: "F32" if "F32" in row["signature"] else "as shipped",
    "kernels": lambda row: "exact" if "exact:True" in row["signature"] else "usual",
    "to": lambda row: row["target_language"],
    "updates": lambda row: str(row["updates"]),
    "tokens": lambda row: str(row["output_tokens"]),
    "mismatches": lambda row: str(row["mismatches"]),
    "not explained by rounding": lambda row: str(row["unexplained"]),
    "largest gap (nats)": lambda row: str(row["largest_gap"]),
    "largest rounding seen (nats)": lambda row: str(row["largest_rounding"]),
}
COLD = {
    "method": lambda row: " ".join(part for part in (row["method"], row["options"]) if part),
    "BLEU": lambda row: f"{row['bleu']:.2f}",
    "chrF": lambda row: f"{row['chrf']:.2f}",
    "as ar": lambda row: f"{row['same_as_ar']}/{row['updates']}",
    "target passes": lambda row: str(row["target_passes"]),
    "small model's passes": lambda row: str(row["draft_passes"] or ""),
    "mean acceptance length": lambda row: f"{row['mean_acceptance_length']:.2f}",
    "A/D": lambda row: _share(row["draft_acceptance"]),
    "speed-up (time)": lambda row: f"{row['speedup']:.2f}",
}
COLD_TITLES = {
    "cold-flores-de": "Flores-200 devtest, English to German",
    "cold-flores-ja": "Flores-200 devtest, English to Japanese",
    "cold-flores-de-jacobi": "Flores-200, English to German: whole sentences by Jacobi decoding",
    "cold-flores-ja-jacobi": "Flores-200, English to Japanese: whole sentences by Jacobi decoding",
    "cold-tatoeba-de": "Tatoeba 2021, English to German",
    "cold-tatoeba-ja": "Tatoeba 2021, English to Japanese",
}
BEAM = {
    "decoding": lambda row: f"{row['method']} ({row['options']})",
    "to": lambda row: row["target_language"],
    "segments": lambda row: str(row["updates"]),
    "tokens/s": lambda row: f"{row['tokens_per_second']:.0f}",
    "BLEU": lambda row: f"{row['bleu']:.2f}",
    "chrF": lambda row: f"{row['chrf']:.2f}",
}
BIAS_TITLES = {
    "bias-flores-de-demo": "Flores-200 devtest, English to German, lag 3: the shipped model",
    "bias-flores-de-plain": "Flores-200, lag 3: the model trained without prefix pairs",
    "bias-tatoeba-de-demo": "Tatoeba 2021, English to German, lag 3, 8 words or more: the shipped model",
    "bias-tatoeba-de-plain": "Tatoeba 2021, lag 3: the model trained without prefix pairs",
}

COLD_TEXT = """Each sentence alone, nothing cached before it. For the Jacobi family target passes are iterations,
confirming ones included. Mean acceptance length is output tokens a target pass; `as ar` counts outputs with the very
ids of greedy decoding. Exact kernels, one thread. A length below 1 comes from outputs that went round in circles and
were cut back."""
POSTEDIT_TEXT = """The prompt holds a draft translation by the model without prefix pairs, and the model translates
the sentence again (AASD's Tables 2, 4 and 5). The signature gives the draft's chrF and the overlap of equation 7."""
BILD_TEXT = """Each line is one rollback threshold, each point on it one fallback threshold from 0.5 to 0.9 (larger:
higher), against `ar` of the same run (BiLD, Figures 4 and 10). Left of 1 is better. With models so small a pass of the
small one costs more than half of a pass of the large one, so that fewer target passes do not pay in time.

![Quality over time of BiLD with the unaligned and the aligned small model](bild.svg)"""


def read(name: str) -> list[Row]:
    """The rows of a results file, none if it is absent."""
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(rows: list[Row], columns: dict[str, Any]) -> str:
    """A Markdown table with the signatures of its rows below."""
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(fill(row) for fill in columns.values()) + " |" for row in rows]
    signatures = dict.fromkeys(row["signature"] for row in rows)
    return "\n".join([*lines, "", *(f"`{signature}`  " for signature in signatures)]).rstrip()


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def page() -> str:
    """docs/results.md."""
    parts = [
        "# Results\n\nWritten by `python -m tools.build_results` from `benchmarks/results`. The signature under\n"
        "a table says what was measured on what. Methods take turns update by update, so speed-ups are\n"
        "ratios within one run.",
        "## What the bias and mask-k do (Tables 3 and 4 of SSBD v2)",
    ]
    for name, title in BIAS_TITLES.items():
        parts += [f"### {title}", table(read(name), BIAS)] if read(name) else []
    parts += ["## With beta 0, the ids of greedy re-translation", table(read("exact"), EXACT)]
    parts += ["## Every decoder on whole sentences, cold", COLD_TEXT]
    for name, title in COLD_TITLES.items():
        parts += [f"### {title}", table(read(name), COLD)] if read(name) else []
    if read("beam"):
        parts += ["### Beam search on transformers, for comparison", table(read("beam"), BEAM)]
    if read("postedit-tatoeba-de"):
        parts += ["## Where much is copied: post-editing", POSTEDIT_TEXT, table(read("postedit-tatoeba-de"), COLD)]
    if read("bild-tatoeba-de"):
        parts += ["## BiLD's trade-off", BILD_TEXT]
    parts += ["## Quality of the demo model on whole sentences", table(read("quality-demo"), QUALITY)]
    return "\n\n".join(parts) + "\n"


def draw_bild(rows: list[Row]) -> None:
    """docs/bild.svg: chrF over target passes and over time, both relative to `ar`; a colour for each small model."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    names = list(dict.fromkeys(row["small_model"] for row in rows))
    rollbacks = list(dict.fromkeys(_rollback(row) for row in rows if row["method"] == "bild"))
    styles = dict(zip(rollbacks, ("-", "--", "-.", ":"), strict=False))
    colours = dict(zip(names, ("#4c78a8", "#e4572e"), strict=False))
    for name in names:
        base, *mine = [row for row in rows if row["small_model"] == name]
        for rollback in rollbacks:
            points = [row for row in mine if _rollback(row) == rollback]
            ratios = (
                [row["target_passes"] / base["target_passes"] for row in points],
                [1 / row["speedup"] for row in points],
            )
            for axes, values in zip(panels, ratios, strict=True):
                heights = [row["chrf"] for row in points]
                axes.plot(values, heights, styles[rollback], color=colours[name], linewidth=1)
                axes.scatter(values, heights, [8 + 9 * place for place in range(len(points))], color=colours[name])
    for axes, label in zip(panels, ("target passes", "time per token"), strict=True):
        axes.axvline(1, color="0.75", linewidth=0.8, zorder=0)
        axes.axhline(rows[0]["chrf"], color="0.75", linewidth=0.8, zorder=0)
        axes.set_xlabel(f"{label}, relative to ar")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("chrF")
    shown = {"unaligned": names[0], "aligned": names[-1]}
    key = [Line2D([], [], color=colours[name], marker="o", label=label) for label, name in shown.items()]
    key += [Line2D([], [], color="0.3", linestyle=style, label=f"rollback {bound}") for bound, style in styles.items()]
    panels[0].legend(handles=key, fontsize=8, frameon=False, loc="lower right")
    with matplotlib.rc_context({"svg.hashsalt": "redraft"}):  # else every run writes other ids
        figure.savefig(ROOT / "docs" / "bild.svg", metadata={"Date": None})


def _rollback(row: Row) -> str:
    return str(row["options"]).partition("rollback=")[2]


def main() -> None:
    """Write all of them."""
    if read("bild-tatoeba-de"):
        draw_bild(read("bild-tatoeba-de"))
    (ROOT / "docs" / "results.md").write_text(page(), encoding="utf-8")
    readme = ROOT / "README.md"
    rows = [row for row in read("bias-flores-de-demo") if "plain" not in row["mask"]]
    title = BIAS_TITLES["bias-flores-de-demo"]
    text = f"{title}. More in [docs/results.md](docs/results.md).\n\n{table(rows, BIAS)}\n"
    card = ROOT / "src" / "redraft" / "models" / "README.md"
    figures = f"\n{table(read('quality-demo'), QUALITY)}\n\n"
    card.write_text(between(card.read_text(encoding="utf-8"), "quality", figures), encoding="utf-8")
    readme.write_text(between(readme.read_text(encoding="utf-8"), "results", text), encoding="utf-8")


if __name__ == "__main__":
    main()
