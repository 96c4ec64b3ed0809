"""Compare displays of the same outputs: flicker and lag under masks and margins.

Outputs are decoded once, with the margin of every token, and saved in --out, so an interrupted run can be resumed. Then
every display is applied to them without decoding.  NE and lags are those of the shown text, in words or characters.

python -m benchmarks.displays --limit 60 --json > benchmarks/results/displays.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_backend, resolve
from redraft.captions.events import Caption, Update
from redraft.captions.reading import Layout, Reading
from redraft.captions.stabilise import OFF, Mask, stabilise
from redraft.decoding.accept.margins import Margins
from redraft.decoding.backend import Backend
from redraft.decoding.method import Method, Setup, Value
from redraft.decoding.methods import get_method
from redraft.decoding.types import Drafter, Rule, common_prefix
from redraft.signature import print_json, signature
from redraft.translator import Translator
from redraft_bench.eval.figures import Row
from redraft_bench.eval.quality import quality
from redraft_bench.eval.record import Record, Step
from redraft_bench.eval.sets import lag_stream, load_set
from redraft_bench.eval.stream import Stream
from redraft_bench.eval.table import print_table
from redraft_bench.eval.talks import talk_stream
from redraft_bench.eval.timing import latency_figures

DATA = {"flores": "flores200.devtest", "acl": "acl6060.dev"}
DISPLAYS = {
    "mask 0": Mask(),
    "mask 3": Mask(3),
    "mask 5": Mask(5),
    "margin 0": Mask(margin=0.0),
    "margin 0.05": Mask(margin=0.05),
}
#: Reading mode by the maximum wait of a line in seconds; its input is what margin 0 shows.
READING = {f"reading {longest:g} s": Layout(37, min(1.0, longest), longest) for longest in (0.0, 1.0, 2.0, 4.0)}
#: Words per second for streams without times.
RATE = 2.5
FIGURES = ("ne_units", "latency_unit", "laal", "mean_lag", "dal")
SHOWN = ("method", "target_language", *FIGURES, "chrf")


@click.command(help=__doc__)
@click.option("--data", type=click.Choice(list(DATA)), multiple=True, default=tuple(DATA))
@click.option("--to", multiple=True, default=("de", "zh", "ja"))
@click.option("--model", default="demo")
@click.option("--beta", default=0.2)
@click.option("--first", default=0, help="Number of the first segment; others are held out.")
@click.option("--limit", default=60, help="Segments a cell.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("displays"))
def main(
    data: tuple[str, ...],
    to: tuple[str, ...],
    model: str,
    beta: float,
    first: int,
    limit: int,
    as_json: bool,
    out: Path,
) -> None:
    """Record missing outputs, then compare the displays."""
    out.mkdir(parents=True, exist_ok=True)
    backend = open_backend(model, LlamaOptions(1024, threads=1))
    for name in data:
        for language in to:
            stream = _stream(name, language, first, limit)
            file = out / f"{name}-{language}-{beta:g}-{first}.jsonl"
            _decode(backend, stream, language, beta, file)
            rows = [*_figures(backend, stream, language, file)]
            line = signature(resolve(model), stream.name, stream.hash, beta=beta, first=first)
            if as_json:
                print_json(rows, line, sys.stdout)
            else:
                print_table(rows, line, Console(), SHOWN)


def _figures(backend: Backend, stream: Stream, language: str, file: Path) -> Iterator[Row]:
    """Yield a row for every display of the outputs in ``file``."""
    shown = {title: [*_shown(backend, stream, file, mask)] for title, mask in DISPLAYS.items()}
    shown |= {title: [*_read(shown["margin 0"], layout, language)] for title, layout in READING.items()}
    for title, records in shown.items():
        row = latency_figures(records, stream, language)
        chrf = quality([record.translation for record in records], _references(stream, language), language).chrf
        yield {
            "method": title,
            "data": stream.name,
            "target_language": language,
            "segments": len(stream.segments),
            **{figure: row[figure] for figure in FIGURES},
            "chrf": round(chrf, 2),
        }


def _stream(name: str, language: str, first: int, limit: int) -> Stream:
    acl = name == "acl"
    whole = talk_stream(languages=[language]) if acl else lag_stream(load_set(DATA[name], language), language)
    return Stream(whole.name, whole.segments[first : first + limit])


def _decode(backend: Backend, stream: Stream, language: str, beta: float, file: Path) -> None:
    """Write the outputs of the segments that are not in the file yet."""
    done = len(file.read_text(encoding="utf-8").splitlines()) if file.exists() else 0
    ssbd, rules = get_method("ssbd"), list[Margins]()

    def build(setup: Setup) -> tuple[Drafter, Rule]:
        drafter, rule = ssbd.build(setup)
        rules[:] = [Margins(rule)]
        return drafter, rules[0]

    noting = Method(ssbd.name, ssbd.summary, ssbd.source, ssbd.drafter, ssbd.rule, build, ssbd.options)
    options: dict[str, Value] = {"beta": beta}
    with (
        file.open("a", encoding="utf-8") as lines,
        click.progressbar(stream.segments[done:], file=sys.stderr) as segments,
    ):
        for segment in segments:
            outputs = []
            with Translator(backend, [language], method=noting, options=options, source="raw") as translator:
                for update in segment.updates:
                    translator.translate(update)
                    ids = translator.translation(language).output
                    margins = rules[0].margins[: len(ids)] if rules else []
                    outputs.append((ids, [round(margin, 4) for margin in margins]))
            lines.write(json.dumps(outputs) + "\n")
            lines.flush()


def _shown(backend: Backend, stream: Stream, file: Path, mask: Mask) -> Iterator[Record]:
    """Yield the records of a display of the outputs."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines()[: len(stream.segments)]):
        updates = stream.segments[number].updates
        steps, shown = [], list[int]()
        for update, (ids, margins) in zip(updates, json.loads(line), strict=True):
            view = stabilise(
                [backend.token_bytes(token) for token in ids],
                mask,
                final=update.final,
                sure=_sure(mask, margins),
                standing=common_prefix(shown, ids),
            )
            shown = ids[: view.shown_length]
            steps.append(_step(update, ids, view.shown))
        yield Record(number, updates[0].utterance, "ssbd", tuple(steps))


def _read(records: Sequence[Record], layout: Layout, language: str) -> Iterator[Record]:
    """Yield the records of reading mode on another display."""
    between = "" if language in ("zh", "ja") else " "
    for record in records:
        reading, steps, lines = Reading(layout), [], list[str]()
        for step in record.steps:
            now = len(step.source.split()) / RATE if step.time is None else step.time
            caption = Caption(record.utterance, step.seq, language, step.text, final=step.final)
            lines += reading.read(caption, now)
            steps.append(replace(step, text=between.join(lines)))
        yield replace(record, steps=tuple(steps))


def _references(stream: Stream, language: str) -> list[str]:
    return [segment.references[language] for segment in stream.segments]


def _sure(mask: Mask, margins: list[float]) -> int | None:
    if mask.margin == OFF:
        return None
    least = mask.margin
    return next((place for place, margin in enumerate(margins) if margin < least), len(margins))


def _step(update: Update, ids: list[int], text: str) -> Step:
    return Step(update.seq, update.text, update.final, update.time, 0, tuple(ids), text, "", True, 0.0, 0.0, ())


if __name__ == "__main__":
    main()
