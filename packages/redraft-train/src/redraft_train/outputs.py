"""Save a model's outputs to a JSON Lines file as they come, and select the best of several."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from sacrebleu.metrics import CHRF

#: Ids of a prompt.
Key: TypeAlias = tuple[int, ...]
#: Ids of an output; None if the model did not end it.
Output: TypeAlias = tuple[int, ...] | None


class Kept:
    """The outputs so far, for resuming an interrupted run.

    Args:
        file: JSON Lines file: the first line is the question, the others have ids and texts of prompt and output.  A
            file with another question is overwritten.
        question: identifies the run: the model and its settings.
    """

    def __init__(self, file: Path, question: Mapping[str, str | int]) -> None:
        self._file, self._header = file, json.dumps(question) + "\n"
        self.outputs: dict[Key, Output] = {}
        lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
        if lines and not lines[-1].endswith(b"\n"):  # the run was interrupted within a line
            lines.pop()
            file.write_bytes(b"".join(lines))
        if lines and lines[0].decode() == self._header:
            for row in map(json.loads, lines[1:]):
                self.outputs[tuple(row["prompt"])] = None if row["output"] is None else tuple(row["output"])

    def add(self, rows: Iterable[tuple[Key, Output, str, str | None]]) -> None:
        """Save outputs."""
        new = not self.outputs
        with self._file.open("w" if new else "a", encoding="utf-8") as out:
            if new:
                out.write(self._header)
            for prompt, output, source, translation in rows:
                self.outputs[prompt] = output
                row = {"source": source, "translation": translation, "prompt": prompt, "output": output}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")


def nearest(texts: Sequence[str], reference: str) -> int:
    """Return the index of the text closest to ``reference`` by chrF; the first of equals."""
    chrf = CHRF()
    scores = [chrf.sentence_score(text, [reference]).score for text in texts]
    return scores.index(max(scores))
