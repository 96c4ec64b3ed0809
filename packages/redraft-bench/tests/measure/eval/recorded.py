"""Hand-made and random records and streams, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from redraft.captions.events import Update
from redraft_bench.eval.record import Record, Step
from redraft_bench.eval.stream import Segment, Stream


def record(
    segment: int,
    captions: Sequence[str],
    *,
    sources: Sequence[str] | None = None,
    times: Sequence[float] | None = None,
    seconds: Sequence[float] | None = None,
    hidden: str = "",
) -> Record:
    """A record of captions; all but the last have ``hidden`` behind them, which the mask does not show."""
    last = len(captions) - 1
    steps = tuple(
        Step(
            seq=seq,
            source=sources[seq] if sources else "w " * seq + "w",
            final=seq == last,
            time=times[seq] if times else None,
            prompt=1,
            tokens=(1,),
            text=text,
            unstable="" if seq == last else hidden,
            finished=True,
            seconds=seconds[seq] if seconds else 0.0,
            model_seconds=0.0,
            passes=(),
        )
        for seq, text in enumerate(captions)
    )
    return Record(segment, str(segment), "any, de", steps)


def segment_of(
    record: Record, reference: str | None, language: str, span: tuple[float, float] | None = None, recording: str = ""
) -> Segment:
    """The segment that a record is of."""
    updates = tuple(Update(record.utterance, each.seq, each.source, each.final, each.time) for each in record.steps)
    references = {} if reference is None else {language: reference}
    start, end = span or (None, None)
    return Segment(updates, references, start, end, recording)


#: The case by which the project's metrics are checked.
GOLDEN = record(
    0,
    ["Ich bin", "Ich habe einen Hund", "Ich habe einen Hunde."],
    sources=["I am", "I have a dog", "I have a dog."],
    times=[1.0, 2.0, 3.0],
    seconds=[0.1, 0.2, 0.1],
)
GOLDEN_STREAM = Stream("golden", (segment_of(GOLDEN, "Ich habe einen Hund.", "de", (0.0, 3.0), "talk.1"),))

WORDS = "der die das ein eine Hund Katze und oder ist war hat nicht sehr klein groß Haus. Straße, rot".split()
CHARACTERS = [*"我们今天去公园散步吧，你好。好大小", "Amy ", "GPU"]


def by_chance(number: int, language: str, *, timed: bool, seed: int = 0) -> tuple[list[Record], Stream]:
    """Growing captions with revisions, and references like them; two recordings, times in milliseconds.

    The first caption of a segment may be empty, and now and then the last one is.
    """
    random = Random(seed)
    units, space = (WORDS, " ") if language == "de" else (CHARACTERS, "")
    records, segments = [], []
    clock = 0.0
    for index in range(number):
        if index == number // 2:
            clock = 0.0
        start, texts, text, times, sources = round(clock, 3), list[str](), list[str](), [], []
        for _ in range(random.randint(1, 8)):
            kept = max(0, len(text) - random.choice([0, 0, 0, 1, 2, 5]))
            text = text[:kept] + random.choices(units, k=random.randint(0, 4))
            texts.append(space.join(text))
            clock = round(clock + random.randint(300, 2000) / 1000, 3)
            times.append(clock)
            sources.append(" ".join(["word"] * (3 * len(texts))))
        if random.random() < 0.05:
            texts[-1] = ""
        seconds = [random.randint(10, 1500) / 1000 for _ in texts]
        made = record(index, texts, sources=sources, times=times if timed else None, seconds=seconds)
        # A reference is a part of the caption and something else, so that there is something to fit.
        reference = space.join([each for each in text if random.random() < 0.8] + random.choices(units, k=2))
        span = (start, clock) if timed else None
        records.append(made)
        segments.append(segment_of(made, reference, language, span, f"2022.talk-{index // (number // 2)}"))
    return records, Stream("chance", tuple(segments))
