"""Models worth downloading from the Hugging Face hub, `catalogue.toml`, and the folder of downloaded ones.

Downloading needs the ``hub`` extra; using downloaded models does not.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from redraft.errors import MissingExtra, ModelError, OptionError, first_sentence, install
from redraft.folders import cache_folder


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model in the catalogue.

    Attributes:
        repository: where it is on the hub.
        files: name of each file -> its SHA-256; empty if only the first download can tell.
        size: download size in GB.
        note: what it is for.
        commit: of the repository, from which the files are; empty if only the first download can tell.
        licence: of a translation model.
        languages: number of languages that the publisher of a translation model names.
        language: what a recogniser of speech recognises; empty for translation models.
    """

    repository: str
    files: Mapping[str, str]
    size: float
    note: str
    commit: str = ""
    licence: str = ""
    languages: int = 0
    language: str = ""


_LISTED = tomllib.loads((files(__package__) / "catalogue.toml").read_text("utf-8"))
#: Translation models by name, and streaming recognisers for sherpa-onnx.
CATALOGUE, SPEECH = (
    {str(name): ListedModel(**facts) for name, facts in _LISTED[kind].items()} for kind in ("text", "speech")
)

#: Timeout of the hub in seconds.
_PATIENCE = 5


def models_folder() -> Path:
    """Return the folder of downloaded models: ``$REDRAFT_MODELS``, otherwise ``redraft/models`` in the user's cache.

    Raises:
        ModelError: neither is known, since there is no home directory.
    """
    if given := os.environ.get("REDRAFT_MODELS"):
        return Path(given).expanduser()
    if (cache := cache_folder()) is None:
        raise ModelError(
            "there is no home directory, in which downloaded models would be: set REDRAFT_MODELS to a folder"
        )
    return cache / "models"


def cached_path(name: str, listed: Mapping[str, ListedModel]) -> Path | None:
    """Return the file of a translation model, or the folder of a recogniser; None if the name is not ``listed``.

    Raises:
        ModelError: the model has not been downloaded, or not completely.
    """
    if name not in listed:
        return None
    paths = _paths(name, listed[name])
    if not all(path.exists() for path in paths.values()):
        raise ModelError(f"model {name!r} has not been downloaded yet; run: redraft models get {name}")
    return _opened(listed[name], paths)


def _paths(name: str, model: ListedModel) -> dict[str, Path]:
    """Return where each file of a model is, or will be."""
    folder = models_folder() / (name if model.language else "")
    return {file: folder / file for file in model.files}


def _opened(model: ListedModel, paths: Mapping[str, Path]) -> Path:
    path = next(iter(paths.values()))
    return path.parent if model.language else path


#: The file with the name of the default model, in the folder of downloaded ones.
_DEFAULT = "default"


def chosen_model() -> str | None:
    """Return the model that was chosen as the default with `choose`; None if none was."""
    try:
        return (models_folder() / _DEFAULT).read_text(encoding="utf-8").strip() or None
    except (OSError, ModelError):
        return None


def default_model() -> str:
    """Return the model that is used where none is named: the chosen one, otherwise the demo model."""
    return chosen_model() or "demo"


def choose(name: str) -> None:
    """Make a model the default.

    Raises:
        ModelError: the folder of downloaded models cannot be written, or is unknown.
    """
    folder = models_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _DEFAULT).write_text(f"{name}\n", encoding="utf-8")
    except OSError as error:
        raise ModelError(f"folder {str(folder)!r} of the models cannot be written: {error.strerror}") from error


def hub_host() -> str | None:
    """Return the hub's host if it does not respond, so that its client need not retry for a minute; otherwise None.

    If a proxy is set, the proxy must respond instead.
    """
    endpoint = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
    host = endpoint.hostname or ""
    proxy = None if proxy_bypass(host) else getproxies().get(endpoint.scheme)
    asked = urlsplit(proxy if "//" in proxy else f"//{proxy}") if proxy else endpoint
    port = asked.port or (80 if asked.scheme == "http" else 443)
    try:
        socket.create_connection((asked.hostname or "", port), _PATIENCE).close()
    except OSError:
        return host
    return None


def fetch(name: str, revision: str | None = None) -> tuple[Path, str]:
    """Download a model of the catalogue with a progress bar, or check its files if they are there.

    All files are from one commit, and their SHA-256 must be right.  The catalogue says both for most models.  Of
    others, the first download is trusted: the folder of downloaded models keeps its commit and hashes in a file.

    Args:
        name: name in the catalogue.
        revision: branch, tag or commit to use instead, for which the hub's hashes count.

    Returns:
        Its file, or the folder of a recogniser, and its commit, which pins all files if it is given as the revision.

    Raises:
        OptionError: the name is not in the catalogue.
        MissingExtra: huggingface_hub is not installed.
        ModelError: there is no network, or the download failed, or a file has another hash, and was removed.
    """
    listed = CATALOGUE.get(name) or SPEECH.get(name)
    if listed is None:
        raise OptionError(f"model {name!r} is not in the catalogue: {', '.join((*CATALOGUE, *SPEECH))}")
    model = listed if listed.commit else replace(listed, **_kept().get(name, {}))
    paths = _paths(name, model)
    there = model.commit and all(path.exists() for path in paths.values())
    if there and revision in (None, model.commit) and _hashes(paths) == model.files:
        return _opened(model, paths), model.commit
    commit = _download(name, model, paths, revision)
    if not listed.commit:
        _keep(name, commit, _hashes(paths))
    return _opened(model, paths), commit


def _download(name: str, model: ListedModel, paths: Mapping[str, Path], revision: str | None) -> str:
    """Download the files of a model, check their hashes, and return the commit that they are from."""
    try:
        from huggingface_hub import HfApi, hf_hub_download
    except ImportError as error:
        raise MissingExtra(f"downloading models needs the hub extra: {install('hub')}") from error
    folder = next(iter(paths.values())).parent
    if (host := hub_host()) is not None:
        raise ModelError(
            f"model {name!r} could not be downloaded: no network, {host} does not answer; you can copy "
            f"{', '.join(paths)} of {model.repository} from elsewhere to {folder}"
        )
    newest = "" if revision else "; --revision main gets the newest files"
    try:
        found = HfApi().model_info(model.repository, revision=revision or model.commit or "main", files_metadata=True)
        expected = {each.rfilename: each.lfs.sha256 for each in found.siblings or () if each.lfs}
        if found.sha == model.commit:
            expected |= model.files
        for file, path in paths.items():
            hf_hub_download(model.repository, file, revision=found.sha, local_dir=folder)
            if file in expected and _hashes({file: path})[file] != expected[file]:
                path.unlink()
                raise ModelError(
                    f"{file} of {model.repository} does not have the SHA-256 that it should have, and was removed: "
                    f"download it again{newest}"
                )
    except ModelError:
        raise
    except Exception as error:  # of the hub's library, and of those that it uses for HTTP
        raise ModelError(
            f"model {name!r} could not be downloaded from {model.repository}: {first_sentence(error)}{newest}"
        ) from error
    return str(found.sha)


#: The file with the commits and hashes of downloaded models that the catalogue does not pin, in their folder.
_PINS = "pins.json"


def _kept() -> dict[str, Any]:
    """Return what was kept of earlier downloads: name -> commit, and SHA-256 of each file."""
    path = models_folder() / _PINS
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise ModelError(f"{str(path)!r} cannot be read: remove it, and download the models again") from error


def _keep(name: str, commit: str, hashes: Mapping[str, str]) -> None:
    pins = _kept() | {name: {"commit": commit, "files": hashes}}
    (models_folder() / _PINS).write_text(json.dumps(pins, indent=1), encoding="utf-8")


def _hashes(paths: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of each file."""
    found = {}
    for name, path in paths.items():
        with path.open("rb") as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
