"""Models of Ollama and LM Studio, in folders as their documentation lays them out, with a tiny GGUF inside."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from redraft.backends.load import default_contexts, open_model
from redraft.backends.options import LlamaOptions
from redraft.cli import main
from redraft.errors import ModelError
from redraft.models import disk
from redraft.models.disk import models_on_disk, path_on_disk, size_of
from tests.gguf_models import split, write_llama

OPTIONS = LlamaOptions(context_length=64, threads=1, gpu_layers=0)
_LAYER = "application/vnd.ollama.image."
MODEL, TENSOR, ADAPTER, TEMPLATE = f"{_LAYER}model", f"{_LAYER}tensor", f"{_LAYER}adapter", f"{_LAYER}template"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("weights") / "tiny.gguf", facts={"tokenizer.chat_template": "{{ 1 }}"})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory without models, on a machine without Ollama's service."""
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path / "downloaded"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OLLAMA_MODELS", raising=False)
    monkeypatch.setattr(disk, "_SERVICE", tmp_path / "none")
    return tmp_path


class Ollama:
    """Ollama's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "blobs").mkdir(parents=True)

    def blob(self, data: bytes) -> str:
        """Store data, and return its digest."""
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs" / f"sha256-{digest}").write_bytes(data)
        return f"sha256:{digest}"

    def manifest(self, *layers: tuple[str, bytes]) -> dict[str, Any]:
        listed = [{"mediaType": kind, "digest": self.blob(data), "size": len(data)} for kind, data in layers]
        config = {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": self.blob(b"{}"), "size": 2}
        return {
            "schemaVersion": 2,
            "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
            "config": config,
            "layers": listed,
        }

    def add(self, name: str, manifest: dict[str, Any]) -> None:
        """Store the manifest of a model, HOST/NAMESPACE/MODEL/TAG."""
        path = self.folder / "manifests" / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(manifest))


@pytest.fixture
def ollama(home: Path) -> Ollama:
    return Ollama(home / ".ollama" / "models")


def test_model_of_ollama(ollama: Ollama, weights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = ollama.manifest((MODEL, weights.read_bytes()), (TEMPLATE, b"{{ .Prompt }}"))
    ollama.add("registry.ollama.ai/library/tiny/latest", manifest)
    ollama.add("hf.co/someone/Tiny-GGUF/Q8_0", manifest)
    assert [(name, size_of(path)) for name, path in models_on_disk().items() if path] == [
        ("ollama:hf.co/someone/Tiny-GGUF:Q8_0", weights.stat().st_size),
        ("ollama:tiny:latest", weights.stat().st_size),
    ]
    paths = {path_on_disk(f"ollama:{name}") for name in ("tiny", "tiny:latest", "hf.co/someone/Tiny-GGUF:Q8_0")}
    assert len(paths) == 1 and paths.pop().name.startswith("sha256-")
    backend = open_model("ollama:tiny", OPTIONS)
    assert backend.metadata["tokenizer.chat_template"] == "{{ 1 }}"
    backend.close()
    assert default_contexts("ollama:tiny") >= 1
    for command in (["models", "use", "ollama:tiny:latest"], ["models", "--json"]):
        with pytest.raises(SystemExit):
            main(command)
    _, *listed = capsys.readouterr().out.splitlines()
    (row,) = [row for row in map(json.loads, listed) if row["model"] == "ollama:tiny:latest"]
    assert row["state"] == "from Ollama" and row["default"] and "sha256-" in row["provenance"]


def test_newer_folders_of_ollama(ollama: Ollama, weights: Path) -> None:
    """Manifests that are links to blobs, and one that lists a manifest for each engine."""
    gguf = json.dumps(ollama.manifest((MODEL, weights.read_bytes()))).encode()
    safetensors = {**ollama.manifest((TENSOR, b"")), "runner": "mlx", "format": "safetensors"}
    listed = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.ollama.manifest.list.v2+json",
        "manifests": [safetensors, {"digest": ollama.blob(gguf), "runner": "llamacpp", "format": "gguf"}],
    }
    digest = ollama.blob(json.dumps(listed).encode())
    link = ollama.folder / "manifests-v2" / "ollama.com" / "library" / "tiny" / "0.1b"
    link.parent.mkdir(parents=True)
    link.symlink_to(ollama.folder / "blobs" / digest.replace(":", "-"))
    assert path_on_disk("ollama:tiny:0.1b").read_bytes() == weights.read_bytes()


def test_models_of_ollama_that_cannot_be_opened(ollama: Ollama, weights: Path) -> None:
    data, host = weights.read_bytes(), "registry.ollama.ai/library"
    ollama.add(f"{host}/images/latest", ollama.manifest((TENSOR, b"1"), (TENSOR, b"2")))
    ollama.add(f"{host}/tuned/latest", ollama.manifest((MODEL, data), (ADAPTER, b"lora")))
    ollama.add(f"{host}/halves/latest", ollama.manifest((MODEL, data), (MODEL, b"GGUF more")))
    ollama.add(f"{host}/partly/latest", ollama.manifest((MODEL, b"GGUF partly")))
    path_on_disk("ollama:partly").unlink()
    escaping = {"mediaType": MODEL, "digest": f"../../{weights.relative_to(weights.anchor)}"}
    ollama.add(f"{host}/escaping/latest", {"layers": [escaping]})
    ollama.add(f"{host}/broken/latest", {})
    (ollama.folder / "manifests" / host / "broken" / "latest").write_bytes(b"\xff{")
    for name in ("images", "tuned", "halves", "partly", "escaping"):
        with pytest.raises(
            ModelError, match=f"^model 'ollama:{name}' is not a complete GGUF file without adapter: pull"
        ):
            open_model(f"ollama:{name}")
    for name in ("broken", "image"):
        with pytest.raises(ModelError, match=f"^model 'ollama:{name}' is not one of Ollama's; the nearest is ollama:"):
            open_model(f"ollama:{name}")


def test_folder_of_ollama_is_chosen_by_its_variable(
    home: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match="is not one of Ollama's: see"):
        open_model("ollama:tiny")
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "elsewhere"))
    with pytest.raises(ModelError, match="is not one of Ollama's: see"):
        open_model("ollama:tiny")
    elsewhere = Ollama(tmp_path / "elsewhere")
    elsewhere.add("registry.ollama.ai/library/tiny/latest", elsewhere.manifest((MODEL, weights.read_bytes())))
    assert path_on_disk("ollama:tiny").is_relative_to(tmp_path / "elsewhere")


def test_models_of_lm_studio(home: Path, weights: Path) -> None:
    models = home / ".lmstudio" / "models"
    for name in ("infra-ai/ocelot-v1/ocelot-v1-q4_0.gguf", "infra-ai/ocelot-v1/mmproj-ocelot-v1.gguf"):
        (models / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(weights, models / name)
    (models / "other" / "two").mkdir(parents=True)
    shutil.copy(weights, models / "other" / "two" / "two-q8_0.gguf")
    first, *_ = split(weights, models / "other" / "two")
    assert [*models_on_disk()] == [
        "lmstudio:infra-ai/ocelot-v1",
        f"lmstudio:other/two/{first.stem}",
        "lmstudio:other/two/two-q8_0",
    ]
    assert size_of(Path(str(models_on_disk()[f"lmstudio:other/two/{first.stem}"]))) > first.stat().st_size
    for name in ("infra-ai/ocelot-v1", f"other/two/{first.stem}"):
        open_model(f"lmstudio:{name}", OPTIONS).close()
    with pytest.raises(
        ModelError,
        match="'lmstudio:ocelot-v1' is not one of LM Studio's; the nearest is lmstudio:infra-ai/ocelot-v1: see",
    ):
        open_model("lmstudio:ocelot-v1")
