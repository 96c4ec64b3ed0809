"""Training to draft: a small model learns a large one's outputs, and first layers those of the whole model."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra train")
pytest.importorskip("peft", reason="needs the extra train")

from click.testing import CliRunner  # noqa: E402

from finetune.tiny import sentences, teacher  # noqa: E402
from redraft import Style  # noqa: E402
from redraft.backends.hf.model import backend_of  # noqa: E402
from redraft.backends.options import HfOptions  # noqa: E402
from redraft.errors import CapabilityError  # noqa: E402
from redraft_train.adapt import FineTuning, adapt, beginnings  # noqa: E402
from redraft_train.agreement import agreement  # noqa: E402
from redraft_train.batch import Example, collate, logits  # noqa: E402
from redraft_train.cli import finetune  # noqa: E402
from redraft_train.lora import Lora  # noqa: E402
from redraft_train.prefixes import Cuts, repeats  # noqa: E402
from redraft_train.teacher import HfTeacher  # noqa: E402
from tests.backends.hf import models  # noqa: E402

FAST = Lora(rank=8, alpha=16, rate=3e-2, epochs=5, batch=8)
SOURCES = sentences(24)


def settings(out: Path, **changed: Any) -> FineTuning:
    return replace(FineTuning(out, ("de",), cuts=Cuts(beginnings=1, spoken=0.0), lora=FAST), **changed)


def outputs(target: HfTeacher, drafting: HfTeacher) -> list[Example]:
    """What the target writes for the sources, under the prompts of the drafting model."""
    asked = [source.text for source in SOURCES]
    written = target.outputs([target.prompt(text, "de") for text in asked])
    return [(drafting.prompt(text, "de"), ids) for text, ids in zip(asked, written, strict=True) if ids]


def other_weights(family: str) -> HfTeacher:
    """A model of the same vocabulary that agrees with `teacher` by chance only."""
    torch.manual_seed(7)
    made = teacher(family)
    with torch.no_grad():
        for weights in made.backend.model.parameters():
            if weights.dim() == 2:
                weights.copy_(torch.randn_like(weights) * 0.3)
    return made


def test_agreement_by_hand() -> None:
    taught = teacher("qwen3")
    examples = outputs(taught, taught)
    assert examples and agreement(taught, examples).agreement == 1
    prompt, ids = examples[0]
    changed = (prompt, (*ids[:-2], (ids[-2] + 1) % 20 + 4, ids[-1]))
    found = agreement(taught, [changed])
    batch = collate([changed], taught.backend.pad_token, taught.backend.device)
    with torch.inference_mode():
        rows = logits(taught.backend.model, batch)
    assert found.positions == len(ids)
    assert found.agreement == pytest.approx(float((rows.argmax(-1) == batch.targets).float().mean()))
    assert found.cross_entropy == pytest.approx(float(-rows.log_softmax(-1)[range(len(ids)), batch.targets].mean()))
    assert agreement(taught, []).positions == 0


def test_small_model_learns_outputs_of_large_one(tmp_path: Path) -> None:
    large, small = teacher("qwen3"), other_weights("qwen3")
    known = [each for each in outputs(large, small) if not repeats(each[1])]
    assert len(known) > 5
    before = agreement(small, known)
    adapted = adapt(small.backend, SOURCES, settings(tmp_path / "new"), large.backend)
    after = agreement(HfTeacher(adapted.backend, ["de"], Style()), known)
    assert after.agreement > before.agreement + 0.2
    assert after.cross_entropy < before.cross_entropy
    rows = [json.loads(line) for line in (tmp_path / "new.training" / "outputs.de.jsonl").read_text().splitlines()[1:]]
    asked = {each.text for each in (*SOURCES, *beginnings(SOURCES, settings(tmp_path)))}
    assert {row["source"] for row in rows} == asked
    assert adapted.learnt["de"] + adapted.unfinished["de"] == 2 * len(SOURCES)


def test_large_model_with_other_vocabulary_is_refused(tmp_path: Path) -> None:
    other = models.tokenizer(plain=["z"], template="<s> $A")
    model = deepcopy(models.qwen3())
    model.resize_token_embeddings(models.VOCABULARY + 1)
    model.config.redraft = {"prompt": "{source}b"}
    large = backend_of(model, other, "large", HfOptions(64, 2, device="cpu", threads=1))
    with pytest.raises(CapabilityError, match="vocabulary"):
        adapt(teacher("qwen3").backend, SOURCES, settings(tmp_path / "new"), large)


def test_first_layers_learn_to_draft(tmp_path: Path) -> None:
    """More with the averaged loss than with that of the last layer alone."""
    found = {}
    for layers in (0, 1):
        taught = teacher("t5")
        how = settings(tmp_path / f"exit{layers}", lora=replace(FAST, early_exit=layers))
        new = adapt(taught.backend, SOURCES, how).backend
        whole, early = (HfTeacher(each, ["de"], Style()) for each in (new, new.early_exit(1)))
        found[layers] = agreement(early, outputs(whole, early)).agreement
    assert found[1] > found[0] + 0.1


def test_exit_behind_last_layer_is_refused(tmp_path: Path) -> None:
    how = settings(tmp_path / "new", lora=replace(FAST, early_exit=3))
    with pytest.raises(CapabilityError, match="must be after 1 to 2 of its 3 layers"):
        adapt(teacher("qwen3").backend, SOURCES, how)


def test_command_reports_agreement(tmp_path: Path) -> None:
    for name, made in (("large", teacher("qwen3")), ("small", other_weights("qwen3"))):
        made.backend.model.save_pretrained(tmp_path / name)
        made.backend.tokenizer.base.save_pretrained(tmp_path / name)
    data = tmp_path / "sentences.txt"
    data.write_text("\n".join(source.text for source in sentences(21)))
    small = ["--model", str(tmp_path / "small"), "--data", str(data), "--to", "de", "--out", str(tmp_path / "new")]
    fast = [
        "--epochs",
        "1",
        "--held-out",
        "1",
        "--beginnings",
        "1",
        "--engine",
        "device=cpu",
        "--engine",
        "threads=1",
        "--json",
    ]
    ran = CliRunner().invoke(finetune, [*small, *fast, "--teacher", str(tmp_path / "large")], catch_exceptions=False)
    row = json.loads(ran.stdout.splitlines()[0])
    assert 0 <= row["agreement_before"] <= 1 and 0 <= row["agreement_after"] <= 1
    assert row["cross_entropy_before"] > 0 and row["cross_entropy_after"] > 0
    both = CliRunner().invoke(finetune, [*small, *fast, "--teacher", str(tmp_path / "large"), "--early-exit", "1"])
    assert "--teacher excludes --early-exit" in str(both.exception)
