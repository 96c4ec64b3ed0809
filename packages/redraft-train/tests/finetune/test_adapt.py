"""Prefix training of tiny random models: examples, what LoRA learns, what is written, runs that were cut off."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra train")
peft = pytest.importorskip("peft", reason="needs the extra train")

from transformers import AutoModelForCausalLM  # noqa: E402

from finetune.tiny import sentences, teacher, translated  # noqa: E402
from redraft.backends.hf.model import open_hf  # noqa: E402
from redraft.backends.options import HfOptions  # noqa: E402
from redraft.errors import CapabilityError  # noqa: E402
from redraft_train import adapt as adapting  # noqa: E402
from redraft_train import lora  # noqa: E402
from redraft_train.adapt import FineTuning, adapt, best_outputs, make_examples  # noqa: E402
from redraft_train.batch import Example, collate, logits  # noqa: E402
from redraft_train.lora import Lora, fine_tune, merge  # noqa: E402
from redraft_train.prefixes import Cuts  # noqa: E402
from redraft_train.teacher import HfTeacher  # noqa: E402
from tests.backends.hf.models import END, prompts  # noqa: E402

FAST = Lora(rank=4, alpha=8, rate=3e-2, epochs=4, batch=8)
SOURCES = sentences(24)


def loss(taught: HfTeacher, model: Any, examples: list[Example]) -> float:
    """Mean loss per learnt id."""
    batch = collate(examples, taught.backend.pad_token, taught.backend.device)
    with torch.inference_mode():
        return float(torch.nn.functional.cross_entropy(logits(model, batch), batch.targets))


def settings(out: Path, **changed: Any) -> FineTuning:
    return replace(FineTuning(out, ("de",), cuts=Cuts(spoken=0.0), lora=FAST), **changed)


@pytest.mark.parametrize("family", ["llama", "m2m100"])
def test_merged_model(family: str, tmp_path: Path) -> None:
    taught = teacher(family)
    known = translated(taught, SOURCES, prompts(len(SOURCES), length=6))
    how = settings(tmp_path / "new", cuts=Cuts(beginnings=2, spoken=0.0, tolerance=1.0))
    examples = make_examples(taught, known, how)
    outputs = {each.prompt: each.output for each in known}
    assert len(examples) == 3 * len(SOURCES)
    shorter = 0
    for prompt, learnt in examples:
        begun = [each for each in known if taught.text(prompt.source_ids).strip() in each.source]
        assert learnt[-1] == END
        assert any(each.output[: len(learnt) - 1] == learnt[:-1] for each in begun)
        shorter += outputs.get(prompt) != learnt[:-1]
    assert shorter > len(SOURCES)
    before = loss(taught, taught.backend.model, examples)
    merged = merge(fine_tune(taught.backend, examples, FAST, tmp_path / "lora.pt"))
    assert loss(taught, merged, examples) < before - 0.5


@pytest.mark.parametrize("family", ["qwen3", "t5"])
def test_given_translations_are_learnt(family: str, tmp_path: Path) -> None:
    taught = teacher(family)
    pairs = [replace(source, reference=source.text[::-1]) for source in SOURCES]
    known = [*adapting.given_translations(taught, pairs, "de")]
    assert [taught.text(each.output).strip() for each in known] == [source.text[::-1] for source in SOURCES]
    assert [each.prompt for each in known] == [taught.prompt(source.text, "de") for source in SOURCES]
    assert {each.end for each in known} == {END}
    adapt(taught.backend, pairs, settings(tmp_path / "new", given=True))
    new = HfTeacher(taught.backend, ["de"], taught.style)
    before, after = (
        sum(map(sum, model.score([(each.prompt, each.output) for each in known]))) for model in (teacher(family), new)
    )
    assert after > before + 100
    assert not [*(tmp_path / "new.training").glob("outputs*")]


@pytest.mark.parametrize("family", ["qwen3", "t5"])
def test_folder_is_written_that_opens_as_trained_model(family: str, tmp_path: Path) -> None:
    taught = teacher(family)
    adapted = adapt(taught.backend, SOURCES, settings(tmp_path / "new"))
    rows = [json.loads(line) for line in (tmp_path / "new.training" / "outputs.de.jsonl").read_text().splitlines()[1:]]
    assert {row["source"] for row in rows} == {source.text for source in SOURCES}
    assert adapted.unfinished["de"] == sum(row["output"] is None or len(row["output"]) < 2 for row in rows)
    again = HfTeacher(open_hf(str(tmp_path / "new"), HfOptions(64, 2, device="cpu", threads=1)), ["de"], taught.style)
    new = HfTeacher(adapted.backend, ["de"], taught.style)
    asked = [new.prompt(source.text, "de") for source in SOURCES]
    assert [again.prompt(source.text, "de") for source in SOURCES] == asked
    assert again.outputs(asked) == new.outputs(asked)
    assert new.outputs(asked) != teacher(family).outputs(asked)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
def test_adapter_alone_fits_model_that_it_was_made_from(tmp_path: Path) -> None:
    taught = teacher("qwen3")
    taught.backend.model.save_pretrained(tmp_path / "old")
    adapted = adapt(taught.backend, SOURCES, settings(tmp_path / "new", adapter=True))
    assert not (tmp_path / "new" / "config.json").exists()
    old = AutoModelForCausalLM.from_pretrained(tmp_path / "old")
    joined = peft.PeftModel.from_pretrained(old, tmp_path / "new")
    ids = torch.tensor([prompts(1)[0]])
    with torch.inference_mode():
        torch.testing.assert_close(joined(ids).logits, adapted.backend.model(ids).logits, atol=1e-4, rtol=1e-4)


class TestRunsThatWereCutOff:
    def test_outputs_are_not_asked_for_twice(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[int] = []

        def counted(taught: Any, group: Any, how: Any) -> Any:
            asked.append(len(group))
            return best_outputs(taught, group, how)

        monkeypatch.setattr(adapting, "best_outputs", counted)
        how = settings(tmp_path / "new")
        first = [*adapting.own_outputs(teacher("llama"), SOURCES, "de", prepared(how))]
        assert sum(asked) == len(SOURCES)
        file = how.training / "outputs.de.jsonl"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[:11]))
        assert [*adapting.own_outputs(teacher("llama"), SOURCES, "de", how)] == first
        assert sum(asked) == 2 * len(SOURCES) - 10
        [*adapting.own_outputs(teacher("llama"), SOURCES, "de", replace(how, seed=1))]
        assert sum(asked) == 3 * len(SOURCES) - 10

    def test_training_goes_on_where_it_was(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        examples = made("qwen3", tmp_path)
        twice = replace(FAST, epochs=2)
        whole = fine_tune(teacher("qwen3").backend, examples, twice, tmp_path / "whole.pt")
        monkeypatch.setattr(lora, "EVERY_S", -1.0)
        steps: list[int] = []
        train_step = lora._Run.train_step

        def cut_off(run: Any, batch: Any) -> Any:
            steps.append(run.step)
            if len(steps) == 8:
                raise TimeoutError
            return train_step(run, batch)

        monkeypatch.setattr(lora._Run, "train_step", cut_off)
        with pytest.raises(TimeoutError):
            fine_tune(teacher("qwen3").backend, examples, twice, tmp_path / "cut.pt")
        resumed = fine_tune(teacher("qwen3").backend, examples, twice, tmp_path / "cut.pt")
        assert steps == [*range(8), *range(7, 2 * 9)]
        learnt, wanted = (peft.get_peft_model_state_dict(each) for each in (resumed, whole))
        for name in wanted:
            torch.testing.assert_close(learnt[name], wanted[name])
        taken = len(steps)
        fine_tune(teacher("qwen3").backend, examples, twice, tmp_path / "cut.pt")
        assert len(steps) == taken
        fine_tune(teacher("qwen3").backend, examples, replace(FAST, epochs=1), tmp_path / "cut.pt")
        assert steps[taken:] == [*range(9)]


def prepared(how: FineTuning) -> FineTuning:
    how.training.mkdir()
    return how


def made(family: str, folder: Path) -> list[Example]:
    taught = teacher(family)
    known = translated(taught, SOURCES, prompts(len(SOURCES), length=6))
    return make_examples(taught, known, settings(folder / "new"))


def test_nearest_output(tmp_path: Path) -> None:
    taught = teacher("m2m100")
    plain = [(taught.prompt(source.text, "de"), source) for source in SOURCES]
    (third, *_) = [output for output in taught.outputs([p for p, _ in plain], 0.5, 2) if output and len(output) > 3]
    sources = [replace(source, reference=taught.text(third)) for source in SOURCES]
    asked = [(prompt, source) for (prompt, _), source in zip(plain, sources, strict=True)]
    how = settings(tmp_path / "new", samples=3)
    best, greedy = best_outputs(taught, asked, how), taught.outputs([prompt for prompt, _ in asked])
    assert third in best
    assert best != greedy
    assert best_outputs(taught, plain, how)[0] in (greedy[0], None) or greedy[0] is None


class TestRefusals:
    def test_model_without_place_for_lora(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused(*_: object) -> None:
            raise ValueError("Target modules all-linear not found in the base model. Please check.")

        monkeypatch.setattr(lora, "get_peft_model", refused)
        with pytest.raises(CapabilityError, match="model 'qwen3' cannot be adapted with LoRA: .* in the base model$"):
            fine_tune(teacher("qwen3").backend, made("qwen3", tmp_path), FAST, tmp_path / "lora.pt")
