"""The registry of methods, including plug-ins.

Packages with an entry point in the group ``redraft.methods`` are imported on first use and call `register`.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from redraft.decoding.method import Method, Option
from redraft.errors import OptionError

ENTRY_POINT_GROUP = "redraft.methods"

_REGISTRY: dict[str, Method] = {}
_loaded = False


def register(method: Method) -> None:
    """Add a method to the table.

    Raises:
        OptionError: a method with this name is registered already.
    """
    if method.name in _REGISTRY:
        raise OptionError(f"method {method.name!r} is registered already")
    _REGISTRY[method.name] = method


def all_methods() -> dict[str, Method]:
    """Return all methods by name, including plug-ins."""
    global _loaded
    if not _loaded:
        for entry_point in entry_points(group=ENTRY_POINT_GROUP):
            entry_point.load()
        _loaded = True
    return dict(_REGISTRY)


def get_method(name: str) -> Method:
    """Return the method called ``name``.

    Raises:
        OptionError: no method has this name.
    """
    methods = all_methods()
    if name not in methods:
        raise OptionError(f"method {name!r} is not known; known methods: {', '.join(methods)}")
    return methods[name]


BETA = Option(
    "beta",
    0.2,
    0.0,
    1.0,
    "bias towards the previous translation: 0 accepts only exact matches, 0.5 and above everything",
)
FLOOR = Option("floor", 0.0, 0.0, 1.0, "lowest probability of a token that the bias keeps; 0 as in the paper")
