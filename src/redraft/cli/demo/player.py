"""A translator of the demo with counters: what its captions cost, and the table of that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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
        erased: tokens of outputs that were removed again; tokens are those of the captions' texts, tokenized again.
        erased_shown: the same for what captions show, without the part that is hidden.
        length: tokens of the final outputs.
        length_shown: tokens of the final captions.
        updates: updates translated, whether they were decoded once or again.
    """

    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0
    erased: int = 0
    erased_shown: int = 0
    length: int = 0
    length_shown: int = 0
    updates: int = 0


@dataclass(frozen=True, slots=True)
class Sentence:
    """A finished sentence: its utterance, its final caption, and the totals at its end.

    Attributes:
        likelihood: log-probability of the caption per token, in nats; None if it is unknown.
    """

    utterance: str
    text: str
    counts: Counts
    likelihood: float | None = None


class Player:
    """Translates a talk with one method into one language.

    Attributes:
        text: the latest caption of the current sentence.
        unstable: its end, which captions hide because it may still change.
        finished: the sentences so far.
        counts: totals so far.
    """

    def __init__(self, backend: Backend, method: Method, language: str, small: Backend | None = None) -> None:
        self.method, self.language = method, language
        self.translator = Translator(backend, [language], method=method, small=small)
        self.text = self.unstable = ""
        self.finished: list[Sentence] = []
        self.counts = Counts()
        self._caption: Caption | None = None
        self._ids: tuple[list[int], list[int]] = ([], [])

    def take(self, update: Update) -> None:
        """Translate an update and count."""
        captions = [event for event in self.translator.translate(update) if isinstance(event, Caption)]
        self._caption = captions[-1] if captions else self._caption  # after a failure the display stays as it was
        here = self._caption if self._caption and self._caption.utterance == update.utterance else None
        self.text, self.unstable = (here.text, here.unstable) if here else ("", "")
        tokenize, now = self.translator.backend.tokenize, self.counts
        now.updates += 1
        ids = tokenize(self.text + self.unstable), tokenize(self.text)
        now.tally, now.seconds = self.translator.state(self.language).tally, self.translator.seconds
        now.erased += len(self._ids[0]) - common_prefix(self._ids[0], ids[0])
        now.erased_shown += len(self._ids[1]) - common_prefix(self._ids[1], ids[1])
        self._ids = ids
        if update.final:
            now.length += len(ids[0])
            now.length_shown += len(ids[1])
            likelihood = self.translator.state(self.language).decoded.output.likelihood
            mean = likelihood.mean if likelihood else None
            self.finished.append(Sentence(update.utterance, self.text, replace(now), mean))
            self._ids = [], []


def play(
    players: Sequence[Player], updates: Iterable[Update], show: Callable[[Update], None] | None = None
) -> KeyboardInterrupt | RedraftError | None:
    """Translate until the end, Ctrl-C or an error, which is returned.  All players then have the same sentences.

    The order of the players is reversed with each update, so that none is always first.
    """
    try:
        for number, update in enumerate(updates):
            for player in players if number % 2 == 0 else reversed(players):
                player.take(update)
            if show:
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
    return [_row(player, baselines.get(player.language)) for player in players]


def _row(player: Player, baseline: Player | None) -> dict[str, Any]:
    counts = player.finished[-1].counts
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
        "output_acceptance": round(tally.output_acceptance, 4) if tally.drafted else None,
        "ne_output": _ratio(counts.erased, counts.length),
        "ne_display": _ratio(counts.erased_shown, counts.length_shown),
        "seconds": round(counts.seconds, 3),
        "tokens_per_second": _ratio(tally.tokens, counts.seconds, 1),
        "speedup": None,
    }
    if baseline is not None:
        theirs = baseline.finished[-1].counts
        row["speedup"] = _ratio(theirs.seconds, counts.seconds, 3)
        if player is not baseline:
            row |= _unlike(player, baseline)
    return row


def _unlike(player: Player, baseline: Player) -> dict[str, int]:
    """Return how many final captions are others than those of re-translation, and which the model prefers."""
    pairs = zip(player.finished, baseline.finished, strict=True)
    others = [(mine.likelihood, theirs.likelihood) for mine, theirs in pairs if mine.text != theirs.text]
    known = [(mine, theirs) for mine, theirs in others if mine is not None and theirs is not None]
    return {"other_than_ar": len(others), "more_probable": sum(mine > theirs for mine, theirs in known)}


def _ratio(above: float, below: float, digits: int = 4) -> float | None:
    return round(above / below, digits) if below else None


def print_table(rows: Sequence[dict[str, Any]], console: Console) -> None:
    """Print a row per player and a column per figure, without empty columns."""
    if not console.is_terminal:  # only a terminal has a width that lines must not exceed
        console.width = max(console.width, LEAST_WIDTH)
    names = [name for name in FIGURES if any(_cell(row, name) != NONE for row in rows)]
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
