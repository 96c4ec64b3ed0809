"""The recipe: the models and the length of their training.  Token counts include padding.

    demo         trained on the corpus
    tiny         the same at a quarter of the size
    demo-mbr     continues `demo` on the outputs that its samples agree on
    tiny-mbr     continues `tiny` on the same outputs; ships as `demo-tiny`, and drafts for `demo`
    demo-more    continues `demo-mbr` on the corpus, now with text cut as recognisers cut it
    teacher      continues `demo-mbr` with three times the layers; does not ship
    demo-taught  continues `demo-more` on the outputs that the teacher's samples agree on
    demo-spoken  continues `demo-taught` on what people say, and is averaged with it; ships as `demo`

Further stages have not been run to their ends:

    tiny-taught  continues `tiny-mbr` on the teacher's outputs
    demo-q4      continues `demo-spoken` with weights rounded as in Q4_0; to be exported with --format Q4_0

`python -m redraft_train.recipe align` then aligns the tiny model with the demo model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from redraft_train.recipe.loop import Phase
from redraft_train.recipe.model import Shape
from redraft_train.recipe.teach import Distillation

VOCABULARY = 16_384
LARGE = Shape(VOCABULARY, hidden=512, layers=6, heads=8, feed_forward=1408)
TEACHER = replace(LARGE, layers=18)
TINY = Shape(VOCABULARY, hidden=256, layers=4, heads=4, feed_forward=768)

#: Share of sources in the style of a recogniser, partial or final.
SPOKEN = 0.3


@dataclass(frozen=True, slots=True)
class Stage:
    """A trained model of the recipe.

    Attributes:
        shape: shape of the model.
        phase: its training.
        teacher: stage whose translations it is trained on.
        distillation: how these become examples; stages with the same teacher and distillation share them.
        start: stage whose weights it begins with; further layers begin as the identity.
        kept: share of those weights in the mean with the trained ones that is the result, see `recipe.average`.
    """

    shape: Shape
    phase: Phase
    teacher: str | None = None
    distillation: Distillation | None = None
    start: str | None = None
    kept: float = 0.0


#: Examples of the teacher for small models.
TAUGHT = Distillation(10_000, samples=3)
#: Rates for batches of `recipe.examples.BATCH`; those on a GPU are eight times as large (`Hardware.scale`).
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
TINY_PHASE = replace(DEMO, tokens=39_000_000, dropout=0.0, rate=1.6e-3, embedding_rate=1.2e-3, seed=3)
#: Examples of the demo model for itself and for the small one.
CONSENSUS = Distillation(16_000, samples=5)
#: Continues a finished model: lower rates, decaying from the start.
DEMO_MBR = replace(
    DEMO, tokens=9_000_000, distilled=0.6, decay=1.0, dropout=0.1, rate=4e-4, embedding_rate=3e-4, seed=4
)
TINY_MBR = replace(DEMO_MBR, tokens=12_000_000, distilled=0.5, dropout=0.0, rate=1.4e-3, embedding_rate=1e-3, seed=5)
#: Its rates are for a model that has been trained before.
DEMO_MORE = replace(
    DEMO,
    tokens=177_000_000,
    unfinished=0.3,
    decay=0.5,
    dropout=0.1,
    rate=4e-4,
    embedding_rate=3e-4,
    warmup_steps=30,
    seed=6,
)
#: New layers need more than the first rates of a continuation, and more dropout.
TEACHER_PHASE = replace(
    DEMO_MORE, tokens=101_000_000, prefix=0.2, spoken=0.2, unfinished=0.0, dropout=0.15, rate=8e-4, seed=7
)
DEMO_TAUGHT = replace(DEMO_MBR, tokens=3_500_000, seed=8)
#: Learns the turns, patterns and numbers that the model loses (`recipe.examples`); for all other texts, whole ones and
#: beginnings, it keeps to what it predicted before, so that captions stay steady.
DEMO_SPOKEN = replace(
    DEMO_MORE,
    tokens=198_000_000,
    said=0.4,
    smoothed=400,
    every_s=90,
    unfinished=0.0,  # beginnings with a full stop make whole fragments such as "They will be." look unfinished
    prefix=0.6,
    decay=0.9,
    rate=5e-4,
    embedding_rate=4e-4,
    warmup_steps=100,
    seed=11,
)
TINY_TAUGHT = replace(TINY_MBR, seed=9)
#: What is rounded needs little.
DEMO_Q4 = replace(DEMO_MORE, tokens=20_000_000, decay=1.0, dropout=0.0, rate=2e-4, embedding_rate=1.5e-4, rounded=True)

STAGES: dict[str, Stage] = {
    "demo": Stage(LARGE, DEMO),
    "tiny": Stage(TINY, TINY_PHASE),
    "demo-mbr": Stage(LARGE, DEMO_MBR, "demo", CONSENSUS, start="demo"),
    "tiny-mbr": Stage(TINY, TINY_MBR, "demo", CONSENSUS, start="tiny"),
    "demo-more": Stage(LARGE, DEMO_MORE, start="demo-mbr"),
    "teacher": Stage(TEACHER, TEACHER_PHASE, start="demo-mbr"),
    "demo-taught": Stage(LARGE, DEMO_TAUGHT, "teacher", TAUGHT, start="demo-more"),
    "demo-spoken": Stage(LARGE, DEMO_SPOKEN, start="demo-taught", kept=0.5),
    "tiny-taught": Stage(TINY, TINY_TAUGHT, "teacher", TAUGHT, start="tiny-mbr"),
    "demo-q4": Stage(LARGE, DEMO_Q4, start="demo-spoken"),
}

#: Stages that are run by default: those that what ships needs.
DEFAULT_STAGES = ("demo", "tiny", "demo-mbr", "tiny-mbr", "demo-more", "teacher", "demo-taught", "demo-spoken")
#: Stages whose result is exported as GGUF -> name of the model.  Those of `redraft.models.SHIPPED` are taken from the
#: package if the stage has not been run.
EXPORTED = {
    "demo-spoken": "redraft-demo",
    "tiny-mbr": "redraft-demo-tiny",
    "tiny-taught": "redraft-demo-tiny-taught",
    "demo-q4": "redraft-demo-q4",
}
