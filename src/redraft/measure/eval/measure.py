"""Runs methods over the same stream, side by side in time, and writes down what each made of every segment.

Wall times on a shared machine mean little alone.  So the methods take turns update by update, in an order that
reverses every time, and a speed-up is a ratio within one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from redraft.captions.events import Caption, Failure, Update
from redraft.captions.style import Style
from redraft.decoding.backend import Backend
from redraft.decoding.cost import CostCurve
from redraft.measure.eval.contender import Contender
from redraft.measure.eval.meter import Meter
from redraft.measure.eval.metrics import Erasure
from redraft.measure.eval.record import Record, Step
from redraft.translator import Translator


class System(Protocol):
    """What a run compares: something that is given updates, one after the other."""

    caption: Caption | None

    def translate(self, update: Update) -> tuple[Step, list[Failure]]:
        """What came of an update; figures of erasure are left to the run."""

    def tokenize(self, text: str) -> list[int]:
        """Ids of a text, for counting what is erased."""

    def close(self) -> None:
        """Give back what was taken."""


class MethodSystem:
    """A method of Redraft, as a system."""

    def __init__(
        self,
        backend: Backend,
        contender: Contender,
        style: Style = Style(),
        small: Backend | None = None,
        curve: CostCurve | None = None,
    ) -> None:
        self._language, self._meter = contender.language, Meter()
        self.caption: Caption | None = None
        self.translator = Translator(
            backend,
            [contender.language],
            method=contender.method,
            options=dict(contender.options),
            mask=contender.mask,
            style=style,
            max_tokens=contender.max_tokens,
            small=small,
            watch=self._meter,
            curve=curve,
        )

    def translate(self, update: Update) -> tuple[Step, list[Failure]]:
        """Translate one update."""
        state = self.translator.translation(self._language)
        seconds, drafted = self.translator.seconds, state.tally.draft_passes
        events = self.translator.translate(update)
        captions = [event for event in events if isinstance(event, Caption)]
        # An update that could not be translated leaves on the display what stood there.
        self.caption = captions[-1] if captions else self.caption
        shown = self.caption if self.caption and self.caption.utterance == update.utterance else None
        passes, model_seconds = self._meter.take(len(state.prompt), len(state.output), state.finished)
        step = Step(
            update.seq,
            update.text,
            update.final,
            update.time,
            len(state.prompt),
            state.output,
            shown.text if shown else "",
            shown.unstable if shown else "",
            state.finished,
            self.translator.seconds - seconds,
            model_seconds,
            passes,
            state.tally.draft_passes - drafted,
        )
        return step, [event for event in events if isinstance(event, Failure)]

    def remember(self, source: str, translation: str) -> None:
        """Take a sentence and its translation as the one that the next prompts carry."""
        self.translator.translation(self._language).remember(source, translation)

    def tokenize(self, text: str) -> list[int]:
        """By the model's tokenizer."""
        return self.translator.backend.tokenize(text)

    def close(self) -> None:
        """Give the slots back."""
        self.translator.close()


@dataclass(slots=True)
class Run:
    """What one contender has done so far.

    Attributes:
        records: one for every finished segment.
        output, display: what was erased so far, of the whole output and of what is shown.
    """

    contender: Contender
    system: System
    records: list[Record] = field(default_factory=list)
    output: Erasure = field(default_factory=Erasure)
    display: Erasure = field(default_factory=Erasure)
    _steps: list[Step] = field(default_factory=list)
    _failures: list[str] = field(default_factory=list)
    _texts: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    @property
    def caption(self) -> Caption | None:
        """The latest one."""
        return self.system.caption

    @property
    def passes(self) -> int:
        """Target passes so far."""
        done = (step for record in self.records for step in record.steps)
        return sum(len(step.passes) for step in (*done, *self._steps))

    def translate(self, update: Update, segment: int) -> None:
        """Translate one update and count what came of it; a final one ends the segment's record."""
        step, failures = self.system.translate(update)
        self._failures += [failure.message for failure in failures]
        texts = self.system.tokenize(step.text + step.unstable), self.system.tokenize(step.text)
        erased = self.output.step(self._texts[0], texts[0]), self.display.step(self._texts[1], texts[1])
        self._texts = texts
        self._steps.append(replace(step, erased=erased, length=(len(texts[0]), len(texts[1]))))
        if update.final:
            self.output.final += len(texts[0])
            self.display.final += len(texts[1])
            name, steps, failures_ = self.contender.name, tuple(self._steps), tuple(self._failures)
            self.records.append(Record(segment, update.utterance, name, steps, failures_))
            self._steps, self._failures, self._texts = [], [], ([], [])


def compare(
    runs: Sequence[Run],
    updates: Iterable[Update],
    show: Callable[[Update, Sequence[Run]], None] | None = None,
    *,
    segment: int = 0,
) -> None:
    """Give every update to every run.

    Args:
        show: told after every update what all of them have made of it.
        segment: number of the first segment; who comes first depends on it too.
    """
    for number, update in enumerate(updates, segment):
        for run in runs if number % 2 == 0 else reversed(runs):
            run.translate(update, segment)
        segment += update.final
        if show:
            show(update, runs)


def open_runs(
    backend: Backend, contenders: Sequence[Contender], *, style: Style = Style(), small: Backend | None = None
) -> list[Run]:
    """A run for every contender; the backends need a free slot for each."""
    return [Run(contender, MethodSystem(backend, contender, style, small)) for contender in contenders]
