"""How final captions are chosen (`redraft.captions.finals`): quality, time, and what changes for the reader.

Partial captions are decoded once, and the final text of each segment in every way.  The changed share counts words, or
characters in Chinese and Japanese, of the last partial caption that the final one does not begin with.  With --list,
every final caption of the demo talk that differs between the ways is printed instead, for anyone to judge.

python -m redraft_bench.scripts.finals > benchmarks/results/finals.jsonl
python -m redraft_bench.scripts.finals --list > benchmarks/results/finals-talk.jsonl
python -m redraft_bench.scripts.finals --model qwen-0.5b --data tatoeba2021 --limit 100 --way "search in time"
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import click
import numpy as np

from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import open_model
from redraft.backends.options import LlamaOptions
from redraft.captions.events import Caption, Update
from redraft.captions.state import START, Settings
from redraft.captions.talk import load_talk
from redraft.captions.words import WORD
from redraft.decoding.drive import run
from redraft.decoding.method import Value
from redraft.decoding.methods import get_method
from redraft.decoding.types import Score, common_prefix
from redraft.signature import print_json, signature
from redraft.translator import Translator
from redraft_bench.bench.data import open_stream
from redraft_bench.eval import bootstrap
from redraft_bench.eval.contender import SHOWN
from redraft_bench.eval.figures import Row
from redraft_bench.eval.quality import statistics
from redraft_bench.eval.sets import SETS
from redraft_bench.scripts.real_models import MODELS, with_style

#: Data set -> number of its segments.
DATA = {"flores200.devtest": 100, "acl6060.dev": 100, "tatoeba2021": 300, "spoken": 150}
#: The method of the partial captions, with its defaults.
METHOD = "redraft"
Ways: TypeAlias = Mapping[str, tuple[str, Mapping[str, Value]]]
#: Way -> method and options.  *Search* has all the time that it needs, so that other programs do not decide; *search in
#: time* has that of the default, in which large models search only what is doubtful.
WAYS: Ways = {
    "no search": (METHOD, {"search": 0}),
    "search": (METHOD, {"search": 60_000}),
    "search in time": (METHOD, {}),
    "ar": ("ar", {}),
}
#: The ways that the others are compared with.
PLAIN = ("no search", "ar")
#: Fewest words of a segment, so that it has partial captions.
LEAST_WORDS = 6


class _Final(NamedTuple):
    """A final caption, its decoding time in seconds, and the units of the last partial one: changed and all."""

    text: str
    seconds: float
    changed: int
    units: int


@click.command(help=__doc__)
@click.option("--data", type=click.Choice([*DATA]), multiple=True, default=tuple(DATA))
@click.option("--to", multiple=True, default=("de", "zh", "ja"))
@click.option("--model", default="demo", help=f"One of {', '.join(MODELS)}, or as for `redraft translate`.")
@click.option("--limit", default=0, help="Segments a cell; 0 takes those of the page.")
@click.option("--way", "chosen", type=click.Choice([*WAYS]), multiple=True, default=("search",))
@click.option("--list", "listed", is_flag=True, help="Print the final captions of the demo talk that differ.")
def main(
    data: tuple[str, ...], to: tuple[str, ...], model: str, limit: int, chosen: tuple[str, ...], listed: bool
) -> None:
    """Print one JSON object a line for every way, data set and language."""
    ways = {way: how for way, how in WAYS.items() if way in (*PLAIN, *chosen)}
    path, _ = with_style(model, "de")
    with closing(open_model(str(path), LlamaOptions(512, slots=2, threads=1))) as backend:
        if listed:
            for language in to:
                signed = signature(path, "talk", "", method=METHOD)
                for row in _talk(backend, language, model, limit, ways):
                    click.echo(json.dumps({**row, "signature": signed}, ensure_ascii=False))
            return
        for name in data:
            for language in to:
                words = LEAST_WORDS if name in SETS else 0
                stream = open_stream(name, language, limit=limit or DATA[name], least_words=words, lag=2)
                segments = [_segment(backend, each.updates, language, model, ways) for each in stream.segments]
                references = [each.references.get(language, "") for each in stream.segments]
                of = {} if model == "demo" else {"model": model}
                rows = [{**row, **of} for row in _rows(segments, references, name, language)]
                line = signature(path, name, stream.hash, method=METHOD, lag=2, segments=len(segments), threads=1)
                print_json(rows, line, sys.stdout)
                sys.stdout.flush()


def _segment(backend: LlamaCpp, updates: Sequence[Update], language: str, model: str, ways: Ways) -> dict[str, _Final]:
    """Return the final captions of a segment by some of `WAYS`."""
    _, style = with_style(model, language)
    with Translator(backend, [language], method=METHOD, style=style) as translator:
        for update in updates[:-1]:
            translator.translate(update)
        before, (slots,) = translator.state(language), translator.slots
        translation = translator.translations[language]
        shown = [backend.token_bytes(token) for token in before.shown]
        partial = WORD.findall(b"".join(shown).decode(errors="ignore"))
        found = {}
        for way, (name, options) in ways.items():
            method = get_method(name)
            settings = Settings(method, {**options, **{name: translation.settings[name] for name in SHOWN}})
            otherwise = replace(translation, settings=settings)
            if before.prompt:  # what the others left in the cache
                backend.score([(slots["target"], Score(before.prompt + before.output))])
            started = time.thread_time()
            events, _ = run(otherwise.translate(before, updates[-1]), backend, slots["target"])
            seconds = time.thread_time() - started
            text = "".join(event.text for event in events if isinstance(event, Caption))
            kept = common_prefix(partial, WORD.findall(text))
            found[way] = _Final(text, seconds, len(partial) - kept, len(partial))
        return found


def _rows(
    segments: Sequence[Mapping[str, _Final]], references: Sequence[str], name: str, language: str
) -> Iterator[Row]:
    scores = {way: statistics([each[way].text for each in segments], references, language) for way in segments[0]}
    for way in scores:
        finals = [each[way] for each in segments]
        row: Row = {
            "method": METHOD,
            "final": way,
            "data": name,
            "target_language": language,
            "segments": len(finals),
            "milliseconds": round(1e3 * sum(each.seconds for each in finals) / len(finals), 1),
            "milliseconds_p95": round(1e3 * float(np.percentile([each.seconds for each in finals], 95)), 1),
            "changed": round(sum(each.changed for each in finals) / max(1, sum(each.units for each in finals)), 3),
            "changed_finals": sum(each.changed > 0 for each in finals),
        }
        for metric, (table, statistic) in scores[way].items():
            score = statistic(np.asarray(table).sum(axis=0))
            row[metric] = round(score, 2)
            for other, field in (("no search", "gain"), ("ar", "gain_over_ar")):
                base = scores[other][metric][0]
                gain = bootstrap.difference(table, base, statistic)
                row[f"{metric}_{field}"] = round(score - statistic(np.asarray(base).sum(axis=0)), 2)
                row[f"{metric}_{field}_low"], row[f"{metric}_{field}_high"] = (round(each, 2) for each in gain)
        yield row


def _talk(backend: LlamaCpp, language: str, model: str, limit: int, ways: Ways) -> Iterator[Row]:
    """Yield the final captions of the demo talk that the ways translate differently."""
    _, style = with_style(model, language)
    talk: dict[str, list[Update]] = {}
    for update in load_talk():
        talk.setdefault(update.utterance, []).append(update)
    translators = {
        way: Translator(backend, [language], method=name, options=dict(options), style=style)
        for way, (name, options) in ways.items()
        if way != "ar"
    }
    for updates in [*talk.values()][: limit or None]:
        texts = {}
        for way, translator in translators.items():
            for update in updates:
                events = translator.translate(update)
            texts[way] = "".join(event.text for event in events if isinstance(event, Caption) and event.final)
        texts["ar"] = _alone(backend, updates[-1], language, translators)
        if len(set(texts.values())) > 1:
            yield {"target_language": language, "source": updates[-1].text, **texts}
    for translator in translators.values():
        translator.close()


def _alone(backend: LlamaCpp, update: Update, language: str, translators: Mapping[str, Translator]) -> str:
    """Return the caption of a text that is translated from scratch, in the slot of another translator."""
    (translator, *_) = translators.values()
    method = get_method("ar")
    settings = Settings(method)
    (slots,) = translator.slots
    otherwise = replace(translator.translations[language], settings=settings)
    events, _ = run(otherwise.translate(START, update), backend, slots["target"])
    return "".join(event.text for event in events if isinstance(event, Caption))


if __name__ == "__main__":
    main()
