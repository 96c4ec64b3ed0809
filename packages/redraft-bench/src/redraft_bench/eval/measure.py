"""Run methods side by side on the same stream, and record what each does with every segment.

Wall times on a shared machine are not comparable between runs.  So methods take turns update by update, in an order
that is reversed each time, and speed-ups are ratios within one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeAlias

from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.formats.rows import Reading
from redraft.captions.languages import parse_language
from redraft.captions.style import Style
from redraft.decoding.backend import Backend
from redraft.decoding.drive import run_together
from redraft.decoding.method import Method
from redraft.decoding.methods import get_method
from redraft.decoding.types import common_prefix
from redraft.translator import Translator
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.meter import Meter
from redraft_bench.eval.record import Record, Step

#: Returns the updates that are translated at the same time as one, as many as the batch has further lanes.
Beside: TypeAlias = Callable[[Update], Sequence[Update]]


class System(Protocol):
    """A system under test: it is given updates one after the other."""

    def translate(self, update: Update) -> tuple[Step, list[Failure]]:
        """Translate an update; the run computes the erasure."""

    def tokenize(self, text: str) -> list[int]:
        """Return the ids of a text, to count erased tokens."""

    def close(self) -> None:
        """Release resources."""


class MethodSystem:
    """A method of Redraft as a system.

    Args:
        beside: for a batch, returns the updates that are translated at the same time as one.
    """

    def __init__(
        self,
        backend: Backend,
        contender: Contender,
        style: Style = Style(),
        small: Backend | None = None,
        beside: Beside = lambda _update: (),
    ) -> None:
        self._language, self._meter, self._beside = contender.language, Meter(), beside
        self._caption: Caption | None = None
        self._lines = None if contender.lines is None else _Lines(contender)
        method = get_method(contender.method)

        def open_(watched: Method) -> Translator:
            return Translator(
                backend,
                [contender.language],
                method=watched,
                options=dict(contender.options),
                style=style,
                small=small,
                watch=self._meter,
            )

        self.translator = open_(self._meter.watched(method))
        self._others = [open_(method) for _ in range(contender.batch - 1)]

    def translate(self, update: Update) -> tuple[Step, list[Failure]]:
        """Translate one update."""
        drafted = self.translator.state(self._language).tally.draft_passes
        cpu, started = time.process_time(), self.translator.seconds
        events = self._batch(update) if self._others else self.translator.translate(update)
        cpu, seconds = time.process_time() - cpu, self.translator.seconds - started
        state = self.translator.state(self._language)
        captions = [event for event in events if isinstance(event, Caption)]
        # If an update could not be translated, the display stays as it was.
        if captions:
            self._caption = self._lines.of(captions[-1], update) if self._lines else captions[-1]
        shown = self._caption if self._caption and self._caption.utterance == update.utterance else None
        taken = self._meter.take(len(state.prompt), state.output, state.decoded.output.finished)
        lanes = 1 + len(self._others)
        step = Step(
            update.seq,
            update.text,
            update.final,
            update.time,
            len(state.prompt),
            state.output,
            shown.text if shown else "",
            shown.unstable if shown else "",
            state.decoded.output.finished,
            seconds / lanes,
            taken.seconds / lanes,
            taken.passes,
            state.tally.draft_passes - drafted,
            cpu_seconds=cpu / lanes,
            second=taken.second,
            settled=taken.settled,
            end_drafted=taken.end_drafted,
            first_seconds=taken.first / lanes,
        )
        return step, [event for event in events if isinstance(event, Failure)]

    def _batch(self, update: Update) -> list[Event]:
        """Translate an update together with others; its passes are theirs, and its time is a share of theirs."""
        translators, updates = [self.translator, *self._others], [update, *self._beside(update)]
        language = self._language
        for each, other in zip(translators, updates, strict=False):
            if each.state(language).left_by(other):
                each.rest()
        lanes = [
            (each.translations[language].translate(each.state(language), other), each.slots[0])
            for each, other in zip(translators, updates, strict=False)
        ]
        started = time.perf_counter()
        found = run_together(lanes, self.translator.backends, self._meter)
        self.translator.seconds += time.perf_counter() - started
        for each, (_, state) in zip(translators, found, strict=False):
            each.states = {language: state}
        return found[0][0]

    def tokenize(self, text: str) -> list[int]:
        """Tokenize with the model's tokenizer."""
        return self.translator.backend.tokenize(text)

    def close(self) -> None:
        """Release the slots."""
        for each in (self.translator, *self._others):
            each.close()


class _Lines:
    """The lines of one utterance after the other in reading mode."""

    def __init__(self, contender: Contender) -> None:
        longest = contender.lines or 0.0
        self._new = partial(Reading, patience=min(1.0, longest), longest=longest)
        self._reading = self._new()
        self._between = " " if parse_language(contender.language).spaced else ""
        self._utterance, self._shown = "", list[str]()

    def of(self, caption: Caption, update: Update) -> Caption:
        """Return a caption of the lines that are complete; an update without a time comes every second."""
        if caption.utterance != self._utterance:
            self._utterance, self._reading, self._shown = caption.utterance, self._new(), []
        self._shown += self._reading.read(caption, float(update.seq) if update.time is None else update.time)
        return replace(caption, text=self._between.join(self._shown), unstable="")


@dataclass(slots=True)
class Erasure:
    """Normalized erasure, pooled over a set (Arivazhagan et al. 2020; SSBD v1, equations 3 and 4).

    For one utterance with outputs o_1 .. o_n:  NE = sum_i (|o_{i-1}| - |LCP(o_{i-1}, o_i)|) / |o_n|, with lengths in
    tokens of the texts, tokenized again: the ids that were decoded may be others for the same text.  Pooled means that
    erased tokens and final lengths are summed over utterances before dividing, so longer ones have more weight.
    """

    erased: int = 0
    final: int = 0

    def step(self, before: Sequence[int], after: Sequence[int]) -> int:
        """Count one change of an output; return the number of erased tokens."""
        erased = len(before) - common_prefix(before, after)
        self.erased += erased
        return erased

    @property
    def value(self) -> float:
        """NE; 0 when nothing was shown."""
        return self.erased / self.final if self.final else 0.0


@dataclass(slots=True)
class Run:
    """The progress of one contender.

    Attributes:
        records: one for each finished segment.
        output: erasure of the whole output so far.
        display: erasure of the shown text so far.
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
    def passes(self) -> int:
        """Target passes so far."""
        done = (step for record in self.records for step in record.steps)
        return sum(len(step.passes) for step in (*done, *self._steps))

    @property
    def latest(self) -> Step:
        """The latest step."""
        return (self._steps or self.records[-1].steps)[-1]

    def record(self, update: Update, segment: int) -> None:
        """Translate an update and record the result; a final update completes the segment's record."""
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
    """Give each update to every run.

    Args:
        show: called after each update with the update and the runs.
        segment: number of the first segment; the order of turns depends on it.
    """
    for number, update in enumerate(updates, segment):
        for run in runs if number % 2 == 0 else reversed(runs):
            run.record(update, segment)
        segment += update.final
        if show:
            show(update, runs)


def open_runs(
    backend: Backend, contenders: Sequence[Contender], *, style: Style = Style(), small: Backend | None = None
) -> list[Run]:
    """Open a run for each contender; the backends need a free slot for each."""
    return [Run(contender, MethodSystem(backend, contender, style, small)) for contender in contenders]
