"""Prefix training of a user's own model: from sentences to a model that `--model FOLDER` loads, or an adapter.

The model translates the sentences; it learns its translations, and beginnings of them that end where a beginning of the
sentence ends to support them (`redraft.finetune.prefixes`).  Outputs and a checkpoint are kept beside the new model.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder
from redraft.backends.hf.files import quiet
from redraft.backends.hf.model import backend_of
from redraft.captions.style import Style
from redraft.decoding.types import Prompt
from redraft.errors import ModelError
from redraft.finetune.batch import Example
from redraft.finetune.lora import Lora, fine_tune, merge
from redraft.finetune.outputs import Kept, Key, Output, nearest
from redraft.finetune.prefixes import Cuts, Ids, TranslatedSource, prefix_pairs
from redraft.finetune.sources import Sentence
from redraft.finetune.teacher import TEMPERATURE, HfTeacher

#: Prompts that are decoded together.
ROWS = 32


@dataclass(frozen=True, slots=True)
class FineTuning:
    """What is made of a model.

    Attributes:
        out: folder of the new model, or of the adapter.
        languages: tags of the target languages.
        samples: sampled outputs that compete with the greedy one where a source has a reference; the nearest by chrF
            wins.
        cuts: how prefix pairs are made.
        lora: how they are learnt.
        style: how prompts are made.
        adapter: whether the adapter alone is written, for peft.
        seed: of what is drawn.
    """

    out: Path
    languages: tuple[str, ...]
    samples: int = 0
    cuts: Cuts = field(default_factory=Cuts)
    lora: Lora = field(default_factory=Lora)
    style: Style = field(default_factory=Style)
    adapter: bool = False
    seed: int = 0

    @property
    def training(self) -> Path:
        """The folder of what a run that was cut off goes on from."""
        return self.out.with_name(self.out.name + ".training")


@dataclass(frozen=True, slots=True)
class Adapted:
    """What came of it.

    Attributes:
        backend: the new model.
        unfinished: outputs left out since the model did not end them or they are empty, by target language.
    """

    backend: HfDecoder | HfEncoderDecoder
    unfinished: Mapping[str, int]


def adapt(backend: HfDecoder | HfEncoderDecoder, sources: Sequence[Sentence], settings: FineTuning) -> Adapted:
    """Teach a model beginnings of its own translations, and write it; the weights of ``backend`` become the new ones.

    A run that was cut off goes on where it was when it is started again with the same settings.

    Raises:
        OptionError: the model does not know a language.
        ModelError: it has finished no output, or LoRA has no place in it.
    """
    teacher = HfTeacher(backend, settings.languages, settings.style)
    settings.training.mkdir(parents=True, exist_ok=True)
    translated = {tag: list(translate(teacher, sources, tag, settings)) for tag in settings.languages}
    if not any(translated.values()):
        raise ModelError(f"model {backend.name!r} has finished none of its outputs")
    taught = [each for of_language in translated.values() for each in of_language]
    examples = make_examples(teacher, taught, settings)
    adapted = fine_tune(backend, examples, settings.lora, settings.training / "lora.pt")
    if settings.adapter:
        adapted.save_pretrained(settings.out, save_embedding_layers=False)
    merged = merge(adapted)
    if not settings.adapter:
        with quiet(local=True):
            merged.save_pretrained(settings.out)
        backend.tokenizer.base.save_pretrained(settings.out)
    unfinished = {tag: len(sources) - len(of_language) for tag, of_language in translated.items()}
    return Adapted(backend_of(merged, backend.tokenizer.base, settings.out.name, backend.options), unfinished)


def translate(
    teacher: HfTeacher, sources: Sequence[Sentence], language: str, settings: FineTuning
) -> Iterator[TranslatedSource[Prompt]]:
    """The sources with the model's outputs, those that it has ended and that are not empty."""
    prompts = [teacher.prompt(source.text, language) for source in sources]
    asked = hashlib.sha256(json.dumps([_key(prompt) for prompt in prompts]).encode()).hexdigest()[:12]
    question: dict[str, str | int] = {"model": teacher.fingerprint(), "asked": asked}
    question |= {"samples": settings.samples, "seed": settings.seed}
    kept = Kept(settings.training / f"outputs.{language}.jsonl", question)
    missing = [place for place, prompt in enumerate(prompts) if _key(prompt) not in kept.outputs]
    missing.sort(key=lambda place: len(prompts[place].source))
    groups = [missing[start : start + ROWS] for start in range(0, len(missing), ROWS)]
    random.Random(0).shuffle(groups)  # so that the progress bar foretells the rest rightly
    with tqdm(total=len(prompts), initial=len(prompts) - len(missing), unit="sentence", desc=f"to {language}") as bar:
        for group in groups:
            outputs = best_outputs(teacher, [(prompts[place], sources[place]) for place in group], settings)
            kept.add(
                (_key(prompts[place]), output, sources[place].text, None if output is None else teacher.text(output))
                for place, output in zip(group, outputs, strict=True)
            )
            bar.update(len(group))
    for source, prompt in zip(sources, prompts, strict=True):
        output = kept.outputs[_key(prompt)]
        if output is not None and len(output) > 1:
            yield TranslatedSource(source.text, language, prompt, output[:-1], output[-1])


def _key(prompt: Prompt) -> Key:
    return prompt.encoder + prompt.ids


def best_outputs(teacher: HfTeacher, asked: Sequence[tuple[Prompt, Sentence]], settings: FineTuning) -> list[Output]:
    """For every prompt the greedy output, or a sampled one that is nearer to the reference; ends included."""
    drawn = [
        teacher.outputs([prompt for prompt, _source in asked], TEMPERATURE if number else 0.0, settings.seed + number)
        for number in range(settings.samples + 1)
    ]
    best: list[Output] = []
    for row, (_prompt, source) in enumerate(asked):
        ended: list[Ids] = [output for outputs in drawn if (output := outputs[row]) is not None]
        place = 0
        if len(ended) > 1 and source.reference is not None:
            place = nearest([teacher.text(output) for output in ended], source.reference)
        best.append(ended[place] if ended else None)
    return best


def make_examples(
    teacher: HfTeacher, translated: Sequence[TranslatedSource[Prompt]], settings: FineTuning
) -> list[Example]:
    """Whole sources and beginnings of them, with what is learnt after them."""
    parts = [translated[start : start + ROWS] for start in range(0, len(translated), ROWS)]
    generator = random.Random(settings.seed)
    with tqdm(total=len(translated), unit="sentence", desc="prefix pairs", mininterval=2) as bar:
        examples: list[Example] = []
        for part in parts:
            examples += prefix_pairs(teacher, part, settings.cuts, generator)
            bar.update(len(part))
    return examples
