"""The recipe: the models and the length of their training.  Token counts include padding.

    demo           trained on the corpus
    tiny           the same at a quarter of the size
    demo-mbr       continues `demo` on the outputs that its samples agree on; ships as `demo`
    tiny-mbr       continues `tiny` on the same outputs; ships as `demo-tiny`, and drafts for `demo`
    demo-more      continues `demo-mbr` on the larger corpus
    demo-more-mbr  continues `demo-more` on the outputs that its samples agree on, which `demo-more` has unlearnt

Further stages have not been run to their end yet.  They are made for a GPU (`GPU_SHARES`), and make a larger model:

    demo-grown     continues `demo-mbr` with twice the layers, on the larger corpus
    teacher        eight times as large as the demo model; does not ship
    demo-taught    continues `demo-grown` on the teacher's translations of every English source, and on the corpus
    tiny-taught    the same at a quarter of the size, from scratch
    demo-q4        continues `demo-grown` with weights rounded as in Q4_0; to be exported with --format Q4_0

`python -m recipe align` then aligns the tiny model with the demo model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from recipe.loop import Phase
from recipe.model import Shape
from recipe.teach import Distillation

VOCABULARY = 16_384
TEACHER = Shape(VOCABULARY, hidden=1024, layers=16, heads=16, feed_forward=2816)
LARGE = Shape(VOCABULARY, hidden=512, layers=6, heads=8, feed_forward=1408)
GROWN = replace(LARGE, layers=12)
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
    """

    shape: Shape
    phase: Phase
    teacher: str | None = None
    distillation: Distillation | None = None
    start: str | None = None


#: Examples of the teacher for small models.
TAUGHT = Distillation(700_000)
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
TEACHER_PHASE = replace(
    DEMO, tokens=194_000_000, prefix=0.15, spoken=0.2, dropout=0.2, rate=1.1e-3, embedding_rate=0.8e-3, seed=0
)
TINY_PHASE = replace(DEMO, tokens=39_000_000, dropout=0.0, rate=1.6e-3, embedding_rate=1.2e-3, seed=3)
#: Examples of the demo model for itself and for the small one.
CONSENSUS = Distillation(16_000, samples=5)
#: Continues a finished model: lower rates, decaying from the start.
DEMO_MBR = replace(
    DEMO, tokens=9_000_000, distilled=0.6, decay=1.0, dropout=0.1, rate=4e-4, embedding_rate=3e-4, seed=4
)
TINY_MBR = replace(DEMO_MBR, tokens=12_000_000, distilled=0.5, dropout=0.0, rate=1.4e-3, embedding_rate=1e-3, seed=5)
#: Continues the model that ships on the larger corpus, for the time given by ``--within``.
DEMO_MORE = replace(
    DEMO,
    tokens=200_000_000,
    unfinished=0.3,
    decay=0.5,
    dropout=0.1,
    rate=4e-4,
    embedding_rate=3e-4,
    warmup_steps=30,
    seed=6,
)
#: New layers need more than the first rates of a continuation; what is rounded needs little.
DEMO_GROWN = replace(DEMO_MORE, tokens=400_000_000, rate=8e-4, embedding_rate=4e-4, seed=7)
DEMO_TAUGHT = replace(DEMO_GROWN, tokens=120_000_000, distilled=0.65, dropout=0.05, decay=1.0, rate=4e-4, seed=8)
DEMO_Q4 = replace(DEMO_MORE, tokens=20_000_000, decay=1.0, dropout=0.0, rate=2e-4, embedding_rate=1.5e-4, rounded=True)

STAGES: dict[str, Stage] = {
    "demo": Stage(LARGE, DEMO),
    "tiny": Stage(TINY, TINY_PHASE),
    "demo-mbr": Stage(LARGE, DEMO_MBR, "demo", CONSENSUS, start="demo"),
    "tiny-mbr": Stage(TINY, TINY_MBR, "demo", CONSENSUS, start="tiny"),
    "demo-more": Stage(LARGE, DEMO_MORE, start="demo-mbr"),
    "demo-more-mbr": Stage(LARGE, replace(DEMO_MBR, seed=10), "demo-more", CONSENSUS, start="demo-more"),
    "demo-grown": Stage(GROWN, DEMO_GROWN, start="demo-mbr"),
    "demo-q4": Stage(GROWN, DEMO_Q4, start="demo-grown"),
    "teacher": Stage(TEACHER, TEACHER_PHASE),
    "demo-taught": Stage(GROWN, DEMO_TAUGHT, "teacher", TAUGHT, start="demo-grown"),
    "tiny-taught": Stage(TINY, replace(TINY_PHASE, tokens=120_000_000, distilled=0.65), "teacher", TAUGHT),
}

#: Stages that are run by default.
DEFAULT_STAGES = ("demo", "tiny", "demo-mbr", "tiny-mbr")
#: What a rented GPU trains, in order of worth, and the share of its time for each.  Translation by the teacher takes at
#: most as long as the training of `demo-taught` that follows; what remains is for starting and compiling.
GPU_SHARES = {"demo-grown": 0.3, "teacher": 0.35, "demo-taught": 0.1, "tiny-taught": 0.05}
#: Stages whose result is exported as GGUF -> name of the model.
EXPORTED = {
    "demo-mbr": "redraft-demo",
    "tiny-mbr": "redraft-demo-tiny",
    "demo-more": "redraft-demo-more",
    "demo-more-mbr": "redraft-demo-more-mbr",
    "demo-grown": "redraft-demo-grown",
    "demo-q4": "redraft-demo-q4",
    "demo-taught": "redraft-demo-taught",
    "tiny-taught": "redraft-demo-tiny-taught",
}
