"""Options shared by several methods."""

from __future__ import annotations

from redraft.decoding.method import Option

BETA = Option(
    "beta",
    0.2,
    0.0,
    1.0,
    "bias towards the previous translation: 0 accepts only exact matches, 0.5 and above everything",
)
FLOOR = Option("floor", 0.0, 0.0, 1.0, "lowest probability of a token that the bias keeps; 0 as in the paper")
