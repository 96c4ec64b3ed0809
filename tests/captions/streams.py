"""Streams of updates through translations, and models for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from redraft.captions.events import Caption, Event, Update
from redraft.captions.state import PLAIN, Settings, State, Vocabulary, Writing
from redraft.captions.translation import Answered, Encode, Translation
from redraft.decoding.drive import run_together
from redraft.decoding.ends import NO_BREAKS, LineBreaks
from redraft.decoding.method import Value
from redraft.decoding.methods import get_method
from redraft.decoding.types import TARGET, Asking, Prompt, Score
from tests.fakes import END, RandomModel, greedy

Pairs = list[tuple[str, str]]


def showing(agree: int = 1, first_sight: float = 1.0, mask_k: int = 0, plain: int = 0) -> dict[str, Value]:
    """Options that say what is shown: by default everything."""
    return {"agree": agree, "first_sight": first_sight, "mask_k": mask_k, "plain": plain}


#: Of the method `redraft`.
BY_DEFAULT = showing(2, 0.4)


class Stream:
    """Translations of a stream with their driver, and what their encoders were given."""

    def __init__(
        self,
        model: RandomModel,
        languages: Sequence[str] = ("de",),
        *,
        method: str = "ssbd",
        options: Mapping[str, Value] | None = None,
        room: int = 200,
        final_mark: str = "",
        writing: Writing = PLAIN,
        breaks: LineBreaks = NO_BREAKS,
        hypotheses: int = 0,
        display: Mapping[str, Value] = MappingProxyType(showing()),
        **common: Value,
    ) -> None:
        chosen = get_method(method)
        self.model = model
        self.asked: list[Score] = []
        self.encoded: list[tuple[str, str, Pairs]] = []
        vocabulary = Vocabulary(
            model.end_tokens,
            model.token_bytes,
            model.tokenize,
            room,
            final_mark=final_mark,
            breaks=breaks,
            hypotheses=hypotheses,
        )
        own = {"beta": 0.0} if method == "ssbd" and options is None else options or {}
        shared = vocabulary, Settings(chosen, {**own, **display, **common})
        self.translations = [Translation(language, self._encoder(language), *shared, writing) for language in languages]
        self.states = [State()] * len(languages)
        self.seq = 0

    def _encoder(self, language: str) -> Encode:
        def encode(source: str, context: Sequence[tuple[str, str]], spoken: str | None) -> Prompt:
            self.encoded.append((language, source, list(context)))
            earlier = "".join(f"{theirs}={ours};" for theirs, ours in context)
            return Prompt(tuple(self.model.tokenize(f"{earlier}{source}>{language}")))

        return encode

    def prompt(self, source: str, language: str = "de") -> tuple[int, ...]:
        return tuple(self.model.tokenize(f"{source}>{language}"))

    def send(
        self,
        text: str,
        utterance: str = "u",
        *,
        final: bool = False,
        time: float | None = None,
        committed: int | None = None,
        goes_on: bool = False,
    ) -> list[Event]:
        """The events of all languages; ``asked`` gets the requests of this update only."""
        before, self.seq = len(self.model.requests), self.seq + 1
        update = Update(utterance, self.seq, text, final, time, committed=committed, goes_on=goes_on)
        rest = self.rest() if any(state.left_by(update) for state in self.states) else []
        asking = [each.translate(state, update) for each, state in zip(self.translations, self.states, strict=True)]
        events = [*rest, *self._run(asking)]
        self.asked = self.model.requests[before:]
        return events

    def rest(self) -> list[Event]:
        """The events of what was not shown."""
        return self._run([each.rest(state) for each, state in zip(self.translations, self.states, strict=True)])

    def _run(self, asking: Sequence[Asking[Answered]]) -> list[Event]:
        found = run_together([(one, {TARGET: n}) for n, one in enumerate(asking)], {TARGET: self.model})
        self.states = [state for _, state in found]
        return [event for events, _ in found for event in events]

    def caption(self, text: str, utterance: str = "u", *, final: bool = False, time: float | None = None) -> Caption:
        """The only event, which must be a caption."""
        (event,) = self.send(text, utterance, final=final, time=time)
        assert isinstance(event, Caption)
        return event

    def output(self, number: int = 0) -> list[int]:
        return list(self.states[number].output)


class Speaker(RandomModel):
    """Ends its output where prompt and output together reach a multiple of ``period`` ids; 0 never ends it."""

    def __init__(self, period: int = 11, shift: float = 0.5) -> None:
        super().__init__(3, shift=shift)
        self.period = period

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row = super().logits(ids)
        row[END] = 100.0 if self.period and len(ids) % self.period == 0 else -100.0
        return row


def shown(model: RandomModel, ids: Sequence[int]) -> str:
    return b"".join(map(model.token_bytes, ids)).decode().strip()


def not_at_once(model: RandomModel, prompt: Sequence[int], limit: int) -> list[int]:
    """Greedy decoding that does not end at once."""
    row = model.logits(prompt)
    row[END] = -np.inf
    first = int(row.argmax())
    return [first, *greedy(model, [*prompt, first], limit - 1)]
