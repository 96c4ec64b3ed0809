"""Outputs of a model, kept in a JSON Lines file as they come, and which of several is the best."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from sacrebleu.metrics import CHRF

#: Ids of a prompt.
Key: TypeAlias = tuple[int, ...]
#: Ids of an output; None where the model has not ended it.
Output: TypeAlias = tuple[int, ...] | None


class Kept:
    """What a model has answered so far, so that a run that was cut off goes on where it was.

    Args:
        file: its first line says what was asked; every other is a JSON object with the ids of prompt and output and
            their texts.  A file of another question starts over.
        question: what tells this run from others: the model, what it is asked.
    """

    def __init__(self, file: Path, question: Mapping[str, str | int]) -> None:
        self._file, self._header = file, json.dumps(question) + "\n"
        self.outputs: dict[Key, Output] = {}
        lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
        if lines and not lines[-1].endswith(b"\n"):  # that run was cut off in the middle of a line
            lines.pop()
            file.write_bytes(b"".join(lines))
        if lines and lines[0].decode() == self._header:
            for row in map(json.loads, lines[1:]):
                self.outputs[tuple(row["prompt"])] = None if row["output"] is None else tuple(row["output"])

    def add(self, rows: Iterable[tuple[Key, Output, str, str | None]]) -> None:
        """Keep outputs.

        Args:
            rows: prompt, output, and the texts of both.
        """
        new = not self.outputs
        with self._file.open("w" if new else "a", encoding="utf-8") as out:
            if new:
                out.write(self._header)
            for prompt, output, source, translation in rows:
                self.outputs[prompt] = output
                row = {"source": source, "translation": translation, "prompt": prompt, "output": output}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")


def nearest(texts: Sequence[str], reference: str) -> int:
    """Place of the text that is nearest to ``reference`` by chrF; the first of equals."""
    chrf = CHRF()
    scores = [chrf.sentence_score(text, [reference]).score for text in texts]
    return scores.index(max(scores))
