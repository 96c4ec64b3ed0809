"""Transcripts in the operator's folder: a file of JSON Lines for each session."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path

from redraft.captions.events import Caption
from redraft.captions.formats.write import JsonlWriter
from redraft.serve.transcript import Key, Transcript

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

    def rewrite(self, name: str, captions: Iterable[Caption], hidden: Container[Key]) -> None:
        """Write the file of a session again; captions that only the file has stay in it, before the others."""
        if self._folder is not None:
            path = self._folder / f"{name}.jsonl"
            fresh = path.with_suffix(".new")
            try:
                ours = {(caption.utterance, caption.language): _lines([caption]) for caption in captions}
                kept = (line for key, line in self.rows(name).items() if key not in ours and key not in hidden)
                fresh.write_text("".join([*kept, *ours.values()]), encoding="utf-8")
                fresh.replace(path)
            except (OSError, UnicodeDecodeError):
                log.exception("a corrected transcript could not be written")

    def rows(self, name: str) -> dict[Key, str]:
        """The lines of the file of a session; one that a killed server has not finished is left out."""
        rows: dict[Key, str] = {}
        path = self._folder and self._folder / f"{name}.jsonl"
        if path and path.exists():
            for line in path.read_text(encoding="utf-8").split("\n"):
                with suppress(ValueError, KeyError, TypeError):
                    row = json.loads(line)
                    rows[row["utterance"], row["language"]] = line + "\n"
        return rows


class SessionFile:
    """The file of one session, in which another server, or this one before a restart, may have written already.

    Args:
        archive: where it is.
        name: what it is called.

    Attributes:
        outdated: whether it must be written again, since captions in it were corrected, hidden or translated again.
    """

    def __init__(self, archive: Archive, name: str) -> None:
        self.outdated = False
        self._archive, self._name = archive, name
        self._had: set[Key] | None = None

    def add(self, caption: Caption) -> None:
        """Add a final caption; one that it had before the session began is replaced by `rewrite`."""
        if self._had is None:
            self._had = set()
            try:
                self._had.update(self._archive.rows(self._name))
            except (OSError, UnicodeDecodeError):
                log.exception("a transcript could not be read")
        if (caption.utterance, caption.language) in self._had:
            self.outdated = True
        else:
            self._archive.add(self._name, caption)

    def rewrite(self, transcript: Transcript) -> None:
        """Bring it up to date, if it is not."""
        if self.outdated:
            self.outdated = False
            self._archive.rewrite(self._name, transcript.kept, transcript.hidden)


def _lines(captions: Iterable[Caption]) -> str:
    out = io.StringIO()
    writer = JsonlWriter(out)
    for caption in captions:
        writer.write(caption)
    return out.getvalue()
