"""The table of methods: built-in ones (`builtin`) and plug-ins (`registry`)."""

from redraft.decoding.method import Choice, Method, Option, Setup, Value
from redraft.decoding.methods import builtin as builtin  # registers them
from redraft.decoding.methods.registry import BETA, all_methods, get_method, register

__all__ = ["BETA", "Choice", "Method", "Option", "Setup", "Value", "all_methods", "get_method", "register"]
