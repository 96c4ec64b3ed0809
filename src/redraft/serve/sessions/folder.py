"""The operator's folder of transcripts: a JSON Lines file for each session, written by a thread of its own.

The disk may be slow, full or gone, which keeps captions from nobody.  What waits is not text but which captions of
which transcript: there are never more of them than the transcript has, and what is written is what it says then.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from redraft import deadlines
from redraft.captions.events import as_object
from redraft.serve.sessions.cells import Key, key_of
from redraft.serve.sessions.transcript import Transcript

log = logging.getLogger(__name__)


class Folder:
    """Writes the files of all sessions; without a path, none.

    Use it on the event loop; its thread, which begins with the first caption, does everything that may take a while.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock, self._news, self._closing = threading.Lock(), threading.Event(), threading.Event()
        #: The files for which captions wait, in order.
        self._files: dict[SessionFile, None] = {}
        self._thread = threading.Thread(target=self._run, name="redraft-transcripts", daemon=True)

    def add(self, file: SessionFile, key: Key | None) -> None:
        """Have a caption written, replaced, or removed if it is hidden; None for all captions, which have changed."""
        if self.path is None:
            return
        with self._lock:
            file.waiting[key] = None
            file.since = time.monotonic() if file.since is None else file.since
            self._files[file] = None
        self._news.set()
        if self._thread.ident is None:
            self._thread.start()

    @property
    def late(self) -> float:
        """For how many seconds the oldest caption has waited."""
        with self._lock:
            return max((file.late for file in self._files), default=0.0)

    def close(self) -> None:
        """Write what waits, unless that takes longer than `deadlines.DISK`."""
        self._closing.set()
        self._news.set()
        if self._thread.ident is not None:
            self._thread.join(deadlines.DISK)
        if self._files:
            log.error("captions are missing in the folder of transcripts")

    def _run(self) -> None:
        while not self._closing.is_set() or self._files:
            self._news.wait()
            self._news.clear()
            with self._lock:
                files = list(self._files)
            failing = [file for file in files if not self._wrote(file)]
            if failing and self._closing.is_set():
                return
            if failing:
                self._closing.wait(deadlines.RETRY)
                self._news.set()

    def _wrote(self, file: SessionFile) -> bool:
        with self._lock:
            keys, file.waiting = file.waiting, {}
        try:
            if self.path is not None:
                file.write(self.path, keys)
        except Exception:
            if not file.failing:
                log.exception("a transcript could not be written")
            file.failing, done = True, False
        else:
            file.failing, done = False, True
        with self._lock:
            if not done:
                file.waiting = keys | file.waiting
            elif not file.waiting:
                file.since = None
                del self._files[file]
        return done


class SessionFile:
    """The file of a session's final captions, perhaps from an earlier run.

    Attributes:
        waiting: captions that are not written yet.
        since: when the oldest of them came, in seconds of the monotonic clock; None without any.
        failing: whether it could not be written, lately.

    Args:
        name: name of the session, with which the file's name ends.
        about: how the name of a new file begins.
    """

    def __init__(self, name: str, transcript: Transcript, about: str = "") -> None:
        self.waiting: dict[Key | None, None] = {}
        self.since: float | None = None
        self.failing = False
        self._name, self._transcript, self._about = name, transcript, about
        self._path: Path | None = None
        #: Captions that it has, or had before they were hidden; None while that is not known.
        self._had: set[Key] | None = None

    @property
    def late(self) -> float:
        """For how many seconds the oldest caption has waited."""
        return 0.0 if (since := self.since) is None else time.monotonic() - since

    def write(self, folder: Path, keys: dict[Key | None, None]) -> None:
        """Append captions, or rewrite the file if it has some of them, or an incomplete line.

        Raises:
            OSError: it cannot be written.
        """
        if self._path is None:
            with os.scandir(folder) as found:
                known = next((each.name for each in found if each.name.endswith(f"{self._name}.jsonl")), None)
            self._path = folder / (known or f"{self._about}{self._name}.jsonl")
        text = _read(self._path) if self._had is None else ""
        had = set(_rows(text)) if self._had is None else self._had
        added = {key for key in keys if key is not None}
        self._had = None  # unless all goes well
        if (text and not text.endswith("\n")) or None in keys or not had.isdisjoint(added):
            self._had = had | added | self._rewritten(self._path)
            return
        if lines := [line for key in keys if key is not None and (line := self._line(key))]:
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(lines))
        self._had = had | added

    def _rewritten(self, path: Path) -> set[Key]:
        """Rewrite the file: captions that only it has stay, before the others.  Return all captions that it has."""
        ours = {key: line for key in map(key_of, self._transcript.kept) if (line := self._line(key))}
        before = _rows(_read(path))
        hidden = {key for key in before if (cell := self._transcript.find(key)) and cell.hidden}
        lines = {key: line for key, line in before.items() if key not in ours and key not in hidden} | ours
        fresh = path.with_suffix(".new")
        try:
            fresh.write_text("".join(lines.values()), encoding="utf-8")
            fresh.replace(path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        return set(lines)

    def _line(self, key: Key) -> str:
        """Return the line of a caption; empty if it is hidden."""
        cell = self._transcript.find(key)
        if cell is None or cell.hidden or (caption := cell.caption) is None:
            return ""
        return json.dumps(as_object(caption), ensure_ascii=False) + "\n"


def _read(path: Path) -> str:
    """Return the text of a file, empty if there is none; a killed server may have stopped inside a character."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _rows(text: str) -> dict[Key, str]:
    """Return the lines of a transcript; an incomplete one from a killed server is left out."""
    rows: dict[Key, str] = {}
    for line in text.split("\n"):
        with suppress(ValueError, KeyError, TypeError):
            row = json.loads(line)
            rows[row["utterance"], row["language"]] = line + "\n"
    return rows
