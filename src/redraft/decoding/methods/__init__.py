"""The table of methods: a module for each paper, and plug-ins (`registry`).

A module has the paper's drafter and rule with their equations, its options, and its rows of the table (``METHODS``).
What papers share is in `redraft.decoding.drafters`, `redraft.decoding.rules` and `redraft.decoding.rules`.
"""

from redraft.decoding.methods import aasd, beam, bild, combined, fly, jacobi, lookup, redraft, sampling, ssbd
from redraft.decoding.methods.registry import all_methods, broken_plug_ins, get_method, register
from redraft.decoding.methods.ssbd import BETA

__all__ = [
    "BETA",
    "all_methods",
    "broken_plug_ins",
    "get_method",
    "register",
]

for _module in (ssbd, beam, jacobi, bild, sampling, lookup, aasd, fly, combined, redraft):
    for _method in _module.METHODS:
        register(_method)
