"""Measure how stable a model is by itself, by plain re-translation of sentences revealed a few words at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import track

from redraft.captions.languages import parse_language
from redraft.captions.style import Style
from redraft.decoding.backend import Backend
from redraft.errors import OptionError
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.measure import Run, compare, open_runs
from redraft_bench.eval.quality import quality
from redraft_bench.eval.sets import reveal

#: Words added by each update (SSBD v2, section 4.1).
LAG = 3


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Results of plain re-translation.

    Attributes:
        sentences: number of sentences.
        ne: normalized erasure of the output (`redraft_bench.eval.measure.Erasure`).
        chrf: chrF of the final translations, 0-100; None without references.
        length: length of partial outputs relative to the final one, divided by the share of the source read: 1 keeps
            pace, less holds back.  None if no sentence had a partial update.
    """

    sentences: int
    ne: float
    chrf: float | None
    length: float | None


def steadiness(
    backend: Backend,
    language: str,
    sources: Sequence[str],
    references: Sequence[str] | None = None,
    style: Style = Style(),
    what: str = "measuring",
) -> Steadiness:
    """Measure a model with a free slot on one target language.

    Raises:
        OptionError: there are no sources.
    """
    if not sources:
        raise OptionError("sources must be one or more")
    updates = [update for number, source in enumerate(sources) for update in reveal(str(number), source, LAG)]
    progress = Console(stderr=True)
    (run,) = runs = open_runs(backend, [Contender("ar", language)], style=style)
    try:
        compare(runs, track(updates, what, console=progress, disable=not progress.is_terminal))
    finally:
        run.system.close()
    chrf = None
    if references is not None:
        translations = [record.translation for record in run.records]
        chrf = quality(translations, references, parse_language(language).code).chrf
    return Steadiness(len(sources), run.output.value, chrf, _length(run))


def _length(run: Run) -> float | None:
    partial = expected = 0.0
    for record in run.records:
        final = record.steps[-1]
        for step in record.steps[:-1]:
            partial += step.length[0]
            expected += final.length[0] * len(step.source.split()) / len(final.source.split())
    return partial / expected if expected else None
