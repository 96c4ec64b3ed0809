"""Write logs in the formats of simulstream and OmniSTEval, so that their scorers can score a recorded run.

Tokens are words or, in languages written without spaces, characters without spaces.  References are written the same
way, so that all tools count the same units.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from redraft.captions.languages import parse_language
from redraft.errors import InputError
from redraft_bench.eval.delays import changes, delays, join, pairs, split, unit
from redraft_bench.eval.record import Record
from redraft_bench.eval.stream import Stream


def write_simulstream(folder: Path, records: Sequence[Record], stream: Stream, language: str) -> None:
    """Write the input of ``simulstream_stats`` and ``simulstream_score_latency``.

    ``metrics.jsonl`` is the log; ``config.yaml`` (``--eval-config``) sets how tokens are joined and the
    ``--latency-unit``. ``segments.yaml`` and ``references.txt`` contain the segments that have start, end and
    reference. ``computation_time`` is that of the update alone; simulstream does not count the wait for earlier
    updates.

    Raises:
        InputError: an update has no time, or the records are from another stream.
    """
    recordings: dict[str, list[dict[str, Any]]] = {}
    places, references = [], []
    code = parse_language(language).code
    for record, segment in pairs(records, stream):
        log = recordings.setdefault(segment.recording, [])
        log += _simulstream_updates(record, language)
        reference = split(segment.references.get(code, ""), language)
        if reference and segment.start is not None and segment.end is not None:
            # Not rounded: a delay at the end of the segment must not be less than the duration.
            duration = segment.end - segment.start
            places.append({"wav": _wav(segment.recording), "offset": segment.start, "duration": duration})
            references.append(join(reference, language))
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, (name, updates) in enumerate(recordings.items()):
        lines.append({"id": number, "metadata": {"wav_name": _wav(name)}})
        lines += [{"id": number, **update} for update in updates]
    _write_lines(folder / "metrics.jsonl", lines)
    config = {"detokenizer_type": "simuleval", "latency_unit": unit(language)}
    _write(folder / "config.yaml", json.dumps(config) + "\n")  # JSON is YAML
    _write(folder / "segments.yaml", json.dumps(places, ensure_ascii=False, indent=1) + "\n")
    _write(folder / "references.txt", "".join(reference + "\n" for reference in references))


def _simulstream_updates(record: Record, language: str) -> list[dict[str, Any]]:
    found = []
    for step, change in zip(record.steps, changes(record, language), strict=True):
        if step.time is None:
            raise InputError(
                f"simulstream's log needs a time for every update; utterance {record.utterance!r} lacks one: give the "
                "stream a rate"
            )
        found.append(
            {
                "total_audio_processed": step.time,
                "computation_time": step.seconds,
                "generated_tokens": change.added,
                "deleted_tokens": change.erased,
            }
        )
    return found


def _wav(recording: str) -> str:
    """Return a name with a file extension, since simulstream removes everything after the last dot."""
    return f"{recording or 'stream'}.wav"


def write_omnisteval(folder: Path, records: Sequence[Record], stream: Stream, language: str) -> None:
    """Write the input of ``omnisteval longform``: ``instances.log``, ``segments.yaml`` and ``references.txt``.

    A line of the log is a whole recording with all its captions; delays are milliseconds from its start.  The other two
    files contain the segments that have start, end and reference, as `write_simulstream` writes them.

    Raises:
        InputError: an update has no time, or the records are from another stream.
    """
    write_simulstream(folder, records, stream, language)
    lines: dict[str, dict[str, Any]] = {}
    for (_record, segment), caption in zip(pairs(records, stream), delays(records, stream, language), strict=True):
        name = _wav(segment.recording)
        line = lines.setdefault(name, {"source": name, "units": [], "delays": [], "elapsed": [], "source_length": 0.0})
        line["units"] += caption.units
        line["delays"] += _scaled(caption.delays, 1000)
        line["elapsed"] += _scaled(caption.shown, 1000)
        line["source_length"] = max(line["source_length"], *_scaled((*caption.arrivals, segment.end or 0.0), 1000))
    for line in lines.values():
        line["prediction"] = join(line.pop("units"), language)
    _write_lines(folder / "instances.log", lines.values())


def _scaled(values: Iterable[float], scale: int) -> list[float]:
    """Scale seconds to milliseconds, rounded; words are unchanged."""
    return [round(value * scale, 3) if scale > 1 else int(value) for value in values]


def _write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    _write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
