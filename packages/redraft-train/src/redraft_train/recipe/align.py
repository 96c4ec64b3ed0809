"""Prediction alignment (BiLD paper, section 3.5.1): fine-tune a small model on the large one's greedy outputs.

The large model translates a calibration set, y = argmax p_large(y | x), and the small one is trained on these pairs
with its original loss.  Then fewer of its drafts are rejected.  The result is measured on sources that neither model
was trained on: given the large model's output so far, how often do both have the same most probable token?
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tqdm import tqdm

from redraft import __version__
from redraft.errors import CapabilityError, ModelError, OptionError
from redraft_train.agreement import Agreement
from redraft_train.recipe.agreement import GivenExamples, agreements
from redraft_train.recipe.calibrate import Calibration, calibrate, draw, fingerprint
from redraft_train.recipe.corpus import LANGUAGES, files, split
from redraft_train.recipe.examples import Example, Mixture
from redraft_train.recipe.export import write_gguf
from redraft_train.recipe.loop import Phase, Trainer, batch_size, rank, spawn, together
from redraft_train.recipe.model import Decoder
from redraft_train.recipe.recipe import SPOKEN
from redraft_train.recipe.restart import open_gguf, read_model, read_tokenizer
from redraft_train.recipe.stages import LICENCE
from redraft_train.recipe.tokenizer import EOS

#: Share of prefix pairs.
PREFIX = 0.5
#: Peak learning rates, well below those of the original training; higher ones overfit small calibration sets.
RATE, EMBEDDING_RATE = 6e-4, 4e-4


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of an alignment.

    Attributes:
        large: GGUF file of the large model, made by the recipe.
        small: GGUF file of the small model, made by the recipe with the same vocabulary.
        data: folder with ``train/``, as for the recipe.
        out: the GGUF to write; the calibration data are stored beside it.
        languages: codes of the target languages.
        sentences: number of sources to train on.
        held_out: number of sources to measure on.
        tokens: length of the fine-tuning in tokens, including padding.
        format: weight format, one of `redraft_bench.quantise.FORMATS`.
        seed: random seed of the sources and of their order.
        processes: number of parallel processes, one thread each.
    """

    large: Path
    small: Path
    data: Path
    out: Path
    languages: tuple[str, ...]
    sentences: int
    held_out: int
    tokens: int
    format: str = "Q8_0"
    seed: int = 0
    processes: int = 1

    @property
    def calibration(self) -> Path:
        """Path of the large model's outputs."""
        return self.out.with_suffix(".calibration.jsonl")


@dataclass(frozen=True, slots=True)
class Alignment:
    """The result for one target language.

    Attributes:
        target_language: its code.
        sentences: number of the large model's outputs trained on.
        unfinished: number of outputs left out, from both sets, because the large model did not end them.
        before: the small model's `Agreement` on the held-out sources before training.
        after: the same after training, for the written file.
    """

    target_language: str
    sentences: int
    unfinished: int
    before: Agreement
    after: Agreement


def require_data(folder: Path) -> None:
    """Check that a data folder has all languages.

    Raises:
        OptionError: one is missing; the message names it.
    """
    for language in LANGUAGES:
        files(folder, language)


def align(settings: Settings) -> tuple[list[Alignment], str]:
    """Make the aligned small model; return the result by language, and the fingerprint of the calibration data.

    Calibration resumes an interrupted run with the same settings; fine-tuning starts over.

    Raises:
        ModelError: a model was not made by the recipe, the large one ends none of its outputs, or llama.cpp is missing.
        CapabilityError: the vocabularies differ.
        OptionError: the data folder lacks a file, or pairs of a language.
    """
    from redraft_bench.quantise import quantise  # needs llama.cpp, which a rented GPU lacks

    require_data(settings.data)
    tokenizer = common_tokenizer(settings.large, settings.small)
    asked = _sources(settings, tokenizer)
    answered = calibrate(settings.large, tokenizer, asked, settings.calibration, settings.processes)
    learnt = [each for each in answered if not each.held_out and each.output is not None]
    if not learnt:
        raise ModelError(f"model {settings.large.name!r} did not finish any of its {len(asked)} outputs")
    end = tokenizer.token_to_id(EOS)
    before = agreements(settings.small, answered, tokenizer, settings.languages)
    whole = settings.out.with_name(settings.out.name + ".f32")
    examples = [each.example(end) for each in learnt]
    spawn(work, (settings, examples, whole), settings.processes)
    quantise(whole, settings.out, settings.format)
    whole.unlink()
    after = agreements(settings.out, answered, tokenizer, settings.languages)
    rows = []
    for language in settings.languages:
        of_language = [each for each in answered if each.language == language]
        unfinished = sum(each.output is None for each in of_language)
        sentences = sum(each.language == language for each in learnt)
        rows.append(Alignment(language, sentences, unfinished, before[language], after[language]))
    return rows, fingerprint(settings.large, asked)


def common_tokenizer(large: Path, small: Path) -> Tokenizer:
    """Return the common tokenizer of two models.

    Raises:
        ModelError: a model was not made by the recipe.
        CapabilityError: they have different tokenizers.
    """
    first, second = read_tokenizer(large), read_tokenizer(small)
    sizes = first.get_vocab_size(), second.get_vocab_size()
    if sizes[0] != sizes[1]:
        raise CapabilityError(
            f"the small model has {sizes[1]} tokens and the large one {sizes[0]}; they must share one vocabulary"
        )
    if first.to_str() != second.to_str():
        raise CapabilityError(
            f"the small model's vocabulary differs from the large one's, though both have {sizes[0]} tokens; they must "
            "share one"
        )
    return first


def _sources(settings: Settings, tokenizer: Tokenizer) -> list[Calibration]:
    """Return sources to train on, from the training part of the corpus, and held-out sources to measure on."""
    training, kept_back = split(settings.data, settings.languages)
    for language in settings.languages:
        if not (training[language] and kept_back[language]):
            raise OptionError(f"data: folder {str(settings.data)!r} has too few pairs of language {language!r}")
    mixture = Mixture(PREFIX, SPOKEN)
    return [
        *draw(training, tokenizer, settings.sentences, settings.seed, held_out=False, mixture=mixture),
        *draw(kept_back, tokenizer, settings.held_out, settings.seed, held_out=True, mixture=mixture),
    ]


def work(number: int, settings: Settings, examples: Sequence[Example], whole: Path, meet: Path) -> None:
    """Run one fine-tuning process; the first of them writes ``whole``, the model in 32-bit floats.

    Args:
        number: rank of this process.
        settings: as in `align`.
        examples: training examples from `Calibration.example`.
        whole: the GGUF to write.
        meet: as in `recipe.loop.together`.
    """
    torch.set_num_threads(1)
    with together(number, settings.processes, meet):
        tokenizer = read_tokenizer(settings.small)
        model = fine_tune(read_model(settings.small), examples, tokenizer, phase(settings))
        if number == 0:
            name = str(open_gguf(settings.small).fields["general.name"].contents()).removesuffix("-aligned")
            described = f"aligned with {settings.large.name} (BiLD, section 3.5.1), trained with redraft {__version__}"
            facts = {"general.license": LICENCE, "general.description": described}
            write_gguf(model, tokenizer, whole, f"{name}-aligned", facts)


def phase(settings: Settings) -> Phase:
    """Return the fine-tuning phase: learning rates decay from the start, and batches allow a few hundred steps."""
    return Phase(
        tokens=settings.tokens,
        prefix=PREFIX,
        spoken=SPOKEN,
        decay=1.0,
        batch=batch_size(settings.tokens, settings.processes),
        rate=RATE,
        embedding_rate=EMBEDDING_RATE,
        warmup_steps=20,
        seed=settings.seed,
    )


def fine_tune(model: Decoder, examples: Sequence[Example], tokenizer: Tokenizer, phase: Phase) -> Decoder:
    """Train ``model`` on ``examples`` for one phase, with the recipe's loss and optimizers, and return it."""
    trainer = Trainer(model.shape, phase)
    trainer.model.load_state_dict(model.state_dict())
    stream = GivenExamples(examples, tokenizer, phase.batch, phase.seed + rank())
    with tqdm(
        total=phase.tokens, unit="tok", unit_scale=True, desc="fine-tuning", mininterval=2, disable=rank() > 0
    ) as bar:
        for batch in takewhile(lambda _: trainer.tokens < phase.tokens, stream):
            loss = trainer.train_step(batch)
            if trainer.step % 20 == 0:
                bar.set_postfix(loss=f"{float(loss):.3f}", refresh=False)
            bar.update(trainer.tokens - bar.n)
    return trainer.model


def figures(rows: Sequence[Alignment]) -> Iterator[dict[str, str | int | float]]:
    """Yield flat rows for tables and JSON."""
    for row in rows:
        flat: dict[str, str | int | float] = {
            "target_language": row.target_language,
            "sentences": row.sentences,
            "unfinished": row.unfinished,
            "positions": row.before.positions,
        }
        for when, measured in (("before", row.before), ("after", row.after)):
            flat[f"agreement_{when}"] = round(measured.agreement, 4)
            flat[f"cross_entropy_{when}"] = round(measured.cross_entropy, 4)
        yield flat
