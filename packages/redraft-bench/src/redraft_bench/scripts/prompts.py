"""Prompts for chat models that were not made for translation: what raises quality for nothing.

Whole sentences are translated greedily by models with ChatML turns (`redraft_bench.scripts.real_models`).  Half of the
sentences are from an encyclopedia (SQuAD; for Japanese, from stories), half from Tatoeba; all are from training data,
since prompts are not to be chosen on tests.

python -m redraft_bench.scripts.prompts --model qwen-0.5b >> benchmarks/results/prompts.jsonl
"""

from __future__ import annotations

import gzip
import random
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from typing import NamedTuple

import click

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.captions.events import Caption, Update
from redraft.captions.style import Style
from redraft.signature import print_json, signature
from redraft.translator import Translator
from redraft_bench.eval.bootstrap import interval
from redraft_bench.eval.figures import Row
from redraft_bench.eval.quality import quality, statistics
from redraft_bench.eval.sets import data_folder
from redraft_bench.scripts.real_models import EXAMPLES, with_style

TEXTS = {
    "de": ("en-de.xquad.BY-SA", "en-de.tatoeba-more"),
    "zh": ("en-zh.xquad.BY-SA", "en-zh.tatoeba-more"),
    "ja": ("en-ja.storybooks", "en-ja.tatoeba-more"),
}
#: Fewest and most words of a sentence in both halves.
WORDS = ((8, 28), (4, 14))
#: Plain sentences: no numbers, formulas or lists.
_PLAIN = re.compile(r"[A-Z][\w ,.'’\"-]*[.?!]")
_SYSTEM, _USER, _ANSWER, _END = "<|im_start|>system\n", "<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_end|>\n"
#: The system message that the model's template adds if there is none.
_USUAL = _SYSTEM + "You are Qwen, created by Alibaba Cloud. You are a helpful assistant." + _END
_INSTRUCTION = (
    "Translate the {source_language} source text to {target_language}. Return only the translation, without any "
    "additional explanations or commentary."
)
_ASKED, _BEGUN = "{source_language}: {source}" + _END, "{target_language}:"
#: Name -> prompt (`redraft.captions.own_prompt`); ``EXAMPLE`` stands for an example's translation.
PROMPTS = {
    "chat": _SYSTEM + _INSTRUCTION + _END + _USER + _ASKED + _ANSWER + _BEGUN,
    "answer not begun": _SYSTEM + _INSTRUCTION + _END + _USER + "{source}" + _END + _ANSWER,
    "instruction in the question": _USUAL + _USER + _INSTRUCTION + "\n" + _ASKED + _ANSWER + _BEGUN,
    "interpreter": _SYSTEM
    + "You are a professional interpreter. Translate everything the user says from {source_language} into natural, "
    "fluent {target_language}. Answer in {target_language} only." + _END + _USER + _ASKED + _ANSWER + _BEGUN,
    "one example": _SYSTEM
    + _INSTRUCTION
    + _END
    + _USER
    + "{source_language}: We have not seen him since yesterday."
    + _END
    + _ANSWER
    + _BEGUN
    + " EXAMPLE"
    + _END
    + _USER
    + _ASKED
    + _ANSWER
    + _BEGUN,
    "plain": _USUAL + _USER + "Translate the following text to {target_language}:\n{source}" + _END + _ANSWER,
}


class Pair(NamedTuple):
    """A sentence and its reference translation."""

    source: str
    reference: str


def pairs(name: str, words: tuple[int, int], count: int) -> list[Pair]:
    """Draw plain sentences from a file of training data."""
    found: dict[str, str] = {}
    with gzip.open(data_folder() / "train2" / f"{name}.tsv.gz", "rt", encoding="utf-8") as file:
        for line in file:
            source, translation = line.rstrip("\n").split("\t")[:2]
            if words[0] <= len(source.split()) <= words[1] and _PLAIN.fullmatch(source):
                found[source] = translation
    drawn = [Pair(*each) for each in found.items()]
    random.Random(3).shuffle(drawn)
    return drawn[:count]


def row(language: str, prompt: str, texts: Sequence[str], wanted: Sequence[Pair]) -> Row:
    """Return the chrF of translations: of all, and of both halves."""
    references, half = [each.reference for each in wanted], len(wanted) // 2
    low, high = interval(*statistics(texts, references, language)["chrf"])
    parts = {"chrf": slice(None), "chrf_read": slice(half), "chrf_spoken": slice(half, None)}
    scores = {name: round(quality(texts[part], references[part], language).chrf, 2) for name, part in parts.items()}
    return {
        "target_language": language,
        "prompt": prompt,
        "sentences": len(texts),
        **scores,
        "chrf_low": round(low, 2),
        "chrf_high": round(high, 2),
    }


@click.command(help=__doc__)
@click.option("--model", default="qwen-0.5b", show_default=True)
@click.option("--to", multiple=True, default=tuple(TEXTS), type=click.Choice(list(TEXTS)))
@click.option("--prompt", "names", multiple=True, default=tuple(PROMPTS), type=click.Choice(list(PROMPTS)))
@click.option("--limit", default=40, show_default=True, help="Sentences a language.")
def main(model: str, to: tuple[str, ...], names: tuple[str, ...], limit: int) -> None:
    """Print one JSON object a line for every language and prompt."""
    path, _style = with_style(model, "de")
    with closing(LlamaCpp(path, LlamaOptions(512, threads=1))) as backend:
        for language in to:
            wanted = [
                each
                for text, words in zip(TEXTS[language], WORDS, strict=True)
                for each in pairs(text, words, limit // 2)
            ]
            digest = sha256("\n".join(each.source for each in wanted).encode()).hexdigest()[:12]
            line = signature(path, "+".join(TEXTS[language]), digest, seed=3, threads=1)
            for name in names:
                texts = _translations(backend, language, name, [each.source for each in wanted])
                print_json([row(language, name, texts, wanted)], line, sys.stdout)
                sys.stdout.flush()


def _translations(backend: LlamaCpp, language: str, prompt: str, sources: Sequence[str]) -> list[str]:
    style = Style(prompt=PROMPTS[prompt].replace("EXAMPLE", EXAMPLES[language][2]))
    with Translator(backend, [language], method="ar", style=style, max_tokens=80) as translator:
        found = []
        for number, source in enumerate(sources):
            events = translator.translate(Update(str(number), 0, source, final=True))
            found.append(next((each.text for each in events if isinstance(each, Caption)), ""))
    return found


if __name__ == "__main__":
    main()
