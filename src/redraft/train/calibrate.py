"""Calibration data for prediction alignment: sources of the demo recipe's kind, with the large model's greedy outputs.

They are kept in a JSON Lines file as they come, so that a run that was cut off goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import torch
import torch.multiprocessing as mp
from tokenizers import Tokenizer
from tqdm import tqdm

from redraft.train.corpus import Pair
from redraft.train.examples import MAX_LENGTH, Batch, ExampleStream, Mixture
from redraft.train.generate import generate
from redraft.train.model import Decoder
from redraft.train.recipe import PREFIX, SPOKEN
from redraft.train.restart import read_model
from redraft.train.tokenizer import EOS, target_tag

Prompts: TypeAlias = list[tuple[int, ...]]
#: None where the model has not ended its output within `limit`.
Outputs: TypeAlias = list[tuple[int, ...] | None]

#: Prompts that are decoded together.
ROWS = 128
#: How many sources are drawn for each one wanted before the corpus counts as exhausted; the same may be drawn again.
DRAWS = 20


@dataclass(frozen=True, slots=True)
class Calibration:
    """One source with what the large model makes of it.

    Attributes:
        language: code of the target language.
        held_out: whether it is kept for measuring.
        prompt: ids of ``<s> source <2xx>``.
        output: the large model's greedy output, its end left out; None if it did not end within `limit`.
    """

    language: str
    held_out: bool
    prompt: tuple[int, ...]
    output: tuple[int, ...] | None = None

    def example(self, end: int) -> tuple[list[int], int]:
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
    pairs: Mapping[str, Sequence[Pair]], tokenizer: Tokenizer, number: int, seed: int, *, held_out: bool
) -> list[Calibration]:
    """At most ``number`` different sources as in the demo model's last stage: joined, cut short, written as spoken."""
    # A small batch, for a whole pool of 64 is made before the first is given.
    stream = ExampleStream(pairs, tokenizer, Mixture(PREFIX, SPOKEN), tokens=1024, seed=seed)
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


def _prompts(batch: Batch) -> Iterator[tuple[int, ...]]:
    starts: dict[int, int] = {}
    for row, column in zip(batch.rows.tolist(), batch.columns.tolist(), strict=True):
        starts.setdefault(row, column)
    for row, start in starts.items():
        yield tuple(batch.ids[row, : start + 1].tolist())


def calibrate(
    large: Path, tokenizer: Tokenizer, asked: Sequence[Calibration], file: Path, processes: int
) -> list[Calibration]:
    """Have the large model answer everything that is asked; what ``file`` holds of the same question is reused.

    Args:
        large: GGUF of the large model.
        tokenizer: its tokenizer.
        asked: different sources without outputs.
        file: where the outputs are kept, one JSON object a line after a line that says what was asked.
        processes: how many decode at the same time, one thread each.

    Returns:
        ``asked`` with outputs, in the same order.
    """
    question = {"large": large.name, "asked": fingerprint(large, asked)}
    answers = _kept(file, question)
    missing = [each for each in asked if each.prompt not in answers]
    with tqdm(total=len(asked), initial=len(answers), unit="sentence", desc="calibration", mininterval=2) as bar:
        if missing:
            with file.open("a" if answers else "w", encoding="utf-8") as out:
                if not answers:
                    out.write(json.dumps(question) + "\n")
                for prompts, outputs in _answered(large, tokenizer.token_to_id(EOS), missing, processes):
                    for prompt, output in zip(prompts, outputs, strict=True):
                        answers[prompt] = output
                        out.write(_line(prompt, output, tokenizer))
                    out.flush()
                    bar.update(len(prompts))
    return [Calibration(each.language, each.held_out, each.prompt, answers[each.prompt]) for each in asked]


def fingerprint(large: Path, asked: Sequence[Calibration]) -> str:
    """The first 12 hex digits of a hash over the large model's file and all that it is asked."""
    digest = hashlib.sha256(large.read_bytes())
    digest.update(json.dumps([each.prompt for each in asked]).encode())
    return digest.hexdigest()[:12]


def _line(prompt: tuple[int, ...], output: tuple[int, ...] | None, tokenizer: Tokenizer) -> str:
    translation = None if output is None else tokenizer.decode(output)
    row = {"source": tokenizer.decode(prompt), "translation": translation, "prompt": prompt, "output": output}
    return json.dumps(row, ensure_ascii=False) + "\n"


def _kept(file: Path, question: Mapping[str, str]) -> dict[tuple[int, ...], tuple[int, ...] | None]:
    """Outputs by prompt of an earlier run that asked the same; none if it asked something else."""
    if not file.exists():
        return {}
    lines = file.read_bytes().splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):  # that run was cut off in the middle of a line
        lines.pop()
        file.write_bytes(b"".join(lines))
    if not lines or lines[0].decode() != json.dumps(question) + "\n":
        return {}
    rows = [json.loads(line) for line in lines[1:]]
    return {tuple(row["prompt"]): None if row["output"] is None else tuple(row["output"]) for row in rows}


def _answered(large: Path, end: int, asked: Sequence[Calibration], processes: int) -> Iterator[tuple[Prompts, Outputs]]:
    groups = batches([each.prompt for each in asked])
    random.Random(0).shuffle(groups)  # so that the progress bar foretells the rest rightly
    with mp.get_context("spawn").Pool(processes, _load, (large, end)) as pool:
        yield from pool.imap_unordered(_outputs, groups)


def batches(prompts: Sequence[tuple[int, ...]]) -> list[Prompts]:
    """Prompts in groups of one length and at most `ROWS`."""
    by_length: dict[int, Prompts] = {}
    for prompt in prompts:
        by_length.setdefault(len(prompt), []).append(prompt)
    return [group[start : start + ROWS] for group in by_length.values() for start in range(0, len(group), ROWS)]


_loaded: list[tuple[Decoder, int]] = []


def _load(large: Path, end: int) -> None:
    """Start of a decoding process."""
    torch.set_num_threads(1)
    _loaded.append((read_model(large).eval(), end))


def _outputs(prompts: Prompts) -> tuple[Prompts, Outputs]:
    model, end = _loaded[0]
    outputs = generate(model, torch.tensor(prompts), end, limit(prompts[0]))
    return prompts, [None if output is None else tuple(output) for output in outputs]
