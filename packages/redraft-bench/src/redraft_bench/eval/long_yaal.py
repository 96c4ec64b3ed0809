"""LongYAAL: the lag of the captions of whole recordings, as OmniSTEval measures it.

Polak et al. 2025: the captions of a recording are aligned softly to its reference segments; then LAAL is computed for
each segment over all units up to the end of the recording.  StreamLAAL stops at the end of each segment and splits
captions differently.  OmniSTEval computes both alignment and score.  Needs the ``omnisteval`` extra.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from redraft.captions.languages import parse_language
from redraft.errors import InputError, MissingExtra
from redraft_bench import install
from redraft_bench.eval.delays import unit
from redraft_bench.eval.logs import write_omnisteval
from redraft_bench.eval.quality import bleu_tokenizer
from redraft_bench.eval.record import Record
from redraft_bench.eval.stream import Stream


@dataclass(frozen=True, slots=True)
class LongYaal:
    """LongYAAL in seconds, and the quality of the same alignment.

    Attributes:
        ideal: from the times of the updates.
        computation_aware: from the times of the answers; None if the log has none.
        bleu: BLEU of the aligned captions.
        chrf: chrF of the aligned captions.
        captions: the aligned captions, one for each reference.
        references: the references.
    """

    ideal: float
    computation_aware: float | None
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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_omnisteval(folder, records, stream, language)
        return score_log(folder / "instances.log", folder / "segments.yaml", folder / "references.txt", language)


def score_log(log: Path, segments: Path, references: Path, language: str) -> LongYaal:
    """Compute LongYAAL of a log with one line per recording.

    Args:
        log: `instances.log` in OmniSTEval's format.
        segments: YAML or JSON file with ``wav``, ``offset`` and ``duration`` of each segment.
        references: text file with one line per segment.

    Raises:
        MissingExtra: OmniSTEval is not installed.
        InputError: OmniSTEval rejects the files.
    """
    if find_spec("omnisteval") is None:
        raise MissingExtra(f"LongYAAL needs the omnisteval extra: {install('omnisteval')}")
    code, by_character = parse_language(language).code, unit(language) == "char"
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-c", "from omnisteval.cli import main; main()", "longform"]
        command += ["--speech_segmentation", str(segments), "--ref_sentences_file", str(references)]
        command += ["--hypothesis_file", str(log), "--output_folder", out, "--lang", code]
        command += ["--bleu_tokenizer", bleu_tokenizer(code), "--char_level" if by_character else "--word_level"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        scores = Path(out) / "scores.tsv"
        if done.returncode or not scores.is_file():
            reason = done.stderr.strip().rpartition("\n")[2] or "it gave no reason"
            raise InputError(f"OmniSTEval cannot score {log.name}: {reason}")
        with scores.open(encoding="utf-8", newline="") as file:
            found = {row["metric"]: float(row["value"]) for row in csv.DictReader(file, delimiter="\t")}
        aligned = (Path(out) / "instances.resegmented.jsonl").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    parts = [json.loads(line) for line in aligned]
    aware = found.get("LongYAAL (CA)")
    return LongYaal(
        found["LongYAAL (CU)"] / 1000,
        None if aware is None else aware / 1000,
        found["BLEU"],
        found["chrF"],
        tuple(part["prediction"] for part in parts),
        tuple(part["reference"] for part in parts),
    )
