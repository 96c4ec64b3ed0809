"""Decoding methods: a name, a drafter, an acceptance rule, and options with their ranges.

`redraft.decoding.methods` holds the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from redraft.decoding.backend import Capability
from redraft.decoding.types import Drafter, Rule
from redraft.errors import CapabilityError, OptionError, expect, nearest

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
        if self.is_switch:
            return "0 or 1"
        return f"a {'whole ' if self.whole else ''}number from {self.low:.16g} to {self.high:.16g}"

    @property
    def is_switch(self) -> bool:
        """Whether it is 0 or 1; then truth values stand for these."""
        return self.whole and (self.low, self.high) == (0, 1)

    def check(self, value: object) -> Value:
        """Return a value that is allowed; raise `OptionError` for others."""
        # Written so that NaN, which compares false with everything, is rejected too.
        if (
            isinstance(value, int | float)
            and (self.is_switch or not isinstance(value, bool))
            and self.low <= value <= self.high
            and not (self.whole and value != math.floor(value))
        ):
            return int(value) if self.whole else value
        raise OptionError(f"must be {self.allowed}, not {value!r}", self.name)


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
        """Return a value that is allowed; raise `OptionError` for others."""
        if value not in self.words:
            raise OptionError(f"must be {self.allowed}, not {value!r}", self.name)
        return str(value)


@dataclass(frozen=True, slots=True)
class Setup:
    """The input for building a method.

    Attributes:
        options: its checked options.
        end_tokens: ids that end an output.
        pad_token: id of the padding token.
        memory: state that drafters keep between the updates of a stream in one language, by type.
        line_ends: ids of line breaks; one behind text ends an output of one line.
    """

    options: Mapping[str, Value]
    end_tokens: frozenset[int]
    pad_token: int = 0
    memory: dict[type, Any] = field(default_factory=dict)
    line_ends: frozenset[int] = frozenset()

    @property
    def ends(self) -> frozenset[int]:
        """All ids that may end an output."""
        return self.end_tokens | self.line_ends

    def recall(self, kind: type[T]) -> T:
        """Return the stream's object of this type; the first call creates it without arguments.

        Each decoding gets a shallow copy (`copy.copy`), which replaces the original if the update is kept.  So what a
        drafter assigns to an attribute goes if the update fails or is abandoned; what it changes in place, such as an
        entry of a dictionary, stays.  Change in place only what is true of the model whatever becomes of the update,
        such as the rows behind some ids: that costs the same however much there is.
        """
        if kind not in self.memory:
            self.memory[kind] = kind()
        found: T = self.memory[kind]
        return found

    def __getitem__(self, name: str) -> Any:
        """Return an option: an integer if it is whole, a number or a word."""
        return self.options[name]


#: Name -> option that every method has: four say what is shown of partial translations
#: (`redraft.decoding.followers`, `redraft.captions.stabilise`), two how long prompt and output may be.
COMMON = {
    each.name: each
    for each in (
        Option("agree", 1, 1, 10, "show a word once so many translations in a row agree", whole=True),
        Option(
            "first_sight", 1.0, 0, 1, "show new words at once while their joint probability is at least this; 1: never"
        ),
        Option("mask_k", 0, 0, 100, "hide so many tokens at the end of partial captions", whole=True),
        Option("plain", 0, 0, 1, "1: leave what mask_k hides out of the draft too", whole=True),
        Option("context", 0, 0, 100, "earlier sentences in the prompt", whole=True),
        Option("max_tokens", 256, 1, 65_536, "maximum tokens of a translation", whole=True),
    )
}


@dataclass(frozen=True, slots=True)
class Method:
    """A decoding method.

    Attributes:
        name: what users type.
        summary: one-line description.
        paper: the paper, with its section or algorithm.
        drafter: name of its drafter, for the table of methods.
        rule: name of its acceptance rule.
        build: creates drafter and rule for one decoding.
        options: its own options.  Three names mean the same in all methods: ``stop``, the joint probability below which
            a partial output ends (`redraft.decoding.followers`); ``search``, the time in which better final texts are
            searched for, with the other options of `redraft.decoding.search`; and ``layers``, the number of the
            target's first layers that are the drafter's model, for a method that needs `Capability.EARLY_EXIT`.
        needs: capabilities that the backend must have.
        small_model: whether the drafter has a second model with the same vocabulary.
        bias: the option with the bias towards the previous output, or what is shown of it, if it has one.
        defaults: of options that every method has (`COMMON`), where it has others.

    Raises:
        OptionError: a default is not allowed, two options have one name, or ``bias`` is not among ``options``.
    """

    name: str
    summary: str
    paper: str
    drafter: str
    rule: str
    build: Callable[[Setup], tuple[Drafter, Rule]]
    options: tuple[Option | Choice, ...] = ()
    needs: frozenset[Capability] = frozenset()
    small_model: bool = False
    bias: Option | None = None
    defaults: Mapping[str, Value] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.bias is not None and self.bias not in self.options:
            raise OptionError(f"bias of method {self.name!r} must be one of its options")
        names = [option.name for option in self.all_options]
        if twice := [name for name in names if names.count(name) > 1]:
            raise OptionError(f"method {self.name!r} has two options {twice[0]!r}")
        self.check({**{option.name: option.default for option in self.all_options}, **self.defaults})

    @property
    def all_options(self) -> tuple[Option | Choice, ...]:
        """Its own options, and those of every method (`COMMON`)."""
        given: Mapping[str, Any] = self.defaults
        common = [replace(each, default=given.get(name, each.default)) for name, each in COMMON.items()]
        return (*self.options, *common)

    def check(self, options: Mapping[str, Value]) -> dict[str, Value]:
        """Return options with the defaults; raise `OptionError` if one is unknown or has an invalid value."""
        known = {option.name: option for option in self.all_options}
        expect(options, Mapping, "options", "{'beta': 0.2}")
        for name in options:
            if name not in known:
                near = nearest(str(name), known)
                raise OptionError(f"method {self.name!r} has no option {name!r}{near}; its options: {', '.join(known)}")
        return {name: option.check(options.get(name, option.default)) for name, option in known.items()}

    def require(self, capabilities: frozenset[Capability]) -> None:
        """Raise `CapabilityError`, which names the capability, if a backend lacks one that the method needs."""
        if missing := sorted(each.value for each in self.needs - capabilities):
            raise CapabilityError(f"method {self.name!r} needs a backend with {missing[0]}")
