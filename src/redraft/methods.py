"""The table of methods: each is a name, a drafter and an acceptance rule, with its options and their ranges.

Built-in methods register through the same call that a plug-in uses: a package that declares an entry point in the group
``redraft.methods`` is imported on first use and calls `register`.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from redraft.accept.biased import Biased
from redraft.accept.everything import Everything
from redraft.accept.exact import Exact
from redraft.draft.nothing import Nothing
from redraft.draft.previous import PreviousOutput
from redraft.errors import OptionError
from redraft.method import Choice, Method, Option, Setup, Value

__all__ = ["BETA", "Choice", "Method", "Option", "Setup", "Value", "all_methods", "get_method", "register"]

ENTRY_POINT_GROUP = "redraft.methods"

_REGISTRY: dict[str, Method] = {}
_loaded = False


def register(method: Method) -> None:
    """Add a method to the table.

    Raises:
        OptionError: its name is taken.
    """
    if method.name in _REGISTRY:
        raise OptionError(f"method {method.name!r} is registered already")
    _REGISTRY[method.name] = method


def all_methods() -> dict[str, Method]:
    """Every method by name, plug-ins included."""
    global _loaded
    if not _loaded:
        for entry_point in entry_points(group=ENTRY_POINT_GROUP):
            entry_point.load()
        _loaded = True
    return dict(_REGISTRY)


def get_method(name: str) -> Method:
    """The method called ``name``.

    Raises:
        OptionError: there is none.
    """
    methods = all_methods()
    if name not in methods:
        raise OptionError(f"method {name!r} is not known; known methods: {', '.join(methods)}")
    return methods[name]


BETA = Option(
    "beta", 0.2, 0.0, 1.0, "bias towards the previous translation: 0 keeps only exact matches, 0.5 and more all"
)
FLOOR = Option("floor", 0.0, 0.0, 1.0, "least probability of a token that the bias keeps; 0 as in the paper")

register(
    Method(
        "ar",
        "re-translation from scratch, one pass a token",
        "SSBD v2, equation 1 (RT)",
        "nothing",
        "exact",
        lambda _setup: (Nothing(), Exact()),
    )
)
register(
    Method(
        "cd",
        "continuous decoding: the previous translation is taken as is and only continued",
        "SSBD v2, section 4.2 (CD)",
        "previous output",
        "everything",
        lambda _setup: (PreviousOutput(), Everything()),
    )
)
register(
    Method(
        "ssbd",
        "self-speculative biased decoding: the previous translation is verified in one pass with a bias towards it",
        "SSBD v2, Algorithm 1, equations 1-3",
        "previous output",
        "biased",
        lambda setup: (
            PreviousOutput(),
            Biased(setup.number("beta"), setup.number("floor"), setup.end_tokens),
        ),
        (BETA, FLOOR),
    )
)
