"""Recognised text over time."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from redraft.captions.ending import LONG_PAUSE
from redraft.captions.events import Update


def transcript(*utterances: Sequence[tuple[str, float | None]]) -> list[Update]:
    """Utterances as texts with times, of which the last is final."""
    return [
        Update(f"u{name}", seq, text, seq == len(texts) - 1, time)
        for name, texts in enumerate(utterances)
        for seq, (text, time) in enumerate(texts)
    ]


def utterances(*texts: str, gap: float = 1.0) -> list[Update]:
    """Utterances of one second each, with a pause between them."""
    length = 1.0 + gap
    return transcript(*([(text, place * length), (text, place * length + 1)] for place, text in enumerate(texts)))


# Words of a small vocabulary, so that revisions and repetitions are alike; some end sentences or seem to.
_WORDS = st.sampled_from(
    [*"abcd", "a.", "b.", "c?", "d!", "a,", "Mr.", "7:15", "3.5", "e.g.", "7.", "A", "B", "...", "I."]
)


_CHINESE = st.sampled_from([*"我你他好，", "好。", "「", "」", "！", "a"])


_TEXTS = st.one_of(st.lists(_WORDS, max_size=30).map(" ".join), st.lists(_CHINESE, max_size=30).map("".join))


_STEPS = st.sampled_from([0.0, 0.3, 0.5, 1.0, LONG_PAUSE, LONG_PAUSE + 1])


@st.composite
def recognised(draw: st.DrawFn, utterances: int, *, steady: bool) -> list[Update]:
    """Utterances that grow word by word and are revised anywhere, or with ``steady`` only in their newest words."""
    timed, time = draw(st.booleans()), 0.0
    updates = []
    for name in range(utterances):
        final = draw(_TEXTS)
        length = draw(st.integers(0, 8))
        for seq in range(length + 1):
            time += draw(_STEPS)
            text = final
            if seq < length:
                place = len(final) * seq // length
                begun = final[: final.rfind(" ", 0, place) + 1] if " " in final else final[:place]
                # A guess that no other update has keeps all that is behind it from settling.
                guess = f"{'' if final.isascii() else chr(ord('喂') + seq) * 9}x{seq} "
                text = begun + (guess if steady else "") + draw(_TEXTS)
                if not steady and draw(st.integers(0, 3)) == 0:
                    text = draw(_TEXTS)
            updates.append(Update(f"u{name}", seq, text.strip(), seq == length, time if timed else None))
    return updates
