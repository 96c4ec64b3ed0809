"""English in the style of speech recognisers: without punctuation and capitals, with fillers and false starts."""

from __future__ import annotations

import random

#: Characters missing from a recogniser's partial updates.
PUNCTUATION = '.,!?;:"“”„()…'
#: Fillers between words.
FILLERS = ("uh", "um", "er", "uhm", "you know", "well", "so", "I mean")
#: Shares of sources without any capitals, and with fillers and false starts.
LOWER_CASED, HESITANT = 0.4, 0.2


def as_recognised(source: str, generator: random.Random) -> str:
    """Return a source in the style of a recogniser: `as_spoken`, sometimes in lower case or with hesitations."""
    source = as_spoken(source)
    if generator.random() < LOWER_CASED:
        source = source.lower()
    return hesitating(source, generator) if generator.random() < HESITANT else source


def as_spoken(source: str) -> str:
    """Return an English source like a recogniser's partial update: without punctuation and initial capitals."""
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
    """Return a source with a filler, a repeated word, or a false start."""
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
