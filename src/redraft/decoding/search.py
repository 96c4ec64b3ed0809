"""The search for a better final text: its options, which a method has or not (`redraft.decoding.method.Method`).

A partial text has to be fast.  A final one comes when somebody has stopped speaking, and it stays: there is time to
translate it in more than one way and to choose (`redraft.captions.finals`).
"""

from __future__ import annotations

from redraft.decoding.method import Option

#: Most hypotheses of a beam.
MOST = 16

OPTIONS = (
    Option("search", 250, 0, 60_000, "milliseconds that each search for a better final translation may take; 0: none"),
    Option("hypotheses", 4, 1, MOST, "hypotheses of the search; 1 only compares with the exact output", whole=True),
    Option(
        "margin", 0.2, 0.0, 10.0, "by how much the exact output must be more probable, in nats per token, to be chosen"
    ),
    Option(
        "doubt", 1.0, 0.0, 100.0, "give a search ten times as long if the bias has given up so many nats; 100: never"
    ),
)
#: How many times as long a search may take if the bias has probably spoilt the translation.
DOUBTFUL = 10
