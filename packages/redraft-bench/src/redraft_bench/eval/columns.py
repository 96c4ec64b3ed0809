"""Headings, number formats and descriptions of the figures of a row, for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from redraft_bench.eval.figures import Row


class Column(NamedTuple):
    """Heading, number format (empty for text), and a description in one sentence."""

    heading: str
    form: str
    about: str


#: Kinds of tasks (`redraft_bench.eval.tasks`) in the plural.
_KINDS = {"question": "questions", "summary": "summaries", "code": "code"}

COLUMNS = {
    "target_language": Column("to", "", "target language"),
    "method": Column("method", "", "decoding method with the options that were set"),
    "display": Column(
        "shows", "", "what is shown of partial captions; all if empty; plain: the hidden end is no draft either"
    ),
    "threads": Column("threads", ",.0f", "CPU threads of the line"),
    "batch": Column("batch", ",.0f", "segments that are translated at once"),
    "resegmented_bleu": Column(
        "BLEU", ".1f", "on recognised text: BLEU of the captions, cut to the references by OmniSTEval"
    ),
    "resegmented_chrf": Column("chrF", ".1f", "on recognised text: chrF of the captions, cut in the same way"),
    "chrf_change": Column("chrF to LA", "+.1f", "the difference from LocalAgreement's chrF, with its 95% interval"),
    "bleu": Column("BLEU", ".1f", "otherwise: BLEU of the final translations, with its 95% interval if computed"),
    "chrf": Column("chrF", ".1f", "otherwise: chrF of the final translations, with its 95% interval if computed"),
    "empty": Column("empty", ",.0f", "translations without any letter"),
    "cut_short": Column("cut", ",.0f", "translations that lack their end"),
    "number_lost": Column("numbers lost", ",.0f", "translations that lack a number"),
    "name_lost": Column("names lost", ",.0f", "translations that lack a name"),
    "negation_lost": Column("negations lost", ",.0f", "translations that lack a negation"),
    "wrong_language": Column("wrong language", ",.0f", "translations in another language or script"),
    "same_as_ar": Column("as ar", ",.0f", "segments with the same final translation as ar"),
    "ne_output": Column(
        "NE", ".2f", "normalized erasure: retracted tokens per token of the final output, in tokens of the texts"
    ),
    "ne_display": Column("NE shown", ".2f", "the same for what the reader sees"),
    "ne_flores": Column("NE, Flores", ".2f", "NE of the output in tokens of Flores-101, as in SSBD v2"),
    "lag_first": Column(
        "first shown (s)", ".2f", "median lag from the end of a word in the audio to its caption, with its 95% interval"
    ),
    "lag_good": Column("for good (s)", ".2f", "the same to the last change of the caption at that word"),
    "retracted": Column("retracted (words/min)", ".1f", "words that captions retracted, per minute of speech"),
    "stood": Column("stood", ".0%", "share of the words of final captions that never changed once they were shown"),
    "draft_acceptance": Column(
        "A/D",
        ".1%",
        "share of the drafted tokens, with end tokens, that were accepted, without those of a repetition that was cut",
    ),
    "output_acceptance": Column("A/O", ".1%", "share of the output, without end tokens, that came from a draft"),
    "mean_acceptance_length": Column("MAL", ".2f", "mean acceptance length: output tokens per pass"),
    "target_passes": Column("passes", ",.0f", "passes of the model; for Jacobi decoding, iterations"),
    "second_passes": Column(
        "again", ",.0f", "further passes, of final texts that were decoded again, since they lacked their end"
    ),
    "fallback_share": Column("fallbacks", ".1%", "passes of the large model per token of the output (BiLD, Table 4)"),
    "rollback_share": Column("rollbacks", ".1%", "passes that reject a token of the small model, per token"),
    "f1": Column("F1", ".1f", "questions: F1 of the words of the answer"),
    "rouge_l": Column("ROUGE-L", ".1f", "summaries: F-measure of the longest common subsequence of words"),
    "edit_similarity": Column("edit sim.", ".1f", "code: similarity by edits of characters"),
    **{
        f"acceptance_length_{kind}": Column(f"MAL, {plural}", ".2f", f"{plural}: mean acceptance length")
        for kind, plural in _KINDS.items()
    },
    **{
        f"later_speed_{kind}": Column(
            f"tokens/s, {plural}", ",.0f", f"{plural}: output tokens per second, without the first pass of each text"
        )
        for kind, plural in _KINDS.items()
    },
    **{
        f"later_speedup_{kind}": Column(
            f"speed-up, {plural}", ".2f", f"{plural}: these tokens per second relative to ar"
        )
        for kind, plural in _KINDS.items()
    },
    "draft_passes": Column("small model's passes", ",.0f", "passes of the small model"),
    "tokens_per_second": Column("tokens/s", ",.0f", "output tokens per second of wall time, including verification"),
    "cpu_seconds": Column("CPU (s)", ",.1f", "processor time of all updates in seconds"),
    "cpu_ms": Column("CPU (ms)", ".1f", "processor time of an update in milliseconds"),
    "cpu_speedup": Column("by CPU time", ".2f", "processor time of ar for the same part of the text, relative to this"),
    "speedup": Column("speed-up", ".2f", "output tokens per second relative to ar in the same run"),
    "pass_speedup": Column("by passes", ".2f", "output tokens per pass relative to ar"),
    "positions": Column("positions", ",.0f", "ids that the passes of the model read, prompts and drafts among them"),
    "relative_flops": Column(
        "FLOPs", ".2f", "positions relative to those of ar; a position costs about two FLOPs for each parameter"
    ),
    "flops_by_speed": Column("FLOPs/speed", ".2f", "that divided by the speed-up"),
    "limit_distance": Column(
        "× limit", ".2f", "time relative to a drafter that knows the output beforehand; 1 is the best possible"
    ),
    "dal": Column("DAL", ".2f", "differentiable average lagging: how far captions are behind the speaker"),
    "dal_ca": Column("DAL, CA", ".2f", "the same, computation-aware: including the time for translating"),
    "ne_units": Column(
        "NE, words", ".2f", "NE of what the reader sees, in words, or in characters for Chinese and Japanese"
    ),
    "admission": Column("admission", "", "whether the server refuses sessions beyond its capacity"),
    "talks": Column("talks", ",.0f", "simultaneous talks; in a search, the most that were carried"),
    "refused": Column("refused", ",.0f", "sessions that the server did not admit"),
    "broken": Column("broken off", ",.0f", "sessions that ended early"),
    "passed_over": Column("skipped", ",.0f", "updates answered by the caption of a newer one"),
    "caption_lag_p50_ms": Column(
        "caption lag p50 (ms)", ",.0f", "from when the oldest word without a caption was spoken to its caption, median"
    ),
    "caption_lag_p95_ms": Column("caption lag p95 (ms)", ",.0f", "95th percentile of these lags"),
    "caption_lag_max_ms": Column("caption lag max (ms)", ",.0f", "the longest of these lags"),
    "lanes_a_pass": Column("lanes per pass", ".2f", "average number of translations that share a pass"),
    "server_cpu": Column("server's CPU", ".2f", "cores used by the server"),
    "client_cpu": Column("client's CPU", ".2f", "cores used by the load generator"),
    "server_mb": Column("server's MB", ",.0f", "peak memory of the server (resident set)"),
    "server_mb_slope": Column(
        "MB/min", ".3f", "growth of that per minute, by least squares over the last three quarters of the run"
    ),
    "viewers": Column("viewers", ",.0f", "viewers of the talk"),
    "replicas": Column("replicas", ",.0f", "servers for viewers only; 0: all watch on the session's own server"),
    "sent": Column("languages sent", "", "languages whose captions viewers were sent"),
    "lost": Column("lost", ",.0f", "final captions that viewers did not get"),
    "doubled": Column("doubled", ",.0f", "final captions that viewers got twice"),
    "disordered": Column("disordered", ",.0f", "final captions that viewers got before an earlier one"),
    "messages_a_second": Column("messages/s", ".2f", "messages per second that a viewer got"),
    "added_lag_p50_ms": Column(
        "added lag p50 (ms)", ",.1f", "from a caption's arrival at the speaker to its arrival at a viewer, median"
    ),
    "added_lag_p95_ms": Column("added lag p95 (ms)", ",.1f", "95th percentile of these lags"),
    "added_lag_max_ms": Column("added lag max (ms)", ",.1f", "the longest of these lags"),
    "viewers_cpu": Column("CPU for viewers", ".2f", "cores used to serve the viewers"),
    "viewers_a_core": Column("viewers per core", ",.0f", "viewers that a core would serve at this rate"),
    "left_over": Column("left over", ",.0f", "sessions, lanes and slots still held after all talks"),
}

#: Count -> field with the number of segments that it could apply to.
OUT_OF = {
    "same_as_ar": "segments",
    "number_lost": "with_number",
    "name_lost": "with_name",
    "negation_lost": "with_negation",
}
#: Lag metrics in the unit that the row names: source words or seconds.
_LAGS = {"dal", "dal_ca"}


def column(name: str, rows: Sequence[Row]) -> Column:
    """Return the column of a field."""
    unit = next((row["latency_unit"] for row in rows if row.get("latency_unit")), "")
    found = COLUMNS[name]
    return found._replace(heading=f"{found.heading} ({unit})") if name in _LAGS and unit else found


def filled(rows: Sequence[Row], names: Iterable[str]) -> list[str]:
    """Return the fields to show: those that a row has and, for some, that differ between rows."""
    return [name for name in names if name == "method" or _tells(name, [row.get(name) for row in rows])]


def _tells(name: str, values: Sequence[object]) -> bool:
    if name in ("display", "target_language", "threads", "batch"):
        return len(set(values)) > 1
    return any(value not in (None, "") for value in values)


def title(row: Row) -> str:
    """Return method and options."""
    return f"{row.get('method')} {row.get('options') or ''}".strip()


def named(row: Row) -> str:
    """Return a title that is unique within a table: with draft model and display."""
    batch = row.get("batch")
    more = (
        *(("with", row.get("small_model")), ("shows", row.get("display"))),
        *(("threads", row.get("threads")), ("batches of", None if batch == 1 else batch)),
    )
    return ", ".join([title(row), *(f"{word} {value}" for word, value in more if value)])


def cell(row: Row, name: str, form: str, *, bounds: bool = True) -> str:
    """Format a figure; a dash if it was not measured."""
    if name == "method":
        return title(row)
    value = row.get(name)
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = format(value, form) if form else str(value)
    if name in OUT_OF:
        return f"{text}/{row.get(OUT_OF[name])}"
    low, high = (row.get(f"{name}_{bound}") if bounds else None for bound in ("low", "high"))
    return f"{text} ({low:{form}}–{high:{form}})" if low is not None and high is not None else text
