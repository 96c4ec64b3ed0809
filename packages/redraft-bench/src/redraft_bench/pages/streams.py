"""The page of the benchmark `stream`: what readers get on each stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import fmean, median
from typing import Any, TypeAlias

from redraft_bench.bench.read import Result
from redraft_bench.eval.columns import cell
from redraft_bench.eval.figures import Row
from redraft_bench.eval.table import listed, markdown_table
from redraft_bench.pages.run import STREAMS

#: Settings of the default that are lines of their own: what others would stop is decoded to its end, and final captions
#: are not searched for.
SETTINGS = ("stop=0", "search=0")
#: Heading -> the method of a line that the page compares, and its setting; the last is the default.
COMPARED = {
    "`ar`": ("ar", ""),
    "`ssbd`": ("ssbd", ""),
    "LocalAgreement": ("local-agreement", ""),
    "`redraft`": ("redraft", ""),
}
#: The default without the search for better final captions.
PLAIN = ("redraft", "search=0")
PEER, OURS = "LocalAgreement", "`redraft`"
#: Figures of each line, with headings and formats.
SHOWN = (
    ("retracted", "Retracted words a minute", ".0f"),
    ("lag_first", "Seconds until a word is first shown", ".2f"),
    ("lag_good", "Seconds until a word is shown for good", ".2f"),
    ("cpu_seconds", "Processor time in seconds", ".1f"),
)
#: What the figures of a stream are summed up by.
FIGURES = ("ne_display", "retracted", "stood", "lag_first", "lag_good", "target_passes", "cpu_seconds")

#: A row as read from a file.
Line: TypeAlias = "Mapping[str, Any]"


def ordered(results: Sequence[Result]) -> list[Result]:
    """Return the results in the order of `STREAMS`; those of a stream stay in order."""
    order = [*STREAMS]
    return sorted(results, key=lambda each: order.index(each.data) if each.data in order else len(order))


def stream_title(result: Result) -> str:
    """Return the name of a result's stream, with a capital letter."""
    return result.data_name[:1].upper() + result.data_name[1:]


def lines_of(result: Result) -> dict[str, Line]:
    """Return the row of each line of `COMPARED`."""
    rows = {_key(row): row for row in result.rows}
    return {name: rows[line] for name, line in COMPARED.items()}


def _key(row: Row) -> tuple[str, str]:
    options = str(row["options"]).split()
    return str(row["method"]), next((each for each in SETTINGS if each in options), "")


def typical(results: Sequence[Result]) -> Result:
    """Return the medians over streams and languages of every line that all results have, as a result."""
    first, *others = [{_key(row): row for row in each.rows} for each in results]
    rows: list[Row] = []
    for line in first:
        found = [each[line] for each in (first, *others) if line in each]
        if len(found) == len(results) and all(row.get(name) is not None for row in found for name in FIGURES):
            medians = {name: median(float(str(row[name])) for row in found) for name in FIGURES}
            rows.append({"method": line[0], "options": line[1], **medians})
    return replace(results[0], rows=tuple(rows))


def summary(results: Sequence[Result]) -> str:
    """Return sentences that compare the lines of `COMPARED`: medians over streams and languages."""
    ar, _, peer, ours = (list(lines) for lines in zip(*(lines_of(each).values() for each in results), strict=True))

    def middle(lines: Sequence[Line], name: str) -> float:
        return median(float(line[name]) for line in lines)

    def share(lines: Sequence[Line], of: Sequence[Line] = ours) -> float:
        pairs = zip(of, lines, strict=True)
        return median(float(mine["cpu_seconds"]) / float(line["cpu_seconds"]) for mine, line in pairs)

    plain = [row for each in results for row in each.rows if _key(row) == PLAIN]
    without = ""
    if len(plain) == len(results):
        without = (
            f" Without the search for better final captions (`--option search=0`), it needs {share(ar, plain):.0%} and "
            f"{share(peer, plain):.0%}, and captions retract {middle(plain, 'retracted'):.0f} words a minute."
        )

    good = [f"{middle(lines, 'lag_good'):.1f}\N{NO-BREAK SPACE}s" for lines in (ours, ar, peer)]
    streams = len({each.data for each in results})
    return (
        "On the text of real recognisers, translated by the demo model, captions retract "
        f"{middle(ours, 'retracted'):.0f} words a minute, compared with "
        f"{middle(ar, 'retracted'):.0f} for re-translation from scratch. {middle(ours, 'stood'):.0%} of the words "
        f"never change once they are shown. A word changes for the last time {good[0]} after it was spoken "
        f"(re-translation: {good[1]}; LocalAgreement, which never retracts a word: {good[2]}). Redraft needs "
        f"{share(ar):.0%} of the processor time of re-translation, and {share(peer):.0%} of LocalAgreement's. These "
        f"are medians over {streams} streams and three languages.{without}{_quality(ours, ar, peer)}"
        f"{_talk(results)}"
    )


def _quality(*lines: Sequence[Line]) -> str:
    """Return a sentence on the final captions of the default, `ar` and the peer; nothing without references."""
    scores = [[float(line["chrf"]) for line in each if line.get("chrf") is not None] for each in lines]
    if not all(scores):
        return ""
    ours, ar, peer = map(fmean, scores)
    return (
        f" Its final captions have a chrF of {ours:.1f} (re-translation: {ar:.1f}; LocalAgreement: {peer:.1f}; "
        f"means over the {len(scores[0])} pairs of a stream and a language that have references)."
    )


def _talk(results: Sequence[Result]) -> str:
    """Return a sentence on the demo talk, which is easier than the others; nothing without it."""
    found = [lines_of(each) for each in results if each.data == "talk"]
    if not found:
        return ""
    ours, ar = (median(float(lines[name]["lag_good"]) for lines in found) for name in (OURS, "`ar`"))
    return (
        f" The sentences of the demo talk are short: there, a word changes for the last time after {ours:.1f}\u00a0s "
        f"(re-translation: {ar:.1f}\u00a0s)."
    )


def costs(results: Sequence[Result]) -> tuple[str, str]:
    """Return a table of what readers get with each line of `COMPARED`, as medians, and sentences that explain it."""
    columns = (
        ("retracted", "retracted words a minute", ".0f"),
        ("lag_first", "first shown (s)", ".2f"),
        ("lag_good", "for good (s)", ".2f"),
        ("stood", "words that never change", ".0%"),
    )
    lines = [lines_of(each) for each in results]
    cells = [
        [line, *(f"{median(float(each[line][name]) for each in lines):{form}}" for name, _, form in columns)]
        for line in COMPARED
    ]
    table = markdown_table(("method", *(heading for _, heading, _ in columns)), cells)
    streams = len({each.data for each in results})
    about = (
        f"Medians with the demo model, over {streams} streams of recognisers and three languages "
        "([benchmark](benchmarks/stream.md)). "
        "Seconds count from the end of a word in the audio; *for good* is when it changes for the last time."
    )
    return table, about


def overview(results: Sequence[Result], picture: str) -> Iterator[str]:
    """Yield the first part of the page: a table for each figure, and how many lines reach the aims."""
    yield f"{summary(results)}\n"
    yield (
        "`ar` translates every update from scratch and shows everything; `ssbd` is the method of the SSBD paper, which "
        "shows everything too; `redraft` is the default. Each stream was translated into "
        f"{listed([*dict.fromkeys(each.language_name for each in results)])}; figures are means of these. The demo "
        "talk is easy: its sentences are short and were written for this model.\n"
    )
    yield f"![Retracted words over the lag]({picture})\n\n*{ABOUT_PICTURE}*\n"
    streams = [list(group) for _, group in groupby(results, key=lambda each: each.data)]
    for name, heading, form in SHOWN:
        cells = [[stream_title(group[0]), *_means(group, name, form)] for group in streams]
        yield f"## {heading}\n"
        yield markdown_table(("stream", *COMPARED), cells)
    yield f"## Quality of {OURS}, compared with {PEER}\n"
    yield "The difference in chrF, with its 95% interval.\n"
    languages = [*dict.fromkeys(each.language_name for each in results)]
    changes = [[stream_title(group[0]), *_changes(group, languages)] for group in streams]
    yield markdown_table(("stream", *languages), [line for line in changes if any(line[1:])])
    yield f"## Our targets for {OURS}\n"
    yield f"How many of the {len(results)} streams and languages reach them, or of those with references:\n"
    yield "".join(f"- {aim}: {_reached(results, test)}\n" for aim, test in AIMS.items())
    yield "## Run it\n"


def _means(group: Sequence[Result], name: str, form: str) -> Iterator[str]:
    """Yield the mean of a figure over the languages of a stream, for each line of `COMPARED`."""
    for line in COMPARED:
        found = [lines_of(each)[line].get(name) for each in group]
        yield "–" if None in found else format(fmean(float(str(each)) for each in found), form)


def _changes(group: Sequence[Result], languages: Sequence[str]) -> Iterator[str]:
    """Yield the change in chrF of each language; nothing without references."""
    rows = {each.language_name: dict(lines_of(each)[OURS]) for each in group}
    for language in languages:
        row = rows.get(language, {})
        yield cell(row, "chrf_change", "+.1f") if row.get("chrf_change") is not None else ""


ABOUT_PICTURE = (
    "Medians over all streams and languages; down and to the left is better. With `stop=0`, unfinished translations "
    "are decoded to their end."
)


#: Aim -> whether the lines of a result reach it; None if that is unknown.
AIMS: dict[str, Callable[[Mapping[str, Line]], bool | None]] = {
    "NE shown at most a third of that of `ssbd`": lambda of: of[OURS]["ne_display"] <= of["`ssbd`"]["ne_display"] / 3,
    "words first shown at most 0.1 s later than by LocalAgreement": lambda of: (
        of[OURS]["lag_first"] <= of[PEER]["lag_first"] + 0.1
    ),
    "words shown for good at most 0.1 s later than by LocalAgreement": lambda of: (
        of[OURS]["lag_good"] <= of[PEER]["lag_good"] + 0.1
    ),
    "at most 0.8 of LocalAgreement's processor time": lambda of: (
        of[OURS]["cpu_seconds"] <= 0.8 * of[PEER]["cpu_seconds"]
    ),
    "chrF not lower than LocalAgreement's by more than its interval": lambda of: (
        None if of[OURS].get("chrf_change_high") is None else of[OURS]["chrf_change_high"] >= 0
    ),
}


def _reached(results: Sequence[Result], test: Callable[[Mapping[str, Line]], bool | None]) -> str:
    """Return how many results reach an aim."""
    found = [reached for each in results if (reached := test(lines_of(each))) is not None]
    return f"{sum(found)} of {len(found)}"
