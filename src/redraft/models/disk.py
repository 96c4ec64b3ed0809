"""Models that Ollama and LM Studio have downloaded: GGUF files, which Redraft opens where they are.

Ollama (its FAQ, "Where are models stored?", and its package ``manifest``) has a manifest of each model in
``manifests/HOST/NAMESPACE/MODEL/TAG``, which names the weights by their SHA-256, and the weights in ``blobs``.  LM
Studio ("Import models" in its documentation) has files like those on the hub in ``models/PUBLISHER/MODEL``.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from redraft.errors import ModelError
from redraft.folders import home
from redraft.models.gguf_files import parts, size_of

#: Prefix of names -> program.
PROGRAMS = {"ollama": "Ollama", "lmstudio": "LM Studio"}

#: Folder of Ollama's service on Linux.
_SERVICE = Path("/usr/share/ollama/.ollama/models")
#: Folders of manifests: that of newer versions first.
_MANIFESTS = ("manifests-v2", "manifests")
#: Hosts and namespace of Ollama's own models, which names leave out.
_HOSTS, _LIBRARY = ("registry.ollama.ai", "ollama.com"), "library"
#: Media types of layers.
_WEIGHTS, _ADAPTER = "application/vnd.ollama.image.model", "application/vnd.ollama.image.adapter"
_DIGEST = re.compile(r"sha256[:-]([0-9a-fA-F]{64})")


@dataclass(frozen=True, slots=True)
class ModelOnDisk:
    """A model of another program.

    Attributes:
        name: as given to ``--model``, such as ``ollama:qwen3:4b`` or ``lmstudio:publisher/model``.
        path: its file, or the first of its parts; None if there is no GGUF file.
        problem: why it cannot be opened; empty if nothing is known against it.
    """

    name: str
    path: Path | None
    problem: str = ""

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return size_of(self.path) if self.path else 0


def models_on_disk() -> list[ModelOnDisk]:
    """Return the models of Ollama and LM Studio in order of their names."""
    found: dict[str, ModelOnDisk] = {}
    for model in (*_of_ollama(), *_of_lm_studio()):
        found.setdefault(model.name.lower(), model)
    return sorted(found.values(), key=lambda model: model.name)


def is_on_disk(name: str) -> bool:
    """Whether a name is that of a model of Ollama or LM Studio, whether there is one or not."""
    return name.partition(":")[0] in PROGRAMS


def path_on_disk(name: str) -> Path:
    """Return the file of a model of Ollama or LM Studio, by the name that `models_on_disk` gives or Ollama takes.

    Raises:
        ModelError: there is no such model, or it cannot be opened.
    """
    kind, _, wanted = name.partition(":")
    program = PROGRAMS[kind]
    if kind == "ollama":
        tagged = wanted if ":" in wanted.rpartition("/")[2] else f"{wanted}:latest"
        wanted = _without_defaults(tagged.split("/"))
    every = [model for model in models_on_disk() if model.name.startswith(kind)]
    for model in every:
        if model.name.lower() == f"{kind}:{wanted}".lower():
            if model.path is None or model.problem:
                raise ModelError(f"model {name!r} {model.problem}")
            return model.path
    if not every:
        folders = " or ".join(map(str, _ollama_folders() if kind == "ollama" else _lm_studio_folders()))
        raise ModelError(f"model {name!r} does not exist: no models of {program} can be found in {folders}")
    names = [model.name for model in every]
    near = get_close_matches(f"{kind}:{wanted}", names, 3, 0.5) or names[:3]
    raise ModelError(
        f"model {name!r} is not one of {program}'s, such as {', '.join(near)}; `redraft models` lists them all"
    )


def _ollama_folders() -> list[Path]:
    if chosen := os.environ.get("OLLAMA_MODELS"):
        return [Path(chosen)]
    own = home()
    return ([own / ".ollama" / "models"] if own else []) + [_SERVICE]


def _of_ollama() -> Iterator[ModelOnDisk]:
    for folder in _ollama_folders():
        for manifests in _MANIFESTS:
            for path in _found(folder / manifests, "*/*/*/*"):
                host, namespace, model, tag = path.parts[-4:]
                name = f"ollama:{_without_defaults([host, namespace, f'{model}:{tag}'])}"
                with suppress(OSError, ValueError):
                    yield _read_manifest(name, folder, json.loads(path.read_bytes()))


def _without_defaults(parts: list[str]) -> str:
    """Return a name as ``ollama list`` shows it: without the host and namespace of Ollama's own models."""
    if parts[0] in _HOSTS:
        parts = parts[1:]
    if parts[0] == _LIBRARY:
        parts = parts[1:]
    return "/".join(parts)


def _read_manifest(name: str, folder: Path, manifest: Any) -> ModelOnDisk:
    """Return the model of a manifest; raises `ValueError` for files that are none."""
    layers = next(filter(_weights, _layers(folder, manifest)), [])
    weights = _weights(layers)
    if not weights:
        return ModelOnDisk(name, None, "is not in GGUF format, which is needed")
    blobs = [_blob(folder, layer) for layer in weights]
    if len(blobs) > 1 or any(layer.get("mediaType") == _ADAPTER for layer in layers):
        what = "several files of weights" if len(blobs) > 1 else "an adapter"
        return ModelOnDisk(name, blobs[0], f"has {what}, which llama.cpp would not read together: merge them")
    missing = "" if blobs[0].exists() else f"is incomplete: run `ollama pull {name.removeprefix('ollama:')}`"
    return ModelOnDisk(name, blobs[0], missing)


def _layers(folder: Path, manifest: Any) -> Iterator[list[dict[str, Any]]]:
    """Yield the layers of a manifest, or of each that it lists for a kind of engine, itself or by its SHA-256."""
    if not isinstance(manifest, dict):
        raise ValueError("not a manifest")
    if layers := manifest.get("layers"):
        yield [layer for layer in layers if isinstance(layer, dict)]
    elif "digest" in manifest:
        yield from _layers(folder, json.loads(_blob(folder, manifest).read_bytes()))
    for child in manifest.get("manifests") or ():
        yield from _layers(folder, child)


def _weights(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [layer for layer in layers if layer.get("mediaType") == _WEIGHTS]


def _blob(folder: Path, layer: dict[str, Any]) -> Path:
    digest = _DIGEST.fullmatch(str(layer.get("digest")))
    if digest is None:
        raise ValueError("not a digest")
    return folder / "blobs" / f"sha256-{digest[1]}"


def _lm_studio_folders() -> list[Path]:
    if (own := home()) is None:
        return []
    pointer = own / ".lmstudio-home-pointer"  # written when LM Studio is installed elsewhere
    with suppress(OSError, ValueError):
        if place := pointer.read_text(encoding="utf-8").strip():
            return [Path(place) / "models"]
    return [own / ".lmstudio" / "models"]


def _of_lm_studio() -> Iterator[ModelOnDisk]:
    every = [path for folder in _lm_studio_folders() for path in _found(folder, "*/*/*.gguf")]
    # A projector is the part of a model that sees.
    models = [path for path in every if path == parts(path)[0] and not path.name.startswith("mmproj")]
    beside = Counter(path.parent for path in models)
    for path in models:
        name = f"lmstudio:{'/'.join(path.parts[-3:-1])}"
        yield ModelOnDisk(name if beside[path.parent] == 1 else f"{name}/{path.stem}", path)


def _found(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a pattern in order; none in a folder that cannot be read."""
    with suppress(OSError):
        return sorted(path for path in folder.glob(pattern) if path.is_file())
    return []
