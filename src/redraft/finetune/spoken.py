"""English as speech recognisers write it: without punctuation and capitals, with fillers and false starts."""

from __future__ import annotations

import random

#: What a recogniser does not write while a sentence is growing.
PUNCTUATION = '.,!?;:"“”„()…'
#: What speakers say between words.
FILLERS = ("uh", "um", "er", "uhm", "you know", "well", "so", "I mean")
#: Shares of spoken sources without any capital, and with fillers and false starts.
LOWER_CASED, HESITANT = 0.4, 0.2


def heard(source: str, generator: random.Random) -> str:
    """A source as some recogniser writes it: `as_spoken`, partly without any capital, partly with hesitations."""
    source = as_spoken(source)
    if generator.random() < LOWER_CASED:
        source = source.lower()
    return hesitating(source, generator) if generator.random() < HESITANT else source


def as_spoken(source: str) -> str:
    """An English source as recognisers write it while it grows: no punctuation, no capitals at beginnings."""
    words: list[str] = []
    begins = True
    for word in source.split(" "):
        bare = word.strip(PUNCTUATION)
        if begins and bare != "I" and not bare.startswith("I'"):
            bare = bare[:1].lower() + bare[1:]
        begins = word.endswith((".", "!", "?", "…"))
        words += [bare] if bare else []
    return " ".join(words) or source


def hesitating(source: str, generator: random.Random) -> str:
    """A source with a filler, a repeated word, or a beginning that is started over."""
    words = source.split(" ")
    place = generator.randrange(len(words))
    kind = generator.random()
    if kind < 0.5:
        words[place:place] = generator.choice(FILLERS).split(" ")
    elif kind < 0.8:
        words[place:place] = [words[place]]
    else:
        words[:0] = words[: min(3, place + 1)]
    return " ".join(words)
