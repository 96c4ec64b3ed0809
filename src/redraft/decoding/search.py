"""The search for a better final text: its options, which a method has or not (`redraft.decoding.method.Method`).

A partial text has to be fast.  A final one comes when somebody has stopped speaking, and it stays: there is time to
translate it in more than one way and to choose (`redraft.captions.finals`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from redraft.decoding.method import Option, Value

#: Most hypotheses of a beam.
MOST = 16

SEARCH = Option(
    "search", 250, 0, 60_000, "milliseconds that each search for a better final translation may take; 0: none"
)
HYPOTHESES = Option("hypotheses", 4, 1, MOST, "hypotheses of the search; 1 only compares with the exact output", True)
MARGIN = Option(
    "margin", 0.2, 0.0, 10.0, "by how much the exact output must be more probable, in nats per token, to be chosen"
)
DOUBT = Option(
    "doubt", 1.0, 0.0, 100.0, "give a search ten times as long if the bias has given up so many nats; 100: never"
)
OPTIONS = (SEARCH, HYPOTHESES, MARGIN, DOUBT)
#: How many times as long a search may take if the bias has probably spoilt the translation.
DOUBTFUL = 10


@dataclass(frozen=True, slots=True)
class Search:
    """How a final text is searched for.

    Attributes:
        seconds: most seconds that each further candidate may take.
        hypotheses: number of hypotheses of the beam, at least 1.
        margin: nats per token by which the exact output must be more probable than what is shown.
        doubt: nats that the bias may give up before a candidate may take `DOUBTFUL` times as long.
    """

    seconds: float
    hypotheses: int
    margin: float
    doubt: float

    @classmethod
    def of(cls, options: Mapping[str, Value]) -> Search:
        """Return the search in the checked options of a method that declares it."""
        milliseconds, hypotheses, margin, doubt = (float(options[each.name]) for each in OPTIONS)
        return cls(milliseconds / 1000, int(hypotheses), margin, doubt)
