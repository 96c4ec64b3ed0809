"""The default method, which is ours.

It is SSBD (`redraft.decoding.methods.ssbd`) with two biases, one towards what the reader sees and a smaller one towards
the rest of the previous output.  A partial output stops where the model guesses (`redraft.decoding.followers`), what
two outputs agree on is shown (`redraft.decoding.followers`; LocalAgreement, Liu et al. 2020), and a final caption is
chosen among candidates (`redraft.captions.finals`).
"""

from __future__ import annotations

from dataclasses import replace

from redraft.decoding.method import Method, Option
from redraft.decoding.methods.ssbd import BETA, FLOOR, Biased, PreviousOutput
from redraft.decoding.search import OPTIONS

SHOWN = replace(BETA, default=0.4, help="bias towards shown words: 0 accepts only exact matches, 0.5 and above all")
HIDDEN = Option("hidden_beta", 0.1, 0.0, 1.0, "bias towards the hidden words of the previous translation")
STOP = Option(
    "stop", 0.4, 0.0, 1.0, "end a partial translation where its new words' joint probability falls below this; 0: never"
)


METHODS = (
    Method(
        "redraft",
        "the default: keeps the previous translation unless the model clearly prefers another word, shows a word once "
        "two translations agree on it, stops where the model only guesses, and chooses a final one among several",
        "ours; SSBD v2, Algorithm 1; Liu et al. 2020 (LocalAgreement)",
        "previous output",
        "biased",
        lambda setup: (PreviousOutput(), Biased(setup["beta"], setup["floor"], setup.ends, setup["hidden_beta"])),
        (SHOWN, HIDDEN, FLOOR, STOP, *OPTIONS),
        bias=SHOWN,
        defaults={"agree": 2, "first_sight": 0.4},
    ),
)
