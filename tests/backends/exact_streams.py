"""Looks for updates of exact backends whose ids are not those of greedy decoding from scratch.

``python -m tests.backends.exact_streams FORMAT FOLDER [FAMILY ...]`` streams 24 updates with revisions through random
models with the heads of every family, into one language and into two, with padded passes, and compares the ids of
every method at beta 0 with those of `ar` for that language alone. With
REDRAFT_REAL_TOKENIZERS set, models get the tokenizers that ``python -m tools.fetch_tokenizers`` has fetched. In a
process of its own, since llama.cpp chooses its kernels once a process.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from redraft.captions.events import Update
from redraft.captions.style import Style
from redraft.decoding.method import Value
from redraft.translator import Translator
from redraft_bench.quantise import quantise
from tests import real_tokenizers
from tests.gguf_models import FAMILIES, write_family
from tests.real_tokenizers import chat_writer

Ids = tuple[int, ...]
UPDATES, TOKENS = 24, 10
LANGUAGES = ("de", "ja")
METHODS: Mapping[str, Mapping[str, Value]] = {
    "ssbd": {"beta": 0.0},
    "redraft": {"beta": 0.0, "hidden_beta": 0.0, "stop": 0.0},
}
#: Heads that belong to no family get the tokenizer of one that has no heads of its own here.
REAL = {"heads of 80": "Mistral"}
WORDS = "I saw her duck under the table and it's 12,345 o'clock - we had not come here for naïve café talk".split()


def stream(seed: int) -> Iterator[Update]:
    """Utterances that grow, of which a third of the updates rewrite the last words."""
    choose = random.Random(seed)
    words: list[str] = []
    utterance = seq = 0
    for _ in range(UPDATES):
        if len(words) > 3 and choose.random() < 0.35:
            del words[-choose.randint(1, 3) :]
        words += choose.choices(WORDS, k=choose.randint(1, 3))
        final = len(words) > 18
        yield Update(str(utterance), seq, " ".join(words), final=final)
        seq += 1
        if final:
            words, utterance, seq = [], utterance + 1, 0


def outputs(path: Path, to: Sequence[str], method: str, options: Mapping[str, Value]) -> dict[str, list[Ids]]:
    """The ids of every update, by language."""
    found: dict[str, list[Ids]] = {language: [] for language in to}
    engine = {"context_length": 512, "threads": 1, "exact": True}
    style = Style(prompt="{source}<2{target_code}>" if "REDRAFT_REAL_TOKENIZERS" not in os.environ else None)
    with Translator.open(
        path, to=to, method=method, options={**options, "max_tokens": TOKENS}, engine=engine, style=style
    ) as translator:
        for update in stream(7):
            translator.translate(update)
            for language in to:
                found[language].append(translator.state(language).output)
    return found


def main(format: str, folder: Path, families: Sequence[str]) -> int:
    """Print how many updates differ, for every family, number of languages and method; how many do in all."""
    wrong = 0
    for family in families or FAMILIES:
        tokenizer = None
        if "REDRAFT_REAL_TOKENIZERS" in os.environ:
            tokenizer = chat_writer(real_tokenizers.FAMILIES[REAL.get(family, family)])
        source = write_family(folder / "drawn.gguf", FAMILIES[family], tokenizer=tokenizer)
        path = folder / "model.gguf"
        quantise(source, path, format)
        greedy = {language: outputs(path, [language], "ar", {})[language] for language in LANGUAGES}
        for number in (1, 2):
            for method, options in METHODS.items():
                found = outputs(path, LANGUAGES[:number], method, options)
                pairs = [pair for language in found for pair in zip(found[language], greedy[language], strict=True)]
                different = sum(first != second for first, second in pairs)
                wrong += different
                print(f"{format} {family}, {number} slots, {method}: {different} of {len(pairs)}", flush=True)
        assert len(set(greedy["de"])) > UPDATES // 2, "a model that always says the same shows nothing"
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]) > 0)
