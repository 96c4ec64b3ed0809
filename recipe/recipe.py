"""The recipe: which models are trained, for how long.  Counts of tokens include padding.

    demo           learns the corpus: it ships
    tiny           the same at a quarter of the size: it ships, and drafts for the demo model

Two more take the next step, sequence-level distillation.  They have not been run to their end yet:

    teacher        three times as large as what ships; it stays at home
    demo-taught    learns the teacher's translations of every English source, beside the corpus
    tiny-taught    the same at a quarter of the size

`python -m recipe align` then aligns the tiny model with the demo model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from recipe.loop import Phase
from recipe.model import Shape
from recipe.teach import Distillation

VOCABULARY = 16_384
TEACHER = Shape(VOCABULARY, hidden=768, layers=10, heads=12, feed_forward=2048)
LARGE = Shape(VOCABULARY, hidden=512, layers=6, heads=8, feed_forward=1408)
TINY = Shape(VOCABULARY, hidden=256, layers=4, heads=4, feed_forward=768)

#: Share of sources as a recogniser writes them; finals of a recogniser are among them.
SPOKEN = 0.3


@dataclass(frozen=True, slots=True)
class Stage:
    """One trained model of the recipe.

    Attributes:
        shape, phase: of the model and of its training.
        teacher: the stage whose translations it learns.
        distillation: how these become examples; stages of one teacher and one distillation share them.
    """

    shape: Shape
    phase: Phase
    teacher: str | None = None
    distillation: Distillation | None = None


#: What small models learn of the teacher.
TAUGHT = Distillation(700_000)
#: Rates for batches of `recipe.examples.BATCH`; those of a GPU are eight times as large (`Hardware.scale`).
DEMO = Phase(
    tokens=229_000_000,
    prefix=0.35,
    spoken=SPOKEN,
    decay=0.5,
    dropout=0.12,
    rate=1.4e-3,
    embedding_rate=1e-3,
    seed=1,
)
TEACHER_PHASE = replace(
    DEMO, tokens=194_000_000, prefix=0.15, spoken=0.2, dropout=0.2, rate=1.1e-3, embedding_rate=0.8e-3, seed=0
)
TINY_PHASE = replace(DEMO, tokens=39_000_000, dropout=0.0, rate=1.6e-3, embedding_rate=1.2e-3, seed=3)

STAGES: dict[str, Stage] = {
    "demo": Stage(LARGE, DEMO),
    "tiny": Stage(TINY, TINY_PHASE),
    "teacher": Stage(TEACHER, TEACHER_PHASE),
    "demo-taught": Stage(LARGE, replace(DEMO, distilled=0.65, dropout=0.05), "teacher", TAUGHT),
    "tiny-taught": Stage(TINY, replace(TINY_PHASE, tokens=120_000_000, distilled=0.65), "teacher", TAUGHT),
}

#: Stages that are run unless others are asked for.
SHIPPED = ("demo", "tiny")
#: Stages whose end is written as a GGUF.
EXPORTED = (*SHIPPED, "demo-taught", "tiny-taught")
