"""Models worth downloading from the Hugging Face hub, `catalogue.toml`, and the folder of downloaded ones.

Downloading needs the ``hub`` extra; using downloaded models does not.
"""

from __future__ import annotations

import os
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from redraft.errors import ModelError, first_sentence, from_extra
from redraft.folders import cache_folder
from redraft.models.disk import sha256_of
from redraft.proxies import proxy_for


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model in the catalogue.

    Attributes:
        repository: where it is on the hub.
        files: name of each file -> its SHA-256; empty if only the hub can tell.
        size: download size in GB.
        note: what it is for.
        commit: of the repository, from which the files are; empty for the newest.
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


_LISTED = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text("utf-8"))
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
    place, paths = _places(name, listed[name])
    if not all(path.exists() for path in paths.values()):
        raise ModelError(f"model {name!r} has not been downloaded yet; run: redraft models get {name}")
    return place


def _places(name: str, model: ListedModel) -> tuple[Path, dict[str, Path]]:
    """Return the file of a translation model, or the folder of a recogniser, and where each file is, or will be."""
    folder = models_folder() / (name if model.language else "")
    paths = {file: folder / file for file in model.files}
    return folder if model.language else next(iter(paths.values())), paths


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
    """Make a model the default; raise `ModelError` if the folder of downloaded ones is unknown or cannot be written."""
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
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    asked = urlsplit(proxy_for(endpoint) or endpoint)
    try:
        port = asked.port or (80 if asked.scheme == "http" else 443)
        socket.create_connection((asked.hostname or "", port), _PATIENCE).close()
    except OSError:
        return urlsplit(endpoint).hostname or ""
    return None


def fetch(name: str, revision: str | None = None) -> tuple[Path, str]:
    """Download a model of the catalogue with a progress bar, or check its files if they are there.

    All files are from one commit, and their SHA-256 must be right.  The catalogue says both for most models; of others,
    the hub does, for the newest commit.

    Args:
        name: a name in the catalogue.
        revision: branch, tag or commit to use instead, for which the hub's hashes count.

    Returns:
        Its file, or the folder of a recogniser, and its commit, which pins all files if it is given as the revision.

    Raises:
        MissingExtra: huggingface_hub is not installed.
        ModelError: there is no network, or the download failed, or a file has another hash, and was removed.
    """
    model = (CATALOGUE | SPEECH)[name]
    place, paths = _places(name, model)
    right = all(path.exists() and sha256_of(path) == model.files[file] for file, path in paths.items())
    if right and revision in (None, model.commit):
        return place, model.commit
    return place, _download(name, model, paths, revision or model.commit or "main")


def _download(name: str, model: ListedModel, paths: Mapping[str, Path], revision: str) -> str:
    """Download the files of a model, check their hashes, and return the commit that they are from."""
    with from_extra("hub", "downloading models needs"):
        from huggingface_hub import HfApi, hf_hub_download
    folder = next(iter(paths.values())).parent
    if (host := hub_host()) is not None:
        raise ModelError(
            f"model {name!r} could not be downloaded: no network, {host} does not answer; you can copy "
            f"{', '.join(paths)} of {model.repository} from elsewhere to {folder}"
        )
    newest = "; --revision main gets the newest files" if revision == model.commit else ""
    try:
        found = HfApi().model_info(model.repository, revision=revision, files_metadata=True)
        for file in paths:
            hf_hub_download(model.repository, file, revision=found.sha, local_dir=folder)
    except Exception as error:  # of the hub's library, and of those that it uses for HTTP
        raise ModelError(
            f"model {name!r} could not be downloaded from {model.repository}: {first_sentence(error)}{newest}"
        ) from error
    expected = {each.rfilename: each.lfs.sha256 for each in found.siblings or () if each.lfs}
    expected |= model.files if found.sha == model.commit else {}
    wrong = [file for file, path in paths.items() if file in expected and sha256_of(path) != expected[file]]
    for file in wrong:
        paths[file].unlink()
    if wrong:
        raise ModelError(
            f"the SHA-256 of {', '.join(wrong)} of {model.repository} is wrong, so that was removed: download it "
            f"again{newest}"
        )
    return str(found.sha)
