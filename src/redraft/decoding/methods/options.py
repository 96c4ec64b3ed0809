"""Options of more than one paper: sampling, and the length of a small model's draft."""

from __future__ import annotations

from redraft.decoding.method import Option, Setup
from redraft.decoding.sampling import Sampler

WINDOW = Option("window", 10, 1, 10, "maximum tokens that the small model drafts at a time", whole=True)
TOP_P = Option(
    "top_p", 1.0, 0.0, 1.0, "with a temperature above 0, sample only from the most probable tokens with this total mass"
)
TOP_K = Option(
    "top_k",
    0,
    0,
    1000,
    "with a temperature above 0, sample only from so many most probable tokens; 0 for all",
    whole=True,
)
SEED = Option("seed", 0, 0, 999_999, "random seed, the same for every update", whole=True)


def sampling(temperature: float) -> tuple[Option, ...]:
    """Return the options of `sampler`, with this temperature by default."""
    return Option("temperature", temperature, 0.0, 2.0, "sampling temperature; 0 is greedy"), TOP_P, TOP_K, SEED


def sampler(setup: Setup) -> Sampler:
    """Return the sampler that the options of `sampling` describe."""
    return Sampler(setup["temperature"], setup["top_p"], setup["seed"], setup["top_k"])
