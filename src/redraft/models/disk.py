"""Models on this computer: GGUF files, and those of other programs.

Ollama (its FAQ, "Where are models stored?", and its package ``manifest``) has a manifest of each model in
``manifests/HOST/NAMESPACE/MODEL/TAG``, which names the weights by their SHA-256, and the weights in ``blobs``.  LM
Studio ("Import models" in its documentation) has files like those on the hub in ``models/PUBLISHER/MODEL``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from redraft.errors import ModelError, nearest
from redraft.folders import home

_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)


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


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
                beginning = file.read(40)
        except FileNotFoundError as error:
            raise ModelError(f"{name} does not exist; `redraft models` lists models to download") from error
        except OSError as error:
            raise ModelError(f"{name} cannot be read: {error.strerror}; a GGUF file is needed") from error
        if not beginning.startswith(b"GGUF"):
            why = f"it begins with {beginning!r}" if beginning else "it is empty"
            raise ModelError(f"{name} is not a GGUF file, since {why}: download it again")


#: Prefix of names -> program.
PROGRAMS = {"ollama": "Ollama", "lmstudio": "LM Studio"}

#: What is said of a model without a file that can be opened.
UNFIT = "is not a complete GGUF file without adapter"

#: Folder of Ollama's service on Linux.
_SERVICE = Path("/usr/share/ollama/.ollama/models")
#: Host and namespace of Ollama's own models, which names leave out, as in ``ollama list``.
_OWN = re.compile(r"^(registry\.ollama\.ai/|ollama\.com/)?(library/)?")
#: Media types of the layers of which a model consists.
_WEIGHTS, _ADAPTER = "application/vnd.ollama.image.model", "application/vnd.ollama.image.adapter"


def models_on_disk() -> dict[str, Path | None]:
    """Return the models of Ollama and LM Studio in order of their names.

    Returns:
        Name as given to ``--model``, such as ``ollama:qwen3:4b`` or ``lmstudio:publisher/model`` -> its file, or the
        first of its parts; None if it is not a complete GGUF file alone.
    """
    found: dict[str, Path | None] = {}
    for name, path in (*_of_ollama(), *_of_lm_studio()):
        found.setdefault(name, path)
    return dict(sorted(found.items()))


def is_on_disk(name: str) -> bool:
    """Whether a name is that of a model of Ollama or LM Studio, whether there is one or not."""
    return name.partition(":")[0] in PROGRAMS


def path_on_disk(name: str) -> Path:
    """Return the file of a model by a name of `models_on_disk`; that of Ollama may lack ``:latest``.

    Raises:
        ModelError: there is no such model, or it cannot be opened.
    """
    kind, _, wanted = name.partition(":")
    full = f"{name}:latest" if kind == "ollama" and ":" not in wanted else name
    every = models_on_disk()
    if full not in every:
        raise ModelError(f"model {name!r} is not one of {PROGRAMS[kind]}'s{nearest(full, every)}: see `redraft models`")
    if (path := every[full]) is None:
        raise ModelError(f"model {name!r} {UNFIT}: pull it again, or another one")
    return path


def _of_ollama() -> Iterator[tuple[str, Path | None]]:
    own = [user / ".ollama" / "models"] if (user := home()) else []
    chosen = os.environ.get("OLLAMA_MODELS")
    for folder in [Path(chosen)] if chosen else [*own, _SERVICE]:
        # Newer versions have the first of these folders.
        for path in (*_found(folder / "manifests-v2", "*/*/*/*"), *_found(folder / "manifests", "*/*/*/*")):
            name = _OWN.sub("", f"{'/'.join(path.parts[-4:-1])}:{path.name}")
            with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):  # no manifest
                yield f"ollama:{name}", _weights(folder, json.loads(path.read_bytes()))


def _weights(folder: Path, manifest: Any) -> Path | None:
    """Return the file of a manifest, or of one of those that it lists for a kind of engine; None if there is none."""
    if manifest.keys().isdisjoint({"layers", "manifests"}):
        manifest = json.loads(_blob(folder, manifest).read_bytes())
    if "manifests" in manifest:
        return next(filter(None, (_weights(folder, each) for each in manifest["manifests"])), None)
    layers = [layer for layer in manifest["layers"] if layer["mediaType"] in (_WEIGHTS, _ADAPTER)]
    alone = len(layers) == 1 and layers[0]["mediaType"] == _WEIGHTS and _blob(folder, layers[0]).exists()
    return _blob(folder, layers[0]) if alone else None


def _blob(folder: Path, described: Any) -> Path:
    return folder / "blobs" / Path(described["digest"].replace(":", "-")).name


def _of_lm_studio() -> Iterator[tuple[str, Path | None]]:
    every = _found(user / ".lmstudio" / "models", "*/*/*.gguf") if (user := home()) else []
    # A projector is the part of a model that sees.
    models = [path for path in every if path == parts(path)[0] and not path.name.startswith("mmproj")]
    beside = Counter(path.parent for path in models)
    for path in models:
        name = f"lmstudio:{'/'.join(path.parts[-3:-1])}"
        yield name if beside[path.parent] == 1 else f"{name}/{path.stem}", path


def _found(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a pattern in order; none in a folder that cannot be read."""
    with suppress(OSError):
        return sorted(path for path in folder.glob(pattern) if path.is_file())
    return []
