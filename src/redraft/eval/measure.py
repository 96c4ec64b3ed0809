"""Runs methods over the same stream, side by side in time, and makes a row of figures of each.

Wall times on a shared machine mean little alone.  So the methods take turns update by update, in an order that
reverses every time, and a speed-up is the ratio of two rates of one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from redraft.eval.metrics import Erasure
from redraft.events import Caption, Failure, Update
from redraft.method import Value
from redraft.stabilise import Mask
from redraft.translator import Style, Translator
from redraft.types import Backend, Tally

#: A figure of a row: text, a number, or None where it was not measured.
Figure = str | int | float | None


@dataclass(frozen=True, slots=True)
class Contender:
    """One line of a table: a method with its options and mask, into one language."""

    method: str
    language: str
    options: tuple[tuple[str, Value], ...] = ()
    mask: Mask = Mask()
    max_tokens: int = 256

    @property
    def settings(self) -> str:
        """The options of the method that were set, e.g. ``beta=0.2``."""
        return " ".join(
            f"{name}={value}" if isinstance(value, str) else f"{name}={value:g}" for name, value in self.options
        )

    @property
    def masking(self) -> str:
        """What is hidden of partial captions, e.g. ``3 tokens``, ``5 words, plain``; nothing for no mask."""
        if not self.mask.k:
            return ""
        return f"{self.mask.k} {self.mask.unit}" + ("" if self.mask.display_only else ", plain")

    @property
    def title(self) -> str:
        """Method and settings in one."""
        return f"{self.method} {self.settings}".strip()


@dataclass(slots=True)
class Run:
    """What one contender has done so far.

    Attributes:
        caption: the latest one.
        finals: the final translations, in order.
        prompts, outputs: ids of prompt and output after every update.
        seconds: the time that every update took.
    """

    contender: Contender
    translator: Translator
    output: Erasure = field(default_factory=Erasure)
    display: Erasure = field(default_factory=Erasure)
    caption: Caption | None = None
    finals: list[str] = field(default_factory=list)
    prompts: list[tuple[int, ...]] = field(default_factory=list)
    outputs: list[tuple[int, ...]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    _whole: list[list[int]] = field(default_factory=list)
    _shown: list[list[int]] = field(default_factory=list)

    def translate(self, update: Update) -> None:
        """Translate one update and count what came of it."""
        before = self.translator.seconds
        events = self.translator.translate(update)
        self.seconds.append(self.translator.seconds - before)
        for event in events:
            if isinstance(event, Failure):
                self.failures.append(event)
            else:
                self._count(event)

    def _count(self, caption: Caption) -> None:
        tokenize = self.translator.backend.tokenize
        self.caption = caption
        prompt, output = self.translator.latest_ids(self.contender.language)
        self.prompts.append(prompt)
        self.outputs.append(output)
        self._shown.append(tokenize(caption.text))
        self._whole.append(tokenize(caption.text + caption.unstable))
        if caption.final:
            self.finals.append(caption.text)
            self.output.add(self._whole)
            self.display.add(self._shown)
            self._whole, self._shown = [], []

    @property
    def tally(self) -> Tally:
        """Counts so far."""
        return self.translator.tallies[self.contender.language]

    @property
    def passes(self) -> int:
        """Target forward passes so far."""
        return self.tally.passes

    @property
    def tokens_per_second(self) -> float | None:
        """Output tokens per second, to one decimal; None before any time was spent."""
        seconds = sum(self.seconds)
        return round(self.tally.tokens / seconds, 1) if seconds else None

    def row(self) -> dict[str, Figure]:
        """The figures, under the names that every bench uses; the speed-ups are filled in by `rows`."""
        tally = self.tally
        return {
            "method": self.contender.method,
            "options": self.contender.settings,
            "mask": self.contender.masking,
            "target_language": self.contender.language,
            "updates": tally.updates,
            "output_tokens": tally.tokens,
            "target_passes": tally.passes,
            "draft_passes": tally.draft_passes or None,
            "mean_acceptance_length": round(tokens_per_pass(self), 3),
            "draft_acceptance": round(tally.draft_acceptance, 4) if tally.drafted else None,
            "output_acceptance": round(tally.output_acceptance, 4) if tally.drafted else None,
            "ne_output": round(self.output.value, 4),
            "ne_display": round(self.display.value, 4),
            "tokens_per_second": self.tokens_per_second,
            "speedup": None,
            "pass_speedup": None,
            "bleu": None,
            "chrf": None,
        }


def compare(
    backend: Backend,
    contenders: Sequence[Contender],
    updates: Iterable[Update],
    *,
    small: Backend | None = None,
    style: Style = Style(),
    show: Callable[[Update, Sequence[Run]], None] | None = None,
) -> list[Run]:
    """Run every contender over every update; the backend needs a free slot for each contender.

    Args:
        small: the small model of methods that draft with one; it needs a free slot for each of them.
        show: told after every update what all of them have made of it.
    """
    runs = [Run(contender, _translator(backend, contender, style, small)) for contender in contenders]
    for number, update in enumerate(updates):
        for run in runs if number % 2 == 0 else reversed(runs):
            run.translate(update)
        if show:
            show(update, runs)
    for run in runs:
        run.translator.close()
    return runs


def _translator(backend: Backend, contender: Contender, style: Style, small: Backend | None) -> Translator:
    return Translator(
        backend,
        [contender.language],
        method=contender.method,
        options=dict(contender.options),
        mask=contender.mask,
        style=style,
        max_tokens=contender.max_tokens,
        small=small,
    )


def speedup(run: Run, baseline: Run) -> float | None:
    """Output tokens per second over the baseline's, as in SSBD v2 (Tables 2 and 3)."""
    mine, theirs = run.tokens_per_second, baseline.tokens_per_second
    return mine / theirs if mine is not None and theirs else None


def tokens_per_pass(run: Run) -> float:
    """Mean acceptance length: output tokens for each target pass, end tokens included, so that `ar` has 1."""
    tally = run.tally
    return (tally.tokens + tally.finished) / tally.passes if tally.passes else 1.0


def rows(runs: Sequence[Run]) -> list[dict[str, Figure]]:
    """A row for each run, with its speed-ups over the ``ar`` run of the same language where there is one."""
    baselines = {run.contender.language: run for run in runs if run.contender.method == "ar"}
    found = []
    for run in runs:
        row = run.row()
        baseline = baselines.get(run.contender.language)
        if baseline is not None:
            ratio = speedup(run, baseline)
            row["speedup"] = None if ratio is None else round(ratio, 3)
            row["pass_speedup"] = round(tokens_per_pass(run) / tokens_per_pass(baseline), 3)
        found.append(row)
    return found
