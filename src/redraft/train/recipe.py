"""The recipe: which models are trained, in which phases, for how long.

    base      full sentences and joined ones, constant rate
    plain     base + a short decay on the same data: the model without prefix pairs, for comparison only
    prefix    base + a longer decay with 60% prefix pairs
    spoken    prefix + a short decay from a lower rate, 30% of the sources written as a recogniser does
    more      spoken + a constant rate once more, with dropout, since the everyday language comes round again and again
    longer    more + a long decay
    late      longer + the same once more, with more dropout and more Chinese
    steady    late + its own best translations, with prefix pairs cut where the source ends to support them
    steadier  steady + the same translations, cut sooner in German and Chinese
    japanese  late + its own Japanese translations, cut like those of steady, beside prefix pairs in proportion
    demo      an average of the weights of steadier and japanese: it ships
    small     the same vocabulary at a fifth the size, prefix pairs from the start: drafts for the demo model

The small model that ships was then aligned with ``longer`` and with ``demo`` (`redraft train align`).

A constant rate with a branch at its end trains two comparable models at little more than the price of one.  Counts of
tokens include padding.
"""

from __future__ import annotations

from dataclasses import dataclass

from redraft.train.average import Average
from redraft.train.distil import Distillation
from redraft.train.loop import Phase
from redraft.train.model import Shape
from redraft.train.prefixes import Cuts

VOCABULARY = 12_288
LARGE = Shape(VOCABULARY, hidden=256, layers=5, heads=4, feed_forward=768)
SMALL = Shape(VOCABULARY, hidden=96, layers=2, heads=3, feed_forward=256, head=32)

#: Share of prefix pairs in the last stages before self-distillation.
PREFIX = 0.5
#: Share of sources without capitals and punctuation in them.
SPOKEN = 0.3
#: Of the target languages in self-distillation: of the sources that are translated, and of the training.
SHARES = {"de": 0.6, "zh": 0.17, "ja": 0.23}


@dataclass(frozen=True, slots=True)
class Stage:
    """One trained model of the recipe.

    Attributes:
        shape, phase: of the model and of its training.
        start: the stage whose weights it starts from.
        teacher: the stage whose translations it learns.
        distillation: how these become examples.
    """

    shape: Shape
    phase: Phase
    start: str | None = None
    teacher: str | None = None
    distillation: Distillation | None = None


#: How many sources are translated; the same ones in all stages, which share the translations.
SOURCES = 27_000

#: Self-distillation; `redraft train prefix` does the same with any model of the recipe.
STEADY = Stage(
    LARGE,
    Phase(
        tokens=8_000_000,
        prefix=0.0,
        spoken=0.2,
        distilled=0.65,
        decay=1.0,
        dropout=0.1,
        rate=2e-3,
        embedding_rate=1.2e-3,
        warmup_steps=50,
        languages=SHARES,
        seed=51,
    ),
    start="late",
    teacher="late",
    distillation=Distillation(SOURCES),
)

STAGES: dict[str, Stage | Average] = {
    "base": Stage(LARGE, Phase(tokens=19_400_000, prefix=0.0, decay=0.0)),
    "prefix": Stage(LARGE, Phase(tokens=9_000_000, prefix=0.6, decay=0.85, warmup_steps=1, seed=1), start="base"),
    "spoken": Stage(
        LARGE,
        Phase(
            tokens=3_300_000,
            prefix=0.6,
            spoken=SPOKEN,
            decay=1.0,
            rate=1.6e-3,
            embedding_rate=1e-3,
            warmup_steps=20,
            seed=4,
        ),
        start="prefix",
    ),
    "more": Stage(
        LARGE,
        Phase(
            tokens=12_500_000,
            prefix=0.4,
            spoken=0.2,
            decay=0.0,
            dropout=0.1,
            rate=3.5e-3,
            embedding_rate=2.2e-3,
            warmup_steps=150,
            languages={"de": 0.62, "zh": 0.16, "ja": 0.22},
            seed=11,
        ),
        start="spoken",
    ),
    "longer": Stage(
        LARGE,
        Phase(
            tokens=12_500_000,
            prefix=PREFIX,
            spoken=SPOKEN,
            decay=1.0,
            dropout=0.1,
            rate=3.5e-3,
            embedding_rate=2.2e-3,
            warmup_steps=1,
            languages={"de": 0.66, "zh": 0.13, "ja": 0.21},
            seed=23,
        ),
        start="more",
    ),
    "late": Stage(
        LARGE,
        Phase(
            tokens=15_000_000,
            prefix=PREFIX,
            spoken=SPOKEN,
            decay=0.75,
            dropout=0.15,
            rate=3.5e-3,
            embedding_rate=2.2e-3,
            warmup_steps=100,
            languages={"de": 0.62, "zh": 0.16, "ja": 0.22},
            seed=37,
        ),
        start="longer",
    ),
    "steady": STEADY,
    "steadier": Stage(
        LARGE,
        Phase(
            tokens=4_500_000,
            prefix=0.0,
            spoken=0.2,
            distilled=0.7,
            decay=1.0,
            dropout=0.1,
            rate=1.6e-3,
            embedding_rate=1e-3,
            warmup_steps=20,
            languages=SHARES,
            seed=77,
        ),
        start="steady",
        teacher="late",
        distillation=Distillation(SOURCES, cuts=Cuts(tolerances={"de": 1.0, "zh": 1.0})),
    ),
    "japanese": Stage(
        LARGE,
        Phase(
            tokens=4_500_000,
            prefix=PREFIX,
            spoken=SPOKEN,
            distilled=0.25,
            decay=1.0,
            dropout=0.15,
            rate=1.6e-3,
            embedding_rate=1e-3,
            warmup_steps=50,
            languages={"de": 0.76, "zh": 0.21, "ja": 0.03},
            seed=91,
        ),
        start="late",
        teacher="late",
        distillation=Distillation(SOURCES, learnt=("ja",)),
    ),
    "demo": Average({"steadier": 0.6, "japanese": 0.4}),
    "plain": Stage(LARGE, Phase(tokens=1_600_000, prefix=0.0, decay=1.0, warmup_steps=1, seed=2), start="base"),
    "small": Stage(SMALL, Phase(tokens=5_000_000, prefix=0.6, decay=0.5, seed=3)),
}

#: Stages whose end is written as a GGUF.
EXPORTED = ("late", "steady", "steadier", "japanese", "demo", "plain", "small")
