"""The recipe: which models are trained, in which phases, for how long.

    base      half as deep, full sentences and joined ones, constant rate
    deep      base stacked to the full depth (`redraft.train.loop.stacked`), with prefix pairs, constant rate
    late      deep + a decay with more prefix pairs
    steady    late + its own best translations, with prefix pairs cut where the source ends to support them
    demo      an average of the weights of late and steady: it ships
    tiny      the same vocabulary at a quarter of the size: it ships, and drafts for the demo model

`redraft train align` then aligns the tiny model with ``demo``.  Counts of tokens include padding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from redraft.train.average import Average
from redraft.train.distil import Distillation
from redraft.train.loop import Phase
from redraft.train.model import Shape

VOCABULARY = 16_384
LARGE = Shape(VOCABULARY, hidden=512, layers=6, heads=8, feed_forward=1408)
SHALLOW = replace(LARGE, layers=3)
TINY = Shape(VOCABULARY, hidden=256, layers=4, heads=4, feed_forward=768)

#: Share of sources as a recogniser writes them; finals of a recogniser are among them.
SPOKEN = 0.3


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


#: Self-distillation; `redraft train prefix` does the same with any model of the recipe.
STEADY = Stage(
    LARGE,
    Phase(
        tokens=12_000_000,
        prefix=0.0,
        spoken=SPOKEN,
        distilled=0.65,
        decay=1.0,
        dropout=0.1,
        rate=1.5e-3,
        embedding_rate=1e-3,
        warmup_steps=50,
        seed=51,
    ),
    start="late",
    teacher="late",
    distillation=Distillation(40_000),
)

STAGES: dict[str, Stage | Average] = {
    "base": Stage(
        SHALLOW, Phase(tokens=14_000_000, prefix=0.0, spoken=0.25, decay=0.0, rate=3e-3, embedding_rate=2e-3)
    ),
    "deep": Stage(
        LARGE,
        Phase(
            tokens=120_000_000,
            prefix=0.3,
            spoken=SPOKEN,
            decay=0.0,
            dropout=0.05,
            rate=3e-3,
            embedding_rate=2e-3,
            warmup_steps=50,
            seed=1,
        ),
        start="base",
    ),
    "late": Stage(
        LARGE,
        Phase(
            tokens=40_000_000,
            prefix=0.45,
            spoken=SPOKEN,
            decay=1.0,
            dropout=0.1,
            rate=3e-3,
            embedding_rate=2e-3,
            warmup_steps=1,
            seed=37,
        ),
        start="deep",
    ),
    "steady": STEADY,
    "demo": Average({"late": 0.5, "steady": 0.5}),
    "tiny": Stage(
        TINY, Phase(tokens=80_000_000, prefix=0.45, spoken=SPOKEN, decay=0.4, dropout=0.05, warmup_steps=100, seed=3)
    ),
}

#: Stages whose end is written as a GGUF.
EXPORTED = ("late", "steady", "demo", "tiny")
