"""How final captions are decoded (`--final`): quality, processor time, and what changes from the last partial caption.

Partial captions are decoded once, and the final text of each segment in every way.  The changed share counts words, or
characters in Chinese and Japanese, of the last partial caption that the final one does not begin with.

python -m redraft_bench.scripts.finals --limit 60 > benchmarks/results/finals.jsonl
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import click
import numpy as np

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import open_model, resolve
from redraft.captions.events import Caption, Update
from redraft.captions.words import WORD
from redraft.decoding.drive import run
from redraft.decoding.types import Score, common_prefix
from redraft.signature import print_json, signature
from redraft.translator import Translator
from redraft_bench.eval import bootstrap
from redraft_bench.eval.figures import Row
from redraft_bench.eval.quality import statistics
from redraft_bench.eval.sets import load_set, reveal

DATA = ("flores200.devtest", "acl6060.dev", "tatoeba2021")
#: The method of the partial captions, with its defaults.
METHOD = "redraft"
FINALS = ("biased", "exact", "beam:2", "beam:4")
BRANCHES = 4
#: Fewest words of a Tatoeba sentence, so that it has partial captions.
LEAST_WORDS = 6


class _Final(NamedTuple):
    """A final caption, its decoding time in seconds, and the units of the last partial one: changed and all."""

    text: str
    seconds: float
    changed: int
    units: int


@click.command(help=__doc__)
@click.option("--data", type=click.Choice(DATA), multiple=True, default=DATA)
@click.option("--to", multiple=True, default=("de", "zh", "ja"))
@click.option("--model", default="demo")
@click.option("--limit", default=60, help="Segments a cell.")
def main(data: tuple[str, ...], to: tuple[str, ...], model: str, limit: int) -> None:
    """Print one JSON object a line for every way, data set and language."""
    with closing(open_model(model, LlamaOptions(512, branches=BRANCHES, threads=1))) as backend:
        for name in data:
            for language in to:
                test = load_set(name, language, limit, LEAST_WORDS)
                segments = [
                    _segment(backend, reveal(str(number), source, 3), language)
                    for number, source in enumerate(test.sources)
                ]
                rows = [*_rows(segments, test.references, name, language)]
                line = signature(
                    resolve(model), name, test.hash, method=METHOD, lag=3, segments=len(segments), threads=1
                )
                print_json(rows, line, sys.stdout)
                sys.stdout.flush()


def _segment(backend: LlamaCpp, updates: Sequence[Update], language: str) -> list[_Final]:
    """Return the final captions of a segment, one for each of `FINALS`."""
    with Translator(backend, [language], method=METHOD) as translator:
        for update in updates[:-1]:
            translator.translate(update)
        before, (slots,) = translator.state(language), translator.slots
        translation = translator.translations[language]
        shown = [backend.token_bytes(token) for token in before.shown]
        partial = WORD.findall(b"".join(shown).decode(errors="ignore"))
        found = []
        for final in FINALS:
            otherwise = replace(translation, settings=replace(translation.settings, final=final))
            # What the others left in the cache.
            backend.score([(slots["target"], Score(before.prompt + before.output))])
            started = time.thread_time()
            events, _ = run(otherwise.translate(before, updates[-1]), backend, slots["target"])
            seconds = time.thread_time() - started
            text = "".join(event.text for event in events if isinstance(event, Caption))
            kept = common_prefix(partial, WORD.findall(text))
            found.append(_Final(text, seconds, len(partial) - kept, len(partial)))
        return found


def _rows(segments: Sequence[Sequence[_Final]], references: Sequence[str], name: str, language: str) -> list[Row]:
    found: list[Row] = []
    base, _ = statistics([each[0].text for each in segments], references, language)["chrf"]
    for way, final in enumerate(FINALS):
        finals = [each[way] for each in segments]
        table, chrf = statistics([each.text for each in finals], references, language)["chrf"]
        gain = bootstrap.difference(table, base, chrf)
        found.append(
            {
                "method": METHOD,
                "final": final,
                "data": name,
                "target_language": language,
                "segments": len(finals),
                "chrf": round(chrf(np.asarray(table).sum(axis=0)), 2),
                "gain": round(chrf(np.asarray(table).sum(axis=0)) - chrf(np.asarray(base).sum(axis=0)), 2),
                "gain_low": round(gain.low, 2),
                "gain_high": round(gain.high, 2),
                "milliseconds": round(1e3 * sum(each.seconds for each in finals) / len(finals), 1),
                "changed": round(sum(each.changed for each in finals) / sum(each.units for each in finals), 3),
            }
        )
    return found


if __name__ == "__main__":
    main()
