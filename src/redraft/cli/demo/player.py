"""A translator of the demo with a counter: what its captions cost, sentence by sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from redraft.backends.llamacpp import LlamaCpp
from redraft.captions.events import Caption, Update
from redraft.captions.languages import parse_targets
from redraft.captions.source import DEFAULT_SOURCE, check_policy
from redraft.captions.stabilise import Mask
from redraft.decoding.method import Value
from redraft.decoding.methods import BETA, get_method
from redraft.decoding.types import common_prefix
from redraft.translator import Translator


@dataclass(frozen=True, slots=True)
class Contender:
    """A method with its options, into one language."""

    method: str
    language: str
    options: tuple[tuple[str, Value], ...] = ()
    mask: Mask = Mask()
    source: str = DEFAULT_SOURCE

    @property
    def settings(self) -> str:
        """The options that are set, e.g. ``beta=0.2``."""
        return " ".join(f"{name}={value:g}" for name, value in self.options)

    @property
    def title(self) -> str:
        """Method and settings."""
        return f"{self.method} {self.settings}".strip()


def contenders(
    methods: Sequence[str], targets: Sequence[str], beta: float, mask: Mask, source: str = DEFAULT_SOURCE
) -> list[Contender]:
    """Combine every method with every language, without duplicates.

    Raises:
        OptionError: a method, a language or the policy ``source`` is unknown.
    """
    options = {name: (("beta", beta),) if BETA in get_method(name).options else () for name in methods}
    tags = parse_targets(targets)
    check_policy(source, "--source")
    return [Contender(name, tag, options[name], mask, source) for tag in tags for name in options]


@dataclass(slots=True)
class Counts:
    """Totals over updates: outputs that took passes, and tokens of captions that were shown and then removed.

    Attributes:
        erased: removed tokens of outputs.
        erased_shown: removed tokens of what captions show, without the part that is hidden.
        length: tokens of the final outputs.
        length_shown: tokens of the final captions.
    """

    updates: int = 0
    tokens: int = 0
    passes: int = 0
    draft_passes: int = 0
    drafted: int = 0
    accepted: int = 0
    seconds: float = 0.0
    erased: int = 0
    erased_shown: int = 0
    length: int = 0
    length_shown: int = 0

    def add(self, more: Counts) -> None:
        """Add other totals."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(more, each.name))


@dataclass(frozen=True, slots=True)
class Sentence:
    """A finished sentence: its utterance, its final caption and what it took."""

    utterance: str
    text: str
    counts: Counts


class Player:
    """Translates a talk with one method into one language.

    Attributes:
        caption: the latest caption.
        finished: the sentences so far.
        current: totals of the sentence in progress.
    """

    def __init__(self, backend: LlamaCpp, contender: Contender, small: LlamaCpp | None = None) -> None:
        self.contender = contender
        self.translator = Translator(
            backend,
            [contender.language],
            method=contender.method,
            options=dict(contender.options),
            mask=contender.mask,
            source=contender.source,
            small=small,
        )
        self.caption: Caption | None = None
        self.finished: list[Sentence] = []
        self.current = Counts()
        self._ids: tuple[list[int], list[int]] = ([], [])

    @property
    def total(self) -> Counts:
        """Totals over the finished sentences."""
        total = Counts()
        for each in self.finished:
            total.add(each.counts)
        return total

    @property
    def so_far(self) -> Counts:
        """Totals, including the sentence in progress."""
        total = self.total
        total.add(self.current)
        return total

    def translate(self, update: Update) -> None:
        """Translate an update and count."""
        translator, now = self.translator, self.current
        tally, seconds = translator.translation(self.contender.language).tally, translator.seconds
        names = ("passes", "draft_passes", "drafted", "accepted", "tokens")
        before = [getattr(tally, name) for name in names]
        captions = [event for event in translator.translate(update) if isinstance(event, Caption)]
        now.seconds += translator.seconds - seconds
        if tally.passes > before[0]:  # a repetition takes none
            now.updates += 1
            for name, was in zip(names, before, strict=True):
                setattr(now, name, getattr(now, name) + getattr(tally, name) - was)
        self.caption = captions[-1] if captions else self.caption  # after a failure the display stays as it was
        here = self.caption if self.caption and self.caption.utterance == update.utterance else None
        text, hidden = (here.text, here.unstable) if here else ("", "")
        ids = translator.backend.tokenize(text + hidden), translator.backend.tokenize(text)
        now.erased += len(self._ids[0]) - common_prefix(self._ids[0], ids[0])
        now.erased_shown += len(self._ids[1]) - common_prefix(self._ids[1], ids[1])
        self._ids = ids
        if update.final:
            now.length, now.length_shown = len(ids[0]), len(ids[1])
            self.finished.append(Sentence(update.utterance, text, now))
            self.current, self._ids = Counts(), ([], [])


def take_turns(
    players: Sequence[Player],
    updates: Iterable[Update],
    show: Callable[[Update, Sequence[Player]], None] | None = None,
) -> None:
    """Give each update to every player, in an order that is reversed each time, so that none is always first."""
    for number, update in enumerate(updates):
        for player in players if number % 2 == 0 else reversed(players):
            player.translate(update)
        if show:
            show(update, players)
