"""The table of methods: built-in ones (`builtin`) and plug-ins (`registry`)."""

from redraft.decoding.backend import Capability
from redraft.decoding.method import Choice, DraftModel, Method, Option, Setup, Value
from redraft.decoding.methods import builtin as builtin  # registers them
from redraft.decoding.methods.registry import BETA, all_methods, broken_plug_ins, get_method, register

__all__ = [
    "BETA",
    "Capability",
    "Choice",
    "DraftModel",
    "Method",
    "Option",
    "Setup",
    "Value",
    "all_methods",
    "broken_plug_ins",
    "get_method",
    "register",
]
