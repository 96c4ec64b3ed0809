"""Models worth downloading from the Hugging Face hub, and the folder of downloaded ones.

Downloading needs the ``hub`` extra; using downloaded models does not.
"""

from __future__ import annotations

import hashlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from redraft.errors import MissingExtra, ModelError, OptionError, first_sentence, install
from redraft.folders import cache_folder

#: Licences of several models.
APACHE, GEMMA, NON_COMMERCIAL = "Apache-2.0", "Gemma terms", "CC-BY-NC-SA 4.0, non-commercial"


@dataclass(frozen=True, slots=True)
class HubModel:
    """A GGUF on the hub.

    Attributes:
        file: its name there.
        size: download size in GB.
        languages: number of languages that the publisher names.
    """

    repository: str
    file: str
    size: float
    licence: str
    languages: int
    note: str


#: Translation models first.
CATALOGUE = {
    "hy-mt2-1.8b": HubModel("tencent/Hy-MT2-1.8B-GGUF", "Hy-MT2-1.8B-Q4_K_M.gguf", 1.1, APACHE, 38, "for laptops"),
    "hy-mt2-7b": HubModel("tencent/Hy-MT2-7B-GGUF", "Hy-MT2-7B-Q4_K_M.gguf", 4.6, APACHE, 38, "for GPUs"),
    "translategemma-4b": HubModel(
        "mradermacher/translategemma-4b-it-GGUF", "translategemma-4b-it.Q4_K_M.gguf", 2.5, GEMMA, 55, "for desktops"
    ),
    "translategemma-12b": HubModel(
        "mradermacher/translategemma-12b-it-GGUF", "translategemma-12b-it.Q4_K_M.gguf", 7.3, GEMMA, 55, "for GPUs"
    ),
    "milmmt-46-4b": HubModel(
        "mradermacher/MiLMMT-46-4B-v1.0-GGUF", "MiLMMT-46-4B-v1.0.Q4_K_M.gguf", 2.5, GEMMA, 46, "for desktops"
    ),
    "cat-translate-0.8b": HubModel(
        "mradermacher/CAT-Translate-0.8b-GGUF",
        "CAT-Translate-0.8b.Q4_K_M.gguf",
        0.5,
        "MIT",
        2,
        "Japanese and English, for small machines",
    ),
    "cat-translate-1.4b": HubModel(
        "mradermacher/CAT-Translate-1.4b-GGUF",
        "CAT-Translate-1.4b.Q4_K_M.gguf",
        0.9,
        "MIT",
        2,
        "Japanese and English, for laptops",
    ),
    "hy-mt1.5-1.8b": HubModel(
        "tencent/HY-MT1.5-1.8B-GGUF",
        "HY-MT1.5-1.8B-Q4_K_M.gguf",
        1.1,
        "own licence (not for EU, UK, South Korea)",
        38,
        "for laptops",
    ),
    "tower-plus-2b": HubModel(
        "mradermacher/Tower-Plus-2B-GGUF",
        "Tower-Plus-2B.Q4_K_M.gguf",
        1.7,
        NON_COMMERCIAL,
        22,
        "used in the SSBD paper",
    ),
    "tower-plus-9b": HubModel(
        "mradermacher/Tower-Plus-9B-GGUF", "Tower-Plus-9B.Q4_K_M.gguf", 5.8, NON_COMMERCIAL, 22, "for GPUs"
    ),
    "qwen3-0.6b": HubModel(
        "Qwen/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q8_0.gguf", 0.6, APACHE, 119, "smallest; rough translations"
    ),
    "qwen3-1.7b": HubModel("Qwen/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q8_0.gguf", 1.8, APACHE, 119, "for laptops"),
    "qwen3-4b": HubModel(
        "Qwen/Qwen3-4B-GGUF", "Qwen3-4B-Q4_K_M.gguf", 2.5, APACHE, 119, "for desktops; used in the SSBD paper"
    ),
    "qwen3-8b": HubModel("Qwen/Qwen3-8B-GGUF", "Qwen3-8B-Q4_K_M.gguf", 5.0, APACHE, 119, "for GPUs"),
    "qwen3.5-0.8b": HubModel(
        "unsloth/Qwen3.5-0.8B-GGUF", "Qwen3.5-0.8B-Q4_K_M.gguf", 0.5, APACHE, 201, "for small machines"
    ),
    "qwen3.5-2b": HubModel("unsloth/Qwen3.5-2B-GGUF", "Qwen3.5-2B-Q4_K_M.gguf", 1.3, APACHE, 201, "for laptops"),
    "qwen3.5-4b": HubModel("unsloth/Qwen3.5-4B-GGUF", "Qwen3.5-4B-Q4_K_M.gguf", 2.7, APACHE, 201, "for desktops"),
    "gemma-4-e2b": HubModel(
        "unsloth/gemma-4-E2B-it-GGUF", "gemma-4-E2B-it-Q4_K_M.gguf", 3.1, APACHE, 35, "for desktops"
    ),
    "gemma-4-e4b": HubModel("unsloth/gemma-4-E4B-it-GGUF", "gemma-4-E4B-it-Q4_K_M.gguf", 5.0, APACHE, 35, "for GPUs"),
}


@dataclass(frozen=True, slots=True)
class HubFolder:
    """Files of a repository on the hub that form one model, a recogniser of speech in ``language``."""

    repository: str
    files: tuple[str, ...]
    size: float
    note: str
    language: str


_ZIPFORMER = "csukuangfj/sherpa-onnx-streaming-zipformer-"
_KROKO = "encoder.onnx", "decoder.onnx", "joiner.onnx", "tokens.txt"

#: Streaming recognisers for sherpa-onnx by name.
SPEECH = {
    "zipformer-en": HubFolder(
        f"{_ZIPFORMER}en-2023-06-26",
        (
            "encoder-epoch-99-avg-1-chunk-16-left-128.int8.onnx",
            "decoder-epoch-99-avg-1-chunk-16-left-128.onnx",
            "joiner-epoch-99-avg-1-chunk-16-left-128.int8.onnx",
            "tokens.txt",
        ),
        0.08,
        "recognises English speech; capitals only, no punctuation",
        "en",
    ),
    "zipformer-zh-en": HubFolder(
        f"{_ZIPFORMER}bilingual-zh-en-2023-02-20",
        (
            "encoder-epoch-99-avg-1.int8.onnx",
            "decoder-epoch-99-avg-1.onnx",
            "joiner-epoch-99-avg-1.int8.onnx",
            "tokens.txt",
        ),
        0.2,
        "recognises Chinese speech, also with English words",
        "zh",
    ),
    "kroko-en": HubFolder(
        f"{_ZIPFORMER}en-kroko-2025-08-06", _KROKO, 0.07, "recognises English speech; licence CC-BY-SA 4.0", "en"
    ),
    "kroko-de": HubFolder(
        f"{_ZIPFORMER}de-kroko-2025-08-06", _KROKO, 0.07, "recognises German speech; licence CC-BY-SA 4.0", "de"
    ),
    "kroko-es": HubFolder(
        f"{_ZIPFORMER}es-kroko-2025-08-06", _KROKO, 0.15, "recognises Spanish speech; licence CC-BY-SA 4.0", "es"
    ),
}

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


def cached_path(name: str) -> Path | None:
    """Return the file of a model in the catalogue; None if the name is not in it.

    Raises:
        ModelError: the model has not been downloaded.
    """
    if name not in CATALOGUE:
        return None
    path = models_folder() / CATALOGUE[name].file
    if not path.exists():
        raise ModelError(f"model {name!r} has not been downloaded yet; run: redraft models get {name}")
    return path


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


def speech_folder(name: str) -> Path | None:
    """Return the folder of a recogniser in the list; None if the name is not in it.

    Raises:
        ModelError: the recogniser has not been downloaded, or not completely.
    """
    if name not in SPEECH:
        return None
    folder = models_folder() / name
    if not all((folder / file).exists() for file in SPEECH[name].files):
        raise ModelError(f"model {name!r} has not been downloaded yet; run: redraft models get {name}")
    return folder


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


@dataclass(frozen=True, slots=True)
class Fetched:
    """A downloaded model.

    Attributes:
        path: its file, or the folder of a recogniser.
        commit: of its repository; given as the revision, it pins all files.
    """

    path: Path
    commit: str


def fetch(name: str, revision: str = "main") -> Fetched:
    """Download a listed model with a progress bar, all its files from one commit, and check their SHA-256.

    Args:
        name: name in the catalogue or in the list of recognisers.
        revision: branch, tag or commit of its repository; a commit pins the files.

    Raises:
        OptionError: the name is not in the catalogue.
        MissingExtra: huggingface_hub is not installed.
        ModelError: there is no network, or the download failed.
    """
    model = CATALOGUE.get(name) or SPEECH.get(name)
    if model is None:
        raise OptionError(f"model {name!r} is not in the catalogue: {', '.join((*CATALOGUE, *SPEECH))}")
    try:
        from huggingface_hub import HfApi, hf_hub_download
    except ImportError as error:
        raise MissingExtra(f"downloading models needs the hub extra: {install('hub')}") from error
    files, folder = ([model.file], "") if isinstance(model, HubModel) else (model.files, name)
    if (host := hub_host()) is not None:
        raise ModelError(
            f"model {name!r} could not be downloaded: no network, {host} does not answer; you can copy "
            f"{', '.join(files)} of {model.repository} from elsewhere to {models_folder() / folder}"
        )
    place = models_folder() / folder
    try:
        found = HfApi().model_info(model.repository, revision=revision, files_metadata=True)
        hashes = {each.rfilename: each.lfs.sha256 for each in found.siblings or () if each.lfs}
        for file in files:
            path = Path(hf_hub_download(model.repository, file, revision=found.sha, local_dir=place))
            if file in hashes and _sha256(path) != hashes[file]:
                path.unlink()
                raise ModelError(f"{file} of {model.repository} arrived broken and was removed: download it again")
        return Fetched(path if isinstance(model, HubModel) else place, found.sha)
    except ModelError:
        raise
    except Exception as error:  # of the hub's library, and of those that it uses for HTTP
        raise ModelError(
            f"model {name!r} could not be downloaded from {model.repository}: {first_sentence(error)}"
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
