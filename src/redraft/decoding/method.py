"""Decoding methods: a name, a drafter, an acceptance rule, and options with their ranges.

`redraft.decoding.methods` holds the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from redraft.decoding.backend import Capabilities
from redraft.decoding.cost import CostCurve
from redraft.decoding.types import Drafter, Rule
from redraft.errors import CapabilityError, OptionError

T = TypeVar("T")

#: The value of an option: a number, or one of several words.
Value: TypeAlias = float | str


@dataclass(frozen=True, slots=True)
class Option:
    """A numeric option of a method: its default and the closed range of allowed values."""

    name: str
    default: float
    low: float
    high: float
    help: str
    whole: bool = False

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        return f"a {'whole ' if self.whole else ''}number from {self.low:g} to {self.high:g}"

    def check(self, value: object) -> Value:
        """Check a value and return it.

        Raises:
            OptionError: the value is not allowed.
        """
        # Written so that NaN, which compares false with everything, is rejected too.
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and self.low <= value <= self.high
            and not (self.whole and value != math.floor(value))
        ):
            return value
        raise OptionError(f"{self.name} must be {self.allowed}, not {value!r}")


@dataclass(frozen=True, slots=True)
class Choice:
    """An option whose value is one of several words."""

    name: str
    default: str
    words: tuple[str, ...]
    help: str

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    def check(self, value: object) -> Value:
        """Check a value and return it.

        Raises:
            OptionError: the value is not allowed.
        """
        if value not in self.words:
            raise OptionError(f"{self.name} must be {self.allowed}, not {value!r}")
        return str(value)


@dataclass(frozen=True, slots=True)
class Setup:
    """The input for building a method.

    Attributes:
        options: its checked options.
        end_tokens: ids that end an output.
        pad_token: id of the padding token.
        memory: state that drafters keep between the updates of a stream in one language, by type.
        curve: cost of a pass; None if it is unknown or does not matter.
        trees: whether the backend scores draft trees.
    """

    options: Mapping[str, Value]
    end_tokens: frozenset[int]
    pad_token: int = 0
    memory: dict[type, object] = field(default_factory=dict)
    curve: CostCurve | None = None
    trees: bool = False

    def recall(self, kind: type[T]) -> T:
        """Return the stream's object of this type; the first call creates it."""
        found = self.memory.setdefault(kind, kind())
        assert isinstance(found, kind)  # noqa: S101  # for the type checker
        return found

    def number(self, name: str) -> float:
        """Return a numeric option."""
        return float(self.options[name])

    def whole(self, name: str) -> int:
        """Return an integer option."""
        return int(self.options[name])

    def word(self, name: str) -> str:
        """Return an option that is a word."""
        return str(self.options[name])


@dataclass(frozen=True, slots=True)
class Method:
    """A decoding method.

    Attributes:
        name: what users type.
        summary: one-line description.
        source: the paper, with its section or algorithm.
        drafter: name of its drafter, for the table of methods.
        rule: name of its acceptance rule.
        build: creates drafter and rule for one decoding.
        options: its options.
        needs: names of `Capabilities` that the backend must have.
        uses: names of capabilities that it uses if the backend has them.
        draft_model: the drafter's model: ``""`` for none, ``"small"`` for a second model with the same vocabulary,
            ``"layers"`` for the target's first layers (their number is the option ``layers``).
    """

    name: str
    summary: str
    source: str
    drafter: str
    rule: str
    build: Callable[[Setup], tuple[Drafter, Rule]]
    options: tuple[Option | Choice, ...] = ()
    needs: frozenset[str] = field(default_factory=frozenset)
    uses: frozenset[str] = field(default_factory=frozenset)
    draft_model: str = ""

    def by_cost(self, options: Mapping[str, Value]) -> bool:
        """Whether its drafts depend on the cost of a pass, with these checked options."""
        return options.get("cost") == "measured"

    def check(self, options: Mapping[str, Value]) -> dict[str, Value]:
        """Check options and add the defaults.

        Raises:
            OptionError: an option is unknown or has an invalid value.
        """
        known = {option.name: option for option in self.options}
        for name in options:
            if name not in known:
                allowed = ", ".join(known) or "none"
                raise OptionError(f"method {self.name!r} has no option {name!r}; its options: {allowed}")
        return {name: option.check(options.get(name, option.default)) for name, option in known.items()}

    def require(self, capabilities: Capabilities) -> None:
        """Check that a backend supports the method.

        Raises:
            CapabilityError: it lacks a capability; the message names it.
        """
        for need in sorted(self.needs):
            if not getattr(capabilities, need):
                raise CapabilityError(f"method {self.name!r} needs a backend with {need.replace('_', ' ')}")
