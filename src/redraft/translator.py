"""The library's front door: a model, a stream, captions.

>>> from redraft import Translator, Update
>>> with Translator.open("demo", to=["de"]) as translator:
...     events = translator.translate(Update("1", 0, "I have a dog.", final=True))
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import open_model
from redraft.drive import Lane, run_together
from redraft.errors import ContextOverflow, ModelError
from redraft.events import Event, Failure, Update
from redraft.languages import Language, parse_language
from redraft.methods import get_method
from redraft.prompt import Prompter, Request
from redraft.session import Encode, Session, Settings, Vocabulary
from redraft.stabilise import Mask
from redraft.types import TARGET, Tally


@dataclass(frozen=True, slots=True)
class Style:
    """How prompts are made.

    Attributes:
        source: BCP 47 tag of the language spoken.
        template: name of a prompt template; None chooses by the model's metadata.
        glossary: (source term, translation) pairs for the instruction.
        context: how many earlier sentences a prompt carries.
    """

    source: str = "en"
    template: str | None = None
    glossary: tuple[tuple[str, str], ...] = ()
    context: int = 0


class Translator:
    """One stream translated into one or several languages by one model.

    Several translators may share a backend; each takes a slot of its cache for every target language.

    Args:
        backend: a loaded model with enough free slots.
        to: target languages, as BCP 47 tags or English names.
        method, options: decoding method and its options, by name.
        mask: what is hidden of partial captions.
        style: how prompts are made.
        max_tokens: the most tokens of one translation.

    Raises:
        OptionError: an option is unknown or out of range.
        ModelError: the model has no usable prompt template.
        CapabilityError: too few slots, or the backend lacks what the method needs.
    """

    def __init__(
        self,
        backend: LlamaCpp,
        to: Sequence[str],
        *,
        method: str = "ssbd",
        options: Mapping[str, float] | None = None,
        mask: Mask = Mask(),
        style: Style = Style(),
        max_tokens: int = 256,
    ) -> None:
        chosen = get_method(method)
        settings = Settings(chosen, chosen.check(options or {}), mask, style.context, max_tokens)
        chosen.require(backend.capabilities)
        encoders = {tag: _encoder(backend, style, parse_language(tag)) for tag in to}
        vocabulary = Vocabulary(backend.end_tokens, backend.token_bytes, backend.context_length)
        self.backend, self.method, self.seconds = backend, chosen, 0.0
        self._session = Session(encoders, vocabulary, settings)
        self._slots = [backend.open_slot() for _ in encoders]
        self._owns_backend = False

    @classmethod
    def open(
        cls,
        model: str = "demo",
        *,
        to: Sequence[str],
        method: str = "ssbd",
        options: Mapping[str, float] | None = None,
        mask: Mask = Mask(),
        style: Style = Style(),
        max_tokens: int = 256,
        engine: LlamaOptions = LlamaOptions(),
    ) -> Translator:
        """Load a model by name or path and translate with it; `close` frees it.  Arguments as of the class."""
        wanted = max(engine.slots, len(to))
        backend = open_model(model, replace(engine, slots=wanted))
        try:
            made = cls(backend, to, method=method, options=options, mask=mask, style=style, max_tokens=max_tokens)
        except BaseException:
            backend.close()
            raise
        made._owns_backend = True
        return made

    def translate(self, update: Update) -> list[Event]:
        """Translate one update into every language; what cannot be done comes back as a `Failure`, never raised."""
        askings = self._session.translate(update)
        lanes = [Lane(asking, {TARGET: slot}) for asking, slot in zip(askings, self._slots, strict=True)]
        started = time.perf_counter()
        try:
            answers = run_together(lanes, {TARGET: self.backend})
        except (ContextOverflow, ModelError) as error:
            return [Failure(str(error), None, update.utterance, update.seq)]
        finally:
            self.seconds += time.perf_counter() - started
        return [event for events in answers for event in events]

    @property
    def tallies(self) -> dict[str, Tally]:
        """Counts of updates, tokens, passes and acceptance by target language."""
        return {translation.language: translation.tally for translation in self._session.translations}

    def latest_ids(self, language: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ids of the latest prompt and output of a language, the end token left out."""
        return next((each.prompt, each.output) for each in self._session.translations if each.language == language)

    def close(self) -> None:
        """Give the slots back, and free the model if `open` has loaded it."""
        for slot in self._slots:
            self.backend.close_slot(slot)
        self._slots = []
        if self._owns_backend:
            self.backend.close()

    def __enter__(self) -> Translator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _encoder(backend: LlamaCpp, style: Style, target: Language) -> Encode:
    source = parse_language(style.source, "source language")
    prompter = Prompter.for_model(backend.metadata, source, target, style.template)

    def encode(text: str, earlier: Sequence[tuple[str, str]]) -> tuple[int, ...]:
        return prompter.encode(Request(text, tuple(earlier), style.glossary), backend.tokenize)

    encode("test", ())  # a glossary that the model's template cannot carry is refused now, not at the first caption
    return encode
