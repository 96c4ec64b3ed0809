"""Add COMET (Rei et al. 2022) to the rows of finished runs.

The library, unbabel-comet, is not in an extra: release 2.2 requires transformers below 5 and numpy below 2, so it needs
an environment without the ``hf`` extra.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from redraft.captions.languages import parse_language
from redraft.errors import InputError, MissingExtra, ModelError
from redraft_bench.eval.record import Record, read_records
from redraft_bench.eval.stream import Stream

RECORDS = ".records.jsonl"


def add_comet(folder: Path, model: str) -> list[Path]:
    """Score the final translations of every run in a folder; return the row files that now have ``comet``.

    Args:
        folder: the folder with the runs.
        model: name or path; see `load_comet`.

    Raises:
        InputError: the folder has no finished run with references.
        MissingExtra: unbabel-comet is not installed.
        ModelError: the COMET model cannot be loaded.
    """
    load = cache(partial(load_comet, model))  # once, and only if there is something to score
    done = [path for records in sorted(folder.glob(f"*{RECORDS}")) for path in _score(records, model, load)]
    if not done:
        raise InputError(
            f"{folder} contains no finished run with references: there must be *{RECORDS} and *.rows.jsonl"
        )
    return done


def _score(records: Path, model: str, load: Callable[[], Any]) -> list[Path]:
    stem = records.name.removesuffix(RECORDS)
    path, stream_file = (records.with_name(stem + ending) for ending in (".rows.jsonl", ".stream.jsonl"))
    if not (path.exists() and stream_file.exists()):
        return []
    segments = Stream.load(stream_file).segments
    by_line: dict[str, list[Record]] = {}
    for record in read_records(records):
        by_line.setdefault(record.contender, []).append(record)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    code = parse_language(str(rows[0]["target_language"])).code
    scored = [number for number, each in enumerate(segments) if code in each.references]
    if not scored:
        return []
    # Contenders and rows were written in the same order.
    for row, found in zip(rows, by_line.values(), strict=False):
        score = comet(
            load(),
            [segments[number].source for number in scored],
            [found[number].translation for number in scored],
            [segments[number].references[code] for number in scored],
        )
        row["comet"] = round(score, 4)
        row["signature"] = f"{row['signature'].partition('|comet:')[0]}|comet:{model}"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return [path]


def load_comet(model: str) -> Any:
    """Load a COMET model.

    Args:
        model: name on the Hugging Face Hub, downloaded if it is not cached, or a checkpoint file with ``hparams.yaml``
            two folders above.

    Raises:
        MissingExtra: unbabel-comet is not installed.
        ModelError: the model cannot be downloaded or loaded.
    """
    try:
        from comet import download_model, load_from_checkpoint
    except ImportError as error:
        raise MissingExtra(
            "COMET needs unbabel-comet, best in an environment without the hf extra: pip install unbabel-comet"
        ) from error
    try:
        return load_from_checkpoint(model if Path(model).is_file() else download_model(model))
    except Exception as error:  # the library raises nothing more specific
        raise ModelError(
            f"the model {model} of COMET cannot be had ({error}): download it with "
            f"`huggingface-cli download {model}`, or name a checkpoint file"
        ) from error


def comet(loaded: Any, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return COMET of translations, about 0 to 1.

    Args:
        loaded: the model from `load_comet`.
        sources: source texts, one per segment.
        hypotheses: translations, one per segment.
        references: reference translations, one per segment.
    """
    data = [
        {"src": source, "mt": hypothesis, "ref": reference}
        for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True)
    ]
    found = loaded.predict(data, batch_size=16, gpus=0, progress_bar=False)
    return float(found.system_score)
