"""LongYAAL: the lag of the captions of whole recordings, as OmniSTEval measures it.

Polak et al. 2025: the captions of a recording are aligned softly to its reference segments; then LAAL is computed for
each segment over all units up to the end of the recording.  OmniSTEval computes both alignment and score.  Needs the
``omnisteval`` extra.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from redraft.captions.languages import parse_language
from redraft.errors import InputError, MissingExtra
from redraft_bench import install
from redraft_bench.eval.delays import delays, join, pairs, split, unit
from redraft_bench.eval.quality import bleu_tokenizer
from redraft_bench.eval.record import Record
from redraft_bench.eval.stream import Stream


@dataclass(frozen=True, slots=True)
class LongYaal:
    """LongYAAL in seconds, and the quality of the same alignment.

    Attributes:
        lag: from the times of the updates.
        bleu: BLEU of the aligned captions.
        chrf: chrF of the aligned captions.
        captions: the aligned captions, one for each reference.
        references: the references.
    """

    lag: float
    bleu: float
    chrf: float
    captions: tuple[str, ...]
    references: tuple[str, ...]


def long_yaal(records: Sequence[Record], stream: Stream, language: str) -> LongYaal:
    """Compute LongYAAL of one contender's records.

    Args:
        stream: the stream; segments need a reference in ``language``, a start and an end.

    Raises:
        MissingExtra: OmniSTEval is not installed.
        InputError: the stream is not timed, or OmniSTEval rejects it.
    """
    if find_spec("omnisteval") is None:
        raise MissingExtra(f"LongYAAL needs the omnisteval extra: {install('omnisteval')}")
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), records, stream, language)
        return _scored(Path(folder), language)


def _write(folder: Path, records: Sequence[Record], stream: Stream, language: str) -> None:
    """Write the input of ``omnisteval longform``: ``instances.log``, ``segments.yaml`` and ``references.txt``.

    A line of the log is a whole recording with all its captions; delays are milliseconds from its start.  The other two
    files contain the segments that have start, end and reference.
    """
    code = parse_language(language).code
    places, references = [], []
    lines: dict[str, dict[str, Any]] = {}
    for (record, segment), caption in zip(pairs(records, stream), delays(records, stream, language), strict=True):
        if not caption.timed:
            raise InputError(
                f"OmniSTEval needs a time for every update; utterance {record.utterance!r} lacks one: give the stream "
                "a rate"
            )
        name = f"{segment.recording or 'stream'}.wav"
        reference = split(segment.references.get(code, ""), language)
        if reference and segment.start is not None and segment.end is not None:
            # Not rounded: a delay at the end of the segment must not be less than the duration.
            places.append({"wav": name, "offset": segment.start, "duration": segment.end - segment.start})
            references.append(join(reference, language))
        line = lines.setdefault(name, {"source": name, "units": [], "delays": [], "elapsed": [], "source_length": 0.0})
        line["units"] += caption.units
        line["delays"] += _milliseconds(caption.delays)
        line["elapsed"] += _milliseconds(caption.shown)
        last = segment.updates[-1].time or 0.0
        line["source_length"] = max(line["source_length"], *_milliseconds((last, segment.end or 0.0)))
    for line in lines.values():
        line["prediction"] = join(line.pop("units"), language)
    texts = {
        "instances.log": "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines.values()),
        "segments.yaml": json.dumps(places, ensure_ascii=False) + "\n",  # JSON is YAML
        "references.txt": "".join(reference + "\n" for reference in references),
    }
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8", newline="\n")


def _milliseconds(seconds: Iterable[float]) -> list[float]:
    return [round(value * 1000, 3) for value in seconds]


def _scored(folder: Path, language: str) -> LongYaal:
    code, level = parse_language(language).code, "--char_level" if unit(language) == "char" else "--word_level"
    out = folder / "scores"
    command = [sys.executable, "-c", "from omnisteval.cli import main; main()", "longform"]
    command += ["--speech_segmentation", str(folder / "segments.yaml")]
    command += ["--ref_sentences_file", str(folder / "references.txt")]
    command += ["--hypothesis_file", str(folder / "instances.log"), "--output_folder", str(out), "--lang", code]
    command += ["--bleu_tokenizer", bleu_tokenizer(code), level]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    scores = out / "scores.tsv"
    if done.returncode or not scores.is_file():
        reason = done.stderr.strip().rpartition("\n")[2] or "it gave no reason"
        raise InputError(f"OmniSTEval cannot score these captions: {reason}")
    with scores.open(encoding="utf-8", newline="") as file:
        found = {row["metric"]: float(row["value"]) for row in csv.DictReader(file, delimiter="\t")}
    aligned = (out / "instances.resegmented.jsonl").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    parts = [json.loads(line) for line in aligned]
    return LongYaal(
        found["LongYAAL (CU)"] / 1000,
        found["BLEU"],
        found["chrF"],
        tuple(part["prediction"] for part in parts),
        tuple(part["reference"] for part in parts),
    )
