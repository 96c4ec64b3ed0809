"""A translator of the demo with counters: what its captions cost, and the table of that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from redraft.captions.events import Caption, Update
from redraft.decoding.backend import Backend
from redraft.decoding.method import Method
from redraft.decoding.types import Tally, common_prefix
from redraft.errors import RedraftError
from redraft.translator import Translator


@dataclass(slots=True)
class Counts:
    """Totals since the start of the talk.

    Attributes:
        tally: totals over outputs.
        seconds: time of the passes.
        erased: tokens of captions that were removed again; tokens are those of the texts, tokenized again.
        length: tokens of the final captions.
        updates: updates translated, whether they were decoded once or again.
    """

    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0
    erased: int = 0
    length: int = 0
    updates: int = 0


class Sentence(NamedTuple):
    """A finished sentence: its utterance, its final caption, and the totals at its end.

    Attributes:
        likelihood: log-probability of the caption per token, in nats; NaN if it is unknown.
    """

    utterance: str
    text: str
    counts: Counts
    likelihood: float = math.nan


class Player:
    """Translates a talk with one method into one language.

    Attributes:
        text: the latest caption of the current sentence, without the end that is hidden because it may still change.
        finished: the sentences so far.
        counts: totals so far.
    """

    def __init__(self, backend: Backend, method: Method, language: str, small: Backend | None = None) -> None:
        self.method, self.language = method, language
        self.translator = Translator(backend, [language], method=method, small=small)
        self.text = self._utterance = ""
        self.finished: list[Sentence] = []
        self.counts = Counts()
        self._ids: list[int] = []

    def take(self, update: Update) -> None:
        """Translate an update and count; after a failure, the text stays as it was."""
        if update.utterance != self._utterance:
            self._utterance, self.text, self._ids = update.utterance, "", []
        for event in self.translator.translate(update):
            if isinstance(event, Caption) and event.utterance == update.utterance:
                self.text = event.text
        state, now = self.translator.state(self.language), self.counts
        before, self._ids = self._ids, self.translator.backend.tokenize(self.text)
        now.tally, now.seconds = state.tally, self.translator.seconds
        now.erased += len(before) - common_prefix(before, self._ids)
        now.updates += 1
        if update.final:
            now.length += len(self._ids)
            likelihood = state.decoded.output.likelihood
            mean = likelihood.mean if likelihood else math.nan
            self.finished.append(Sentence(update.utterance, self.text, replace(now), mean))


def play(
    players: Sequence[Player], updates: Iterable[Update], show: Callable[[Update], object]
) -> KeyboardInterrupt | RedraftError | None:
    """Translate until the end, Ctrl-C or an error, which is returned.  All players then have the same sentences.

    The order of the players is reversed with each update, so that none is always first.
    """
    try:
        for number, update in enumerate(updates):
            for player in players if number % 2 == 0 else reversed(players):
                player.take(update)
            show(update)
    except (KeyboardInterrupt, RedraftError) as error:
        finished = min(len(player.finished) for player in players)
        for player in players:
            del player.finished[finished:]
        return error
    return None


#: Field -> name and number format; `rows` has more.
FIGURES = {
    "updates": ("updates", ",.0f"),
    "target_passes": ("passes of the model", ",.0f"),
    "draft_passes": ("passes of the small model", ",.0f"),
    "ne_display": ("erased tokens, per shown one", ".2f"),
    "seconds": ("seconds for all updates", ",.2f"),
    "speedup": ("speed-up over ar", ".2f"),
    "other_than_ar": ("finals unlike ar's, likelier", ".0f"),
}
#: What stands for a figure that a method does not have.
NONE = "–"
#: Minimum width where there is no terminal, in characters.
LEAST_WIDTH = 160


def rows(players: Sequence[Player]) -> list[dict[str, Any]]:
    """Return the figures of each player over its finished sentences; speed-ups are those of time over ``ar``."""
    baselines = {each.language: each for each in players if each.method.name == "ar"}
    found: list[dict[str, Any]] = []
    for player in players:
        counts, baseline = player.finished[-1].counts, baselines.get(player.language)
        tally = counts.tally
        row = {
            "method": player.method.name,
            "target_language": player.language,
            "segments": len(player.finished),
            "updates": counts.updates,
            "output_tokens": tally.tokens,
            "target_passes": tally.passes,
            "draft_passes": tally.draft_passes or None,
            "draft_acceptance": _ratio(tally.accepted, tally.drafted),
            "ne_display": _ratio(counts.erased, counts.length),
            "seconds": round(counts.seconds, 3),
            "speedup": baseline and _ratio(baseline.finished[-1].counts.seconds, counts.seconds),
        }
        if baseline not in (None, player):
            pairs = zip(player.finished, baseline.finished, strict=True)
            others = [(mine, theirs) for mine, theirs in pairs if mine.text != theirs.text]
            row["other_than_ar"] = len(others)
            row["more_probable"] = sum(mine.likelihood > theirs.likelihood for mine, theirs in others)
        found.append(row)
    return found


def _ratio(above: float, below: float) -> float | None:
    return round(above / below, 4) if below else None


def print_table(rows: Sequence[dict[str, Any]], console: Console) -> None:
    """Print a row per player and a column per figure, without empty columns."""
    if not console.is_terminal:  # only a terminal has a width that lines must not exceed
        console.width = max(console.width, LEAST_WIDTH)
    names = [name for name in FIGURES if any(row.get(name) is not None for row in rows)]
    table = Table("", header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(FIGURES[name][0], justify="right")
    for row in rows:
        table.add_row(f"{row['target_language']} {row['method']}", *(_cell(row, name) for name in names))
    console.print(table)


def _cell(row: dict[str, Any], name: str) -> str:
    if row.get(name) is None:
        return NONE
    more = f", {row['more_probable']}" if name == "other_than_ar" else ""
    return format(row[name], FIGURES[name][1]) + more
