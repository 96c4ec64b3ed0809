"""Translate sources of the recipe's kind greedily with a model: the data of prediction alignment.

The outputs are written to a JSON Lines file as they come, so that an interrupted run can be resumed.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.multiprocessing as mp
from tokenizers import Tokenizer
from tqdm import tqdm

from redraft_train.outputs import Kept, Key, Output
from redraft_train.recipe.corpus import Pair
from redraft_train.recipe.examples import MAX_LENGTH, Batch, Example, ExampleStream, Mixture
from redraft_train.recipe.generate import generate
from redraft_train.recipe.model import Decoder
from redraft_train.recipe.restart import read_model, read_tokenizer
from redraft_train.recipe.tokenizer import EOS, target_tag

#: Number of prompts decoded together.
ROWS = 128
#: Draws per wanted source before the corpus counts as exhausted; draws may repeat.
DRAWS = 20


@dataclass(frozen=True, slots=True)
class Calibration:
    """A source with the large model's output.

    Attributes:
        language: code of the target language.
        held_out: whether it is reserved for measuring.
        prompt: ids of ``<s> source <2xx>``.
        output: the large model's output without its end; None if it did not end within `limit`.
    """

    language: str
    held_out: bool
    prompt: tuple[int, ...]
    output: tuple[int, ...] | None = None

    def example(self, end: int) -> Example:
        """Return all ids, and the position of the first target.

        Raises:
            ValueError: there is no finished output.
        """
        if self.output is None:
            raise ValueError("an unfinished output is no example")
        return [*self.prompt, *self.output, end], len(self.prompt) - 1


def limit(prompt: Sequence[int]) -> int:
    """Return the maximum length of an output with its end; translations are rarely twice as long as their sources."""
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
    """Draw at most ``number`` different sources."""
    stream = ExampleStream(pairs, tokenizer, mixture, tokens=1024, seed=seed)
    languages = {tokenizer.token_to_id(target_tag(language)): language for language in pairs}
    found: dict[tuple[int, ...], Calibration] = {}
    drawn = 0
    for batch in stream:
        for prompt in _prompts(batch):
            found.setdefault(prompt, Calibration(languages[prompt[-1]], held_out, prompt))
        drawn += len(batch.ids)
        if len(found) >= number or drawn >= DRAWS * number:
            break
    return list(found.values())[:number]


def _prompts(batch: Batch) -> Iterator[Key]:
    """Yield the prompt of every row: the ids before the first target."""
    for row, ids in enumerate(batch.ids.tolist()):
        yield tuple(ids[: int(batch.columns[batch.rows == row][0]) + 1])


def calibrate(
    large: Path, tokenizer: Tokenizer, asked: Sequence[Calibration], file: Path, processes: int
) -> list[Calibration]:
    """Let the large model answer all prompts; answers to the same question in ``file`` are reused.

    Args:
        large: GGUF of the large model.
        tokenizer: its tokenizer.
        asked: different sources without outputs.
        file: JSON Lines file for the outputs; its first line is the question.
        processes: number of parallel processes, one thread each.

    Returns:
        ``asked`` with outputs, in the same order.
    """
    kept = Kept(file, {"large": large.name, "asked": fingerprint(large, asked)})
    missing = [each for each in asked if each.prompt not in kept.outputs]
    with tqdm(total=len(asked), initial=len(kept.outputs), unit="sentence", desc="calibration", mininterval=2) as bar:
        for group, outputs in _answered(large, missing, processes) if missing else ():
            kept.add(_row(each.prompt, output, tokenizer) for each, output in zip(group, outputs, strict=True))
            bar.update(len(group))
    return [replace(each, output=kept.outputs[each.prompt]) for each in asked]


def fingerprint(large: Path, asked: Sequence[Calibration]) -> str:
    """Return the first 12 hex digits of a hash over the large model's file and all its prompts."""
    digest = hashlib.sha256(large.read_bytes())
    digest.update(json.dumps([each.prompt for each in asked]).encode())
    return digest.hexdigest()[:12]


def _row(prompt: Key, output: Output, tokenizer: Tokenizer) -> tuple[Key, Output, str, str | None]:
    return prompt, output, tokenizer.decode(prompt), None if output is None else tokenizer.decode(output)


def _answered(
    large: Path, asked: Sequence[Calibration], processes: int
) -> Iterator[tuple[list[Calibration], list[Output]]]:
    groups = batches(asked)
    random.Random(0).shuffle(groups)  # so that the progress bar's estimate is right
    with mp.get_context("spawn").Pool(processes, _load, (large,)) as pool:
        yield from pool.imap_unordered(_outputs, groups)


def batches(asked: Sequence[Calibration], most: Callable[[int], int] = lambda length: ROWS) -> list[list[Calibration]]:
    """Group ``asked`` by prompt length; ``most`` returns the maximum size of a group for a length."""
    by_length: dict[int, list[Calibration]] = {}
    for each in asked:
        by_length.setdefault(len(each.prompt), []).append(each)
    return [
        group[start : start + most(length)]
        for length, group in by_length.items()
        for start in range(0, len(group), most(length))
    ]


_loaded: list[tuple[Decoder, int]] = []


def _load(large: Path) -> None:
    """Initialise a decoding process."""
    torch.set_num_threads(1)
    _loaded.append((read_model(large).eval(), read_tokenizer(large).token_to_id(EOS)))


def _outputs(group: list[Calibration]) -> tuple[list[Calibration], list[Output]]:
    return group, outputs(*_loaded[0], group)


def outputs(model: Decoder, end: int, group: Sequence[Calibration]) -> list[Output]:
    """Return the output for every prompt of one length; None if it did not end within `limit`."""
    prompts = torch.tensor([each.prompt for each in group], device=model.embedding.weight.device)
    found = generate(model, prompts, end, limit(group[0].prompt))
    return [None if output is None else tuple(output) for output in found]
