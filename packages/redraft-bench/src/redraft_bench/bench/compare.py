"""Two lines of a run beside each other: the final captions that differ, and their scores with paired intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from redraft.captions.languages import parse_language
from redraft.errors import InputError
from redraft_bench.eval import bootstrap
from redraft_bench.eval.figures import Row
from redraft_bench.eval.quality import quality, statistics
from redraft_bench.eval.record import read_records
from redraft_bench.eval.stream import Stream

ENDING = ".records.jsonl"


@dataclass(frozen=True, slots=True)
class Pair:
    """The final captions of a segment.

    Attributes:
        reference: may be empty.
        gain: chrF of the second caption minus that of the first; 0 without a reference.
    """

    utterance: str
    source: str
    first: str
    second: str
    reference: str = ""
    gain: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two lines of a run.

    Attributes:
        name: name of the run: table, data and language.
        lines: the lines.
        pairs: all segments of both.
        language: primary subtag of the target language.
    """

    name: str
    lines: tuple[str, str]
    pairs: tuple[Pair, ...]
    language: str

    @property
    def different(self) -> list[Pair]:
        """The segments whose captions differ, those with the greatest difference of chrF first."""
        return sorted((each for each in self.pairs if each.first != each.second), key=lambda each: -abs(each.gain))

    def scores(self) -> dict[str, tuple[float, float, bootstrap.Interval]]:
        """Return both scores of each metric and the 95 % interval of the difference; nothing without references."""
        scored = [each for each in self.pairs if each.reference]
        if not scored:
            return {}
        references = [each.reference for each in scored]
        one, other = (
            statistics([getattr(each, side) for each in scored], references, self.language)
            for side in ("first", "second")
        )
        return {
            name: (
                statistic(np.asarray(one[name][0]).sum(axis=0)),
                statistic(np.asarray(table).sum(axis=0)),
                bootstrap.difference(table, one[name][0], statistic),
            )
            for name, (table, statistic) in other.items()
        }

    def rows(self) -> list[Row]:
        """Return an object for each caption that differs."""
        first, second = self.lines
        return [
            {
                "run": self.name,
                "utterance": each.utterance,
                "source": each.source,
                first: each.first,
                second: each.second,
                "reference": each.reference or None,
                "chrf_gain": round(each.gain, 1) if each.reference else None,
            }
            for each in self.different
        ]


def comparisons(folder: Path, first: str, second: str) -> list[Comparison]:
    """Compare two lines in every run of a folder that has both.

    Args:
        first: a line such as ``redraft stop=0``, without its display and language.

    Raises:
        InputError: no run has both lines; the message names those that there are.
    """
    found, known = [], dict[str, None]()
    for path in sorted(folder.glob(f"*{ENDING}")):
        captions: dict[str, dict[int, str]] = {}
        for record in read_records(path):
            captions.setdefault(record.contender, {})[record.segment] = record.translation
        known |= dict.fromkeys(name.partition(", ")[0] for name in captions)
        names = [_named(line, captions) for line in (first, second)]
        if None not in names:
            found.append(_compared(path, (first, second), [captions[name] for name in names if name is not None]))
    if not found:
        there = f"its lines: {', '.join(known)}" if known else "it has no runs"
        raise InputError(f"no run in {folder} has both {first!r} and {second!r}; {there}")
    return found


def _named(line: str, captions: Mapping[str, object]) -> str | None:
    """Return the only contender that is this line, with or without its display and language."""
    names = [name for name in captions if name == line or name.partition(", ")[0] == line]
    return names[0] if len(names) == 1 else None


def _compared(path: Path, lines: tuple[str, str], captions: list[dict[int, str]]) -> Comparison:
    name = path.name.removesuffix(ENDING)
    stream = Stream.load(path.with_name(f"{name}.stream.jsonl"))
    language = parse_language(name.rpartition("-")[2]).code
    pairs = []
    for number in sorted(captions[0].keys() & captions[1].keys()):
        segment, (one, other) = stream.segments[number], (each[number] for each in captions)
        reference, gain = segment.references.get(language, ""), 0.0
        if reference and one != other:
            scores = [quality([text], [reference], language).chrf for text in (one, other)]
            gain = scores[1] - scores[0]
        pairs.append(Pair(segment.utterance, segment.source, one, other, reference, gain))
    return Comparison(name, lines, tuple(pairs), language)


def printed(comparison: Comparison, limit: int) -> str:
    """Return a comparison as text, with the first captions that differ; 0 shows all."""
    first, second = comparison.lines
    different = comparison.different
    lines = [f"{comparison.name}: {len(different)} of {len(comparison.pairs)} final captions differ"]
    for metric, (one, other, interval) in comparison.scores().items():
        name = {"bleu": "BLEU", "chrf": "chrF"}[metric]
        lines.append(
            f"  {name} {one:.1f} with {first}, {other:.1f} with {second}: {other - one:+.1f} "
            f"({interval.low:+.1f} to {interval.high:+.1f})"
        )
    width = max(map(len, ("reference", first, second)))
    for each in different[: limit or None]:
        texts = {"source": each.source, first: each.first, second: each.second, "reference": each.reference}
        lines += ["", *(f"{label:>{width}}  {text}" for label, text in texts.items() if text)]
    if limit and len(different) > limit:
        lines += ["", f"{len(different) - limit} more: --limit 0 lists all"]
    return "\n".join(lines)
