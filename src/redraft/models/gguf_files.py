"""The files of a model in GGUF format: one, or the parts into which llama-gguf-split divides a large one."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path

from redraft.errors import ModelError

log = logging.getLogger(__name__)

#: Seconds between two looks at the files of a model that is in use.
_LOOK_S = 10.0
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)
#: Beginnings of files that are often found in the place of weights, in small letters, and what they are.
_OTHERS = {
    b"": "is empty",
    b"version https://git-lfs": "is a pointer of Git LFS to a file that is missing: run `git lfs pull` in its folder",
    b"<": "is a web page, such as that of an expired link: download the model again",
    b"{": "is JSON, such as the error message of a server: download the model again",
}


def parts(path: Path) -> list[Path]:
    """Return all files of a model in order, whose names follow from that of the first part; else the file alone."""
    match = _PART.fullmatch(path.name)
    if match is None:
        return [path]
    name, _, count = match.groups()
    return [path.with_name(f"{name}-{number:05d}-of-{count}.gguf") for number in range(1, int(count) + 1)]


def size_of(path: Path) -> int:
    """Return the size of a model in bytes, in all its files that exist."""
    return sum(part.stat().st_size for part in parts(path) if part.is_file())


def other_than_weights(beginning: bytes) -> str:
    """Return what a file with this beginning is, if it is often found in the place of weights; otherwise empty."""
    start = beginning.lstrip().lower()
    return next((what for mark, what in _OTHERS.items() if (start.startswith(mark) if mark else not start)), "")


def check_gguf(path: Path) -> None:
    """Check that all files of a model are GGUF files before llama.cpp opens the first one.

    Raises:
        ModelError: a file does not exist, is a folder, or has no GGUF signature, or ``path`` is not the first part.
    """
    every = parts(path)
    if path != every[0]:
        raise ModelError(
            f"model file {str(path)!r} is one of {len(every)} parts: name the first one, {every[0].name!r}"
        )
    for part in every:
        name = f"model file {str(part)!r}"
        try:
            with part.open("rb") as file:
                beginning = file.read(64)
        except FileNotFoundError as error:
            ending = f"it is a part of {path.name!r}" if path.exists() else "`redraft models` lists models to download"
            raise ModelError(f"{name} does not exist; {ending}") from error
        except IsADirectoryError as error:
            raise ModelError(f"model {str(part)!r} is a folder; a GGUF file is needed") from error
        except OSError as error:
            raise ModelError(f"{name} cannot be read: {error.strerror}") from error
        if not beginning.startswith(b"GGUF"):
            raise ModelError(f"{name} {other_than_weights(beginning) or 'is not a GGUF file'}")


class MappedFiles:
    """The files of a model that llama.cpp maps into memory, where it sees what another program writes into them.

    A file that another one has replaced under its name is no problem: the map keeps the old one.
    """

    def __init__(self, path: Path) -> None:
        self._stamps = {part: _stamp(part) for part in parts(path)}
        self._looked = time.monotonic()

    def look(self) -> None:
        """Log files that have been written into, every few seconds, each once."""
        if time.monotonic() - self._looked < _LOOK_S:
            return
        self._looked = time.monotonic()
        for part, (known, written) in list(self._stamps.items()):
            now, when = _stamp(part)
            if now == known and when != written:
                del self._stamps[part]
                log.warning(
                    "model file %s was overwritten while it is in use, so translations may be wrong: restart, and next "
                    "time put a new file in the place of the old one with mv",
                    part,
                )


def _stamp(path: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return which file a path names, and when it was written with what size; zeros if there is none."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0), (0, 0)
    return (found.st_dev, found.st_ino), (found.st_mtime_ns, found.st_size)
