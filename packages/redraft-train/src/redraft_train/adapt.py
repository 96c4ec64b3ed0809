"""Prefix training of your own model: from sentences to a model for `--model FOLDER`, or an adapter.

The model translates the sentences, or has their translations given.  It learns these, and prefixes of them that end
where a prefix of the sentence no longer supports them (`redraft_train.prefixes`).  Outputs and a checkpoint are stored
beside the new model.

A small model can learn the outputs of a large one instead, on sentences and on beginnings of them, so that more of its
drafts are accepted (prediction alignment: Kim et al. 2023, BiLD, section 3.5.1).
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tqdm import tqdm

from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder
from redraft.backends.hf.facts import quiet
from redraft.backends.hf.model import backend_of
from redraft.backends.load import check_same_vocabulary
from redraft.captions.style import Style
from redraft.decoding.types import Prompt
from redraft.errors import ModelError
from redraft_train.batch import Example
from redraft_train.lora import Lora, fine_tune, merge
from redraft_train.outputs import Kept, Key, Output, nearest
from redraft_train.prefixes import Cuts, Ids, TranslatedSource, prefix_pairs, repeats
from redraft_train.sources import Sentence
from redraft_train.teacher import TEMPERATURE, HfTeacher

#: Number of prompts decoded together.
ROWS = 32


@dataclass(frozen=True, slots=True)
class FineTuning:
    """Settings of a fine-tuning run.

    Attributes:
        out: folder of the new model or adapter.
        languages: tags of the target languages.
        given: whether to learn the references of the sources instead of the model's own outputs.
        samples: sampled outputs that compete with the greedy one if a source has a reference; the best by chrF wins.
        cuts: how prefix pairs are made.
        lora: training settings.
        style: prompt style.
        adapter: whether to write only the adapter, for peft.
        seed: random seed.
    """

    out: Path
    languages: tuple[str, ...]
    given: bool = False
    samples: int = 0
    cuts: Cuts = field(default_factory=Cuts)
    lora: Lora = field(default_factory=Lora)
    style: Style = field(default_factory=Style)
    adapter: bool = False
    seed: int = 0

    @property
    def training(self) -> Path:
        """Folder of the state for resuming."""
        return self.out.with_name(self.out.name + ".training")


@dataclass(frozen=True, slots=True)
class Adapted:
    """The result of fine-tuning.

    Attributes:
        backend: the new model.
        learnt: target language -> number of outputs, or translations, that it has learnt.
        unfinished: target language -> number of outputs left out because they are empty or the model did not end them.
    """

    backend: HfDecoder | HfEncoderDecoder
    learnt: Mapping[str, int]
    unfinished: Mapping[str, int]


def adapt(
    backend: HfDecoder | HfEncoderDecoder,
    sources: Sequence[Sentence],
    settings: FineTuning,
    large: HfDecoder | HfEncoderDecoder | None = None,
) -> Adapted:
    """Train a model on translations and their prefixes, and write it; ``backend`` gets the new weights.

    An interrupted run resumes when it is started again with the same settings.

    Args:
        backend: the model.
        sources: what to learn from.
        settings: settings of the run.
        large: the model whose outputs it learns; None for itself, or for the translations of the sources.

    Raises:
        OptionError: the model does not support a language.
        CapabilityError: the large model has another vocabulary.
        ModelError: the model ended none of its outputs, or LoRA cannot be applied to it.
    """
    teacher = HfTeacher(backend, settings.languages, settings.style)
    settings.training.mkdir(parents=True, exist_ok=True)
    find = given_translations if settings.given else partial(own_outputs, settings=settings)
    if large is not None:
        check_same_vocabulary(large, backend)
        sources = [*sources, *beginnings(sources, settings)]
        find = partial(outputs_of, HfTeacher(large, settings.languages, settings.style), settings=settings)
    translated = {tag: list(find(teacher, sources, tag)) for tag in settings.languages}
    if not any(translated.values()):
        raise ModelError(f"model {(large or backend).name!r} did not finish any of its outputs")
    taught = [each for of_language in translated.values() for each in of_language]
    examples = make_examples(teacher, taught, settings) if large is None else [*whole(taught)]
    adapted = fine_tune(backend, examples, settings.lora, settings.training / "lora.pt")
    if settings.adapter:
        adapted.save_pretrained(settings.out, save_embedding_layers=False)
    merged = merge(adapted)
    if not settings.adapter:
        with quiet(local=True):
            merged.save_pretrained(settings.out)
        backend.tokenizer.base.save_pretrained(settings.out)
    learnt = {tag: len(of_language) for tag, of_language in translated.items()}
    unfinished = {tag: len(sources) - count for tag, count in learnt.items()}
    return Adapted(backend_of(merged, backend.tokenizer.base, settings.out.name, backend.options), learnt, unfinished)


def given_translations(
    teacher: HfTeacher, sources: Sequence[Sentence], language: str
) -> Iterator[TranslatedSource[Prompt]]:
    """Yield the sources with their references, begun and ended as the model does; without those that are too long."""
    prompts = [teacher.prompt(source.text, language) for source in sources]
    own = next(filter(None, teacher.outputs(prompts[:ROWS])), (teacher.end,))
    for source, prompt in zip(sources, prompts, strict=True):
        output = teacher.written(source.reference or "", own)
        if output and len(prompt.ids) + len(output) < teacher.backend.context_length:
            yield TranslatedSource(source.text, language, prompt, output, own[-1])


def own_outputs(
    teacher: HfTeacher, sources: Sequence[Sentence], language: str, settings: FineTuning
) -> Iterator[TranslatedSource[Prompt]]:
    """Yield the sources with the model's outputs, without unfinished and empty ones."""
    prompts = [teacher.prompt(source.text, language) for source in sources]
    asked = hashlib.sha256(json.dumps([_key(prompt) for prompt in prompts]).encode()).hexdigest()[:12]
    question: dict[str, str | int] = {"model": teacher.fingerprint(), "asked": asked}
    question |= {"samples": settings.samples, "seed": settings.seed}
    kept = Kept(settings.training / f"outputs.{language}.jsonl", question)
    missing = [place for place, prompt in enumerate(prompts) if _key(prompt) not in kept.outputs]
    missing.sort(key=lambda place: len(prompts[place].source_ids))
    groups = [missing[start : start + ROWS] for start in range(0, len(missing), ROWS)]
    random.Random(0).shuffle(groups)  # so that the progress bar's estimate is right
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


def beginnings(sources: Sequence[Sentence], settings: FineTuning) -> Iterator[Sentence]:
    """Yield random beginnings of the sources, as a large model gets them in live decoding."""
    generator = random.Random(settings.seed)
    for source in sources:
        words = source.text.split(" ")
        for _ in range(settings.cuts.beginnings if len(words) > 1 else 0):
            yield Sentence(" ".join(words[: generator.randrange(1, len(words))]))


def outputs_of(
    large: HfTeacher, teacher: HfTeacher, sources: Sequence[Sentence], language: str, settings: FineTuning
) -> Iterator[TranslatedSource[Prompt]]:
    """Yield the sources with a large model's outputs, as in `own_outputs`, and the small model's prompts."""
    for each in own_outputs(large, sources, language, settings):
        yield replace(each, prompt=teacher.prompt(each.source, language))


def whole(translated: Sequence[TranslatedSource[Prompt]]) -> Iterator[Example]:
    """Yield a training example for each source, without repetitive outputs."""
    for each in translated:
        if not repeats(each.output):
            yield each.prompt, (*each.output, each.end)


def _key(prompt: Prompt) -> Key:
    return prompt.encoder + prompt.ids


def best_outputs(teacher: HfTeacher, asked: Sequence[tuple[Prompt, Sentence]], settings: FineTuning) -> list[Output]:
    """Return for every prompt the greedy output, or a sampled one closer to the reference; with end tokens."""
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
    """Return training examples of whole sources and of their prefixes."""
    parts = [translated[start : start + ROWS] for start in range(0, len(translated), ROWS)]
    generator = random.Random(settings.seed)
    with tqdm(total=len(translated), unit="sentence", desc="prefix pairs", mininterval=2) as bar:
        examples: list[Example] = []
        for part in parts:
            examples += prefix_pairs(teacher, part, settings.cuts, generator)
            bar.update(len(part))
    return examples
