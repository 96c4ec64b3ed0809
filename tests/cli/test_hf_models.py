"""Models of transformers on the command line: the demo model, exported, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra hf")
pytest.importorskip("accelerate", reason="needs the extra gguf")

from redraft.models import shipped_path
from redraft_train.recipe.export_hf import gguf_to_hf
from tests.cli.conftest import Run
from tests.cli.refusals import T, check_refusal, events

TALK = b"I have\nI have a dog.\n\n"
RUN = [*T, "--to", "ja", "--output", "jsonl", "--engine", "threads=1", "--engine", "context_length=256"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("models") / "demo"
    gguf_to_hf(shipped_path("demo-tiny"), path)
    return str(path)


@pytest.mark.parametrize(
    "more", [[], ["--engine", "dtype=bfloat16"], ["--method", "bild-early-exit", "-o", "layers=2"]]
)
def test_folder_translates(redraft: Run, folder: str, more: list[str]) -> None:
    done = redraft(*RUN, "--model", folder, *more, stdin=TALK)
    captions, errors = events(done)
    assert (done.status, errors) == (0, [])
    assert [(row["language"], row["source"]) for row in captions[:2]] == [("de", "I have"), ("ja", "I have")]
    assert {row["language"] for row in captions if row["type"] == "final"} == {"de", "ja"}
    assert all(row["text"] for row in captions if row["type"] == "final")
    assert done.err == ""


def test_prefix_hf_and_gguf_beside_it_make_pair(redraft: Run, folder: str) -> None:
    pair = ["--model", f"hf:{folder}", "--method", "bild", "--draft-model", "demo-tiny"]
    plain = redraft(*RUN, "--model", folder, "--method", "ar", stdin=TALK)
    assert redraft(*RUN, *pair, "-o", "rollback=0", "--engine", "dtype=float32", stdin=TALK) == plain


def test_engine_of_model(redraft: Run, folder: str) -> None:
    wrong = (
        redraft(*RUN, "--engine", "dtype=bfloat16", stdin=TALK),
        redraft(*RUN, "--model", folder, "--engine", "flash_attn=on", stdin=TALK),
    )
    check_refusal(wrong[0], ["redraft: --engine dtype is not for GGUF models, so leave it out", "flash_attn"])
    check_refusal(wrong[1], ["redraft: --engine flash_attn is not for transformers models, so leave it out", "dtype"])


@pytest.mark.parametrize("command", ["demo", "doctor"])
@pytest.mark.parametrize("prefix", ["", "hf:"])
def test_commands_that_need_llama_cpp_say_so(redraft: Run, folder: str, command: str, prefix: str) -> None:
    words = [folder, "is for transformers", "llama.cpp is needed: demo, demo-tiny", "GGUF file"]
    check_refusal(redraft(command, "--model", prefix + folder), words)


def test_names_that_transformers_cannot_load(redraft: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    for name in (f"hf:{tmp_path / 'none'}", str(tmp_path)):
        check_refusal(redraft(*RUN, "--model", name, stdin=TALK), ["cannot be loaded with transformers"])
