"""Sources that end as the unfinished texts of recognisers do: a wrong last word, a word that is cut, a stray full stop.

    python -m redraft_train.recipe.unfinished talk.jsonl ...

prints the shares below for streams of updates (docs/streams.md), which is how they were fitted: 469 unfinished texts of
Moonshine tiny, from the demo talk and three recordings of people.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from redraft.captions.words import WORD, bare

#: Mark at the end -> its share.
MARKS = {".": 0.65, ",": 0.21, "?": 0.02, "": 0.12}
#: Share of texts that end with wrong words, and number of wrong words -> its share among those.
WRONG = 0.32
NUMBERS = {1: 0.67, 2: 0.22, 3: 0.11}
#: Share of first wrong words that are the beginning of the right one.
CUT = 0.21


def unfinished(words: Sequence[str], others: Sequence[str], generator: random.Random) -> tuple[list[str], int]:
    """Make a beginning of a source end as a recogniser's unfinished text does.

    Returns:
        The words, and how many of them are right.
    """
    right = len(words)
    made = list(words)
    if generator.random() < WRONG:
        right -= min(len(words), *generator.choices([*NUMBERS], [*NUMBERS.values()]))
        cut = generator.random() < CUT and len(words[right]) > 2
        first = words[right][: generator.randrange(1, len(words[right]))] if cut else generator.choice(others)
        made[right:] = [first, *generator.choices(others, k=len(words) - right - 1)]
    made[-1] = made[-1].rstrip(".,!?;:") + generator.choices([*MARKS], [*MARKS.values()])[0]
    return made, right


def shares(utterances: Iterable[Sequence[str]]) -> Iterator[tuple[str, float]]:
    """Yield the share of each kind of ending among the texts of utterances before their last one."""
    counts: Counter[str] = Counter()
    for *texts, final in utterances:
        spoken = _words(final)
        for text in filter(_words, texts):
            words = _words(text)
            end = text.rstrip()[-1]
            counts[f"ends with {end if end in '.,?' else 'no mark'}"] += 1
            blocks = [
                each for each in SequenceMatcher(None, words, spoken, autojunk=False).get_matching_blocks() if each.size
            ]
            right, place = (blocks[-1].a + blocks[-1].size, blocks[-1].b + blocks[-1].size) if blocks else (0, 0)
            counts["texts"] += 1
            if right < len(words):
                counts["wrong"] += 1
                counts[f"wrong words: {min(3, len(words) - right)}"] += 1
                counts["cut"] += place < len(spoken) and spoken[place].startswith(words[right])
    yield from ((name, count / counts["texts"]) for name, count in sorted(counts.items()))


def _words(text: str) -> list[str]:
    return [word for each in WORD.findall(text) if (word := bare(each))]


def main(paths: Sequence[str]) -> None:
    """Print the shares of streams."""
    utterances: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        for line in Path(path).read_text("utf-8").splitlines():
            update = json.loads(line)
            utterances.setdefault((path, str(update["utterance"])), []).append(update["text"])
    for name, share in shares(utterances.values()):
        print(f"{name}: {share:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
