"""What a model makes of sources of the recipe's kind: data for prediction alignment and for self-distillation.

Outputs are greedy, or the best of several by the corpus's own translation.  They are kept in a JSON Lines file as they
come, so that a run that was cut off goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import torch
import torch.multiprocessing as mp
from tokenizers import Tokenizer
from tqdm import tqdm

from recipe.corpus import Pair
from recipe.examples import MAX_LENGTH, Batch, Example, ExampleStream, Mixture
from recipe.generate import generate
from recipe.model import Decoder
from recipe.restart import read_model, read_tokenizer
from recipe.tokenizer import EOS, target_tag
from redraft.finetune.outputs import Kept, Key, Output, nearest

#: None where the model has not ended its output within `limit`.
Outputs: TypeAlias = list[Output]

#: Prompts that are decoded together.
ROWS = 128
#: How many sources are drawn for each one wanted before the corpus counts as exhausted; the same may be drawn again.
DRAWS = 20
#: Of sampled outputs: far enough from greedy to differ, near enough to be good.
TEMPERATURE = 0.5


@dataclass(frozen=True, slots=True)
class Calibration:
    """One source with what the large model makes of it.

    Attributes:
        language: code of the target language.
        held_out: whether it is kept for measuring.
        prompt: ids of ``<s> source <2xx>``.
        output: what the large model makes of it, its end left out; None if it did not end within `limit`.
        reference: the corpus's own translation, its end left out.
    """

    language: str
    held_out: bool
    prompt: tuple[int, ...]
    output: tuple[int, ...] | None = None
    reference: tuple[int, ...] = ()

    def example(self, end: int) -> Example:
        """All ids, and the position from which on the next id is learnt.

        Raises:
            ValueError: there is no finished output.
        """
        if self.output is None:
            raise ValueError("an unfinished output is no example")
        return [*self.prompt, *self.output, end], len(self.prompt) - 1


def limit(prompt: Sequence[int]) -> int:
    """The most ids of an output, its end included; translations are hardly ever twice as long as their sources."""
    return min(2 * len(prompt) + 16, MAX_LENGTH - len(prompt))


def draw(
    pairs: Mapping[str, Sequence[Pair]],
    tokenizer: Tokenizer,
    number: int,
    seed: int,
    *,
    held_out: bool,
    mixture: Mixture,
) -> list[Calibration]:
    """At most ``number`` different sources."""
    stream = ExampleStream(pairs, tokenizer, mixture, tokens=1024, seed=seed)
    languages = {tokenizer.token_to_id(target_tag(language)): language for language in pairs}
    found: dict[tuple[int, ...], Calibration] = {}
    drawn = 0
    for batch in stream:
        for prompt, reference in _examples(batch):
            asked = Calibration(languages[prompt[-1]], held_out, prompt, reference=reference)
            found.setdefault(prompt, asked)
        drawn += len(batch.ids)
        if len(found) >= number or drawn >= DRAWS * number:
            break
    return list(found.values())[:number]


def _examples(batch: Batch) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Prompt and translation of every row; the last id that is learnt is the end."""
    for row, ids in enumerate(batch.ids.tolist()):
        learnt = batch.columns[batch.rows == row]
        start, end = int(learnt[0]) + 1, int(learnt[-1]) + 1
        yield tuple(ids[:start]), tuple(ids[start:end])


def calibrate(
    large: Path, tokenizer: Tokenizer, asked: Sequence[Calibration], file: Path, processes: int, samples: int = 0
) -> list[Calibration]:
    """Have the large model answer everything that is asked; what ``file`` holds of the same question is reused.

    Args:
        large: GGUF of the large model.
        tokenizer: its tokenizer.
        asked: different sources without outputs.
        file: where the outputs are kept, one JSON object a line after a line that says what was asked.
        processes: how many decode at the same time, one thread each.
        samples: how many sampled outputs compete with the greedy one; the nearest to the reference by chrF wins.

    Returns:
        ``asked`` with outputs, in the same order.
    """
    kept = Kept(file, {"large": large.name, "asked": fingerprint(large, asked), "samples": samples})
    missing = [each for each in asked if each.prompt not in kept.outputs]
    with tqdm(total=len(asked), initial=len(kept.outputs), unit="sentence", desc="calibration", mininterval=2) as bar:
        for group, outputs in _answered(large, missing, processes, samples) if missing else ():
            kept.add(_row(each.prompt, output, tokenizer) for each, output in zip(group, outputs, strict=True))
            bar.update(len(group))
    return [replace(each, output=kept.outputs[each.prompt]) for each in asked]


def fingerprint(large: Path, asked: Sequence[Calibration]) -> str:
    """The first 12 hex digits of a hash over the large model's file and all that it is asked."""
    digest = hashlib.sha256(large.read_bytes())
    digest.update(json.dumps([each.prompt for each in asked]).encode())
    return digest.hexdigest()[:12]


def _row(prompt: Key, output: Output, tokenizer: Tokenizer) -> tuple[Key, Output, str, str | None]:
    return prompt, output, tokenizer.decode(prompt), None if output is None else tokenizer.decode(output)


def _answered(
    large: Path, asked: Sequence[Calibration], processes: int, samples: int
) -> Iterator[tuple[list[Calibration], Outputs]]:
    groups = batches(asked)
    random.Random(0).shuffle(groups)  # so that the progress bar foretells the rest rightly
    with mp.get_context("spawn").Pool(processes, _load, (large, samples)) as pool:
        yield from pool.imap_unordered(_outputs, groups)


def batches(asked: Sequence[Calibration], most: Callable[[int], int] = lambda length: ROWS) -> list[list[Calibration]]:
    """``asked`` in groups whose prompts have one length; ``most`` says for a length how many a group may have."""
    by_length: dict[int, list[Calibration]] = {}
    for each in asked:
        by_length.setdefault(len(each.prompt), []).append(each)
    return [
        group[start : start + most(length)]
        for length, group in by_length.items()
        for start in range(0, len(group), most(length))
    ]


_loaded: list[tuple[Decoder, Tokenizer, int]] = []


def _load(large: Path, samples: int) -> None:
    """Start of a decoding process."""
    torch.set_num_threads(1)
    _loaded.append((read_model(large).eval(), read_tokenizer(large), samples))


def _outputs(group: list[Calibration]) -> tuple[list[Calibration], Outputs]:
    return group, best_outputs(*_loaded[0], group)


def best_outputs(model: Decoder, tokenizer: Tokenizer, samples: int, group: Sequence[Calibration]) -> Outputs:
    """For every prompt, all of one length, the greedy output or a better one of ``samples`` sampled ones."""
    prompts = torch.tensor([each.prompt for each in group], device=model.embedding.weight.device)
    end, most = tokenizer.token_to_id(EOS), limit(group[0].prompt)
    drawn = [generate(model, prompts, end, most, TEMPERATURE if seed else 0.0, seed) for seed in range(samples + 1)]
    best: Outputs = []
    for row, each in enumerate(group):
        ended = [output for outputs in drawn if (output := outputs[row]) is not None]
        place = 0
        if len(ended) > 1:
            place = nearest([tokenizer.decode(output) for output in ended], tokenizer.decode(each.reference))
        best.append(tuple(ended[place]) if ended else None)
    return best
