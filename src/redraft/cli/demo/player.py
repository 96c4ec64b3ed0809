"""A translator of the demo with a counter: what its captions cost, sentence by sentence."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redraft.backends.llamacpp import LlamaCpp
from redraft.captions.events import Caption, Update
from redraft.captions.languages import parse_targets
from redraft.captions.source import DEFAULT_SOURCE, check_policy
from redraft.captions.stabilise import Mask
from redraft.decoding.method import Value
from redraft.decoding.methods import BETA, get_method
from redraft.decoding.types import Tally, common_prefix
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
class Counts(Tally):
    """Totals over outputs, with tokens of captions that were shown and then removed.

    Attributes:
        seconds: time of the passes.
        erased: removed tokens of outputs.
        erased_shown: removed tokens of what captions show, without the part that is hidden.
        length: tokens of the final outputs.
        length_shown: tokens of the final captions.
    """

    seconds: float = 0.0
    erased: int = 0
    erased_shown: int = 0
    length: int = 0
    length_shown: int = 0

    def include(self, more: Tally, before: Tally | None = None) -> None:
        """Add other totals, less those from ``before``."""
        for each in fields(more):
            new = getattr(more, each.name) - getattr(before, each.name, 0)
            setattr(self, each.name, getattr(self, each.name) + new)


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
            total.include(each.counts)
        return total

    @property
    def so_far(self) -> Counts:
        """Totals, including the sentence in progress."""
        total = self.total
        total.include(self.current)
        return total

    def take(self, update: Update) -> None:
        """Translate an update and count."""
        translator, now = self.translator, self.current
        tally, seconds = translator.translation(self.contender.language).tally, translator.seconds
        before = replace(tally)
        captions = [event for event in translator.translate(update) if isinstance(event, Caption)]
        now.seconds += translator.seconds - seconds
        now.include(tally, before)
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
            player.take(update)
        if show:
            show(update, players)


#: Field -> heading and number format.
COLUMNS = {
    "target_language": ("to", ""),
    "method": ("method", ""),
    "updates": ("updates", ",.0f"),
    "output_tokens": ("tokens", ",.0f"),
    "target_passes": ("passes", ",.0f"),
    "draft_passes": ("small model's passes", ",.0f"),
    "draft_acceptance": ("A/D", ".1%"),
    "output_acceptance": ("A/O", ".1%"),
    "ne_output": ("NE", ".2f"),
    "ne_display": ("NE shown", ".2f"),
    "tokens_per_second": ("tokens/s", ",.0f"),
    "speedup": ("speed-up", ".2f"),
}
#: Minimum width where there is no terminal, and width of a line in a heading, in characters.
LEAST_WIDTH, HEADING_WIDTH = 160, 9


def rows(players: Sequence[Player]) -> list[dict[str, Any]]:
    """Return the figures of each player; speed-ups are relative to ``ar`` into the same language."""
    baselines = {each.contender.language: each for each in players if each.contender.method == "ar"}
    return [_row(player, baselines.get(player.contender.language)) for player in players]


def _row(player: Player, baseline: Player | None) -> dict[str, Any]:
    found, drafts = player.total, player.total.drafted > 0
    row = {
        "method": player.contender.method,
        "options": player.contender.settings,
        "target_language": player.contender.language,
        "segments": len(player.finished),
        "updates": found.updates,
        "output_tokens": found.tokens,
        "target_passes": found.passes,
        "draft_passes": found.draft_passes or None,
        "draft_acceptance": _ratio(found.accepted, found.drafted),
        "output_acceptance": _ratio(found.accepted, found.tokens) if drafts else None,
        "ne_output": _ratio(found.erased, found.length),
        "ne_display": _ratio(found.erased_shown, found.length_shown),
        "tokens_per_second": _ratio(found.tokens, found.seconds, 1),
        "speedup": None,
    }
    if baseline is not None:
        theirs = baseline.total
        row["speedup"] = _ratio(found.tokens * theirs.seconds, theirs.tokens * found.seconds, 3)
        pairs = zip(player.finished, baseline.finished, strict=True)
        row["same_as_ar"] = sum(mine.text == other.text for mine, other in pairs)
    return row


def _ratio(above: float, below: float, digits: int = 4) -> float | None:
    return round(above / below, digits) if below else None


def print_table(rows: Sequence[dict[str, Any]], signature: str, console: Console) -> None:
    """Print a table, without the columns that are empty, and the signature below it."""
    names = [name for name in COLUMNS if any(row[name] is not None for row in rows)]
    if len({row["target_language"] for row in rows}) == 1:
        names.remove("target_language")
    table = Table(header_style="bold", pad_edge=False, box=None, padding=(0, 1, 0, 0))
    for name in names:
        heading, form = COLUMNS[name]
        lines = textwrap.wrap(heading, HEADING_WIDTH, break_long_words=False)
        table.add_column("\n".join(lines), justify="right" if form else "left", no_wrap=True)
    last = None
    for row in rows:
        if last is not None and row["target_language"] != last:
            table.add_row()
        last = row["target_language"]
        table.add_row(*(_cell(row, name) for name in names))
    if not console.is_terminal:  # only a terminal has a width that lines must not exceed
        console.width = max(console.width, LEAST_WIDTH)
    console.print(table)
    console.print(Text(signature, style="dim"), soft_wrap=True)


def _cell(row: dict[str, Any], name: str) -> str:
    if name == "method":
        return f"{row['method']} {row['options']}".strip()
    value = row[name]
    return "–" if value is None else format(value, COLUMNS[name][1])


def same_finals(rows: Sequence[dict[str, Any]]) -> str:
    """Return how many final captions of each other method are those of re-translation; empty without that."""
    found = [
        f"{row['method']} {row['target_language']} {row['same_as_ar']} of {row['segments']}"
        for row in rows
        if row["method"] != "ar" and "same_as_ar" in row
    ]
    return f"final captions as with ar: {', '.join(found)}; the others may be better or worse." if found else ""
