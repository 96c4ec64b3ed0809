"""Transcripts in the operator's folder: a JSON Lines file per session."""

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
    """Writes final captions to files.  Write errors are only logged: clients get their captions in any case.

    Args:
        folder: where to write; None writes nothing.
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
        """Rewrite the file of a session; captions that only the file has are kept, before the others."""
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
        """Return the lines of a session's file; an incomplete one from a killed server is left out."""
        rows: dict[Key, str] = {}
        path = self._folder and self._folder / f"{name}.jsonl"
        if path and path.exists():
            for line in path.read_text(encoding="utf-8").split("\n"):
                with suppress(ValueError, KeyError, TypeError):
                    row = json.loads(line)
                    rows[row["utterance"], row["language"]] = line + "\n"
        return rows


class SessionFile:
    """The file of one session, which another server or an earlier run may have written to already.

    Args:
        archive: the folder.
        name: name of the session.

    Attributes:
        outdated: whether it must be rewritten because captions in it were corrected, hidden or translated again.
    """

    def __init__(self, archive: Archive, name: str) -> None:
        self.outdated = False
        self._archive, self._name = archive, name
        self._had: set[Key] | None = None

    def add(self, caption: Caption) -> None:
        """Add a final caption; one from before the session started is replaced by `rewrite`."""
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
        """Rewrite the file if it is outdated."""
        if self.outdated:
            self.outdated = False
            self._archive.rewrite(self._name, transcript.kept, transcript.hidden)


def _lines(captions: Iterable[Caption]) -> str:
    out = io.StringIO()
    writer = JsonlWriter(out)
    for caption in captions:
        writer.write(caption)
    return out.getvalue()
