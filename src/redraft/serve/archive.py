"""Transcripts in the operator's folder: a file of JSON Lines for each session."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable
from pathlib import Path

from redraft.captions.events import Caption
from redraft.captions.formats.write import JsonlWriter

log = logging.getLogger(__name__)


class Archive:
    """Writes final captions into files.  What cannot be written is logged: clients get their captions all the same.

    Args:
        folder: where to; None writes nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def add(self, name: str, caption: Caption) -> None:
        """Append a caption to the file of a session."""
        if self._folder is not None:
            try:
                with (self._folder / f"{name}.jsonl").open("a", encoding="utf-8") as file:
                    file.write(_lines([caption]))
            except OSError:
                log.exception("a caption could not be written to the folder of transcripts")

    def rewrite(self, name: str, captions: Iterable[Caption]) -> None:
        """Write the file of a session again, of whose captions some were corrected or hidden."""
        if self._folder is not None:
            path = self._folder / f"{name}.jsonl"
            fresh = path.with_suffix(".new")
            try:
                fresh.write_text(_lines(captions), encoding="utf-8")
                fresh.replace(path)
            except OSError:
                log.exception("a corrected transcript could not be written")


def _lines(captions: Iterable[Caption]) -> str:
    out = io.StringIO()
    writer = JsonlWriter(out)
    for caption in captions:
        writer.write(caption)
    return out.getvalue()
