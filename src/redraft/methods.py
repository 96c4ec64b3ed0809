"""The table of methods: each is a name, a drafter and an acceptance rule, with its options and their ranges.

Built-in methods register through the same call that a plug-in uses: a package that declares an entry point in the group
``redraft.methods`` is imported on first use and calls `register`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points

from redraft.accept.biased import Biased
from redraft.accept.everything import Everything
from redraft.accept.exact import Exact
from redraft.draft.nothing import Nothing
from redraft.draft.previous import PreviousOutput
from redraft.errors import CapabilityError, OptionError
from redraft.types import Capabilities, Drafter, Rule

ENTRY_POINT_GROUP = "redraft.methods"


@dataclass(frozen=True, slots=True)
class Option:
    """A numeric option of a method: its default and the closed range of allowed values."""

    name: str
    default: float
    low: float
    high: float
    help: str


@dataclass(frozen=True, slots=True)
class Setup:
    """What a method is built from: its checked options and the ids that end an output."""

    options: Mapping[str, float]
    end_tokens: frozenset[int]


@dataclass(frozen=True, slots=True)
class Method:
    """A decoding method.

    Attributes:
        name: what users type.
        summary: one line: what it does.
        source: the paper, with its section or algorithm.
        drafter, rule: names of its two parts, for the table of methods.
        build: makes a fresh drafter and rule for one decoding.
        options: its options.
        needs: names of `Capabilities` that the backend must have.
    """

    name: str
    summary: str
    source: str
    drafter: str
    rule: str
    build: Callable[[Setup], tuple[Drafter, Rule]]
    options: tuple[Option, ...] = ()
    needs: frozenset[str] = field(default_factory=frozenset)

    def check(self, options: Mapping[str, float]) -> dict[str, float]:
        """Given options with the defaults filled in.

        Raises:
            OptionError: unknown, not a number, or out of range.
        """
        known = {option.name: option for option in self.options}
        for name in options:
            if name not in known:
                allowed = ", ".join(known) or "none"
                raise OptionError(f"method {self.name!r} has no option {name!r}; its options: {allowed}")
        checked = {name: options.get(name, option.default) for name, option in known.items()}
        for name, value in checked.items():
            option = known[name]
            # Written so that NaN, for which every comparison is false, is refused too.
            if isinstance(value, bool) or not isinstance(value, int | float) or not option.low <= value <= option.high:
                raise OptionError(f"{name} must be a number from {option.low:g} to {option.high:g}, not {value!r}")
        return checked

    def require(self, capabilities: Capabilities) -> None:
        """Refuse a backend that lacks what the method needs.

        Raises:
            CapabilityError: it lacks something; the message names it.
        """
        for need in sorted(self.needs):
            if not getattr(capabilities, need):
                raise CapabilityError(f"method {self.name!r} needs a backend with {need.replace('_', ' ')}")


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
            Biased(setup.options["beta"], setup.options["floor"], setup.end_tokens),
        ),
        (BETA, FLOOR),
    )
)
