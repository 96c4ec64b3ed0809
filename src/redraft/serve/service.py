"""The models that are served, with what the operator allows to ask of them; makes the lanes of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from redraft.backends.costs import known_curve
from redraft.backends.pair import check_same_vocabulary
from redraft.captions.languages import parse_language
from redraft.captions.prompt import SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY
from redraft.captions.session import Session, Settings
from redraft.captions.stabilise import Mask
from redraft.decoding.cost import CostCurve
from redraft.decoding.method import Method, Value
from redraft.decoding.types import DRAFT_MODEL, TARGET, Backend
from redraft.errors import CapabilityError, OptionError
from redraft.serve.lanes import Answer, Lane
from redraft.translator import Style, prompt_encoder, vocabulary_of


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the operator allows.

    Attributes:
        methods: decoding methods; the first is the one that is used unless a client names another.
        targets: the most target languages of one session.
        max_tokens: the most tokens of one translation.
        context: the most earlier sentences in a prompt.
        glossary: the most entries of a glossary.
        template: name of the prompt template; None chooses by the model's metadata.
    """

    methods: tuple[Method, ...]
    targets: int = 8
    max_tokens: int = 256
    context: int = 4
    glossary: int = 64
    template: str | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client asks for; None leaves it to the operator."""

    targets: tuple[str, ...]
    source: str = "en"
    method: str | None = None
    options: Mapping[str, Value] = field(default_factory=dict)
    mask: Mask = Mask()
    max_tokens: int | None = None
    context: int = 0
    glossary: tuple[tuple[str, str], ...] = ()


class Service:
    """Models with what may be asked of them.

    Args:
        backends: the target and, if a method drafts with a small model, that one.
        allowed: what the operator allows.
        curve: what a pass of the target costs; None measures it where it is not known yet.

    Raises:
        CapabilityError: the models cannot do what a method needs.
    """

    def __init__(self, backends: Mapping[str, Backend], allowed: Allowed, curve: CostCurve | None = None) -> None:
        self.backends, self.allowed = backends, allowed
        for method in allowed.methods:
            method.require(backends[TARGET].capabilities)
            if method.draft_model == "layers":
                raise CapabilityError(f"method {method.name!r} makes a model for every stream and cannot be served")
            if method.draft_model and DRAFT_MODEL not in backends:
                raise CapabilityError(f"method {method.name!r} needs a small model; name it with --draft-model")
        if DRAFT_MODEL in backends:
            check_same_vocabulary(backends[TARGET], backends[DRAFT_MODEL])
        self.curve = curve or known_curve(backends[TARGET])
        self._vocabulary = vocabulary_of(backends)

    @property
    def languages(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Source and target languages that the model says it was trained on; empty where it does not say."""
        metadata = self.backends[TARGET].metadata
        sources, targets = (metadata.get(key, "") for key in (SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY))
        return _tags(sources), _tags(targets)

    def as_sentence(self, text: str) -> str:
        """A text as the models are to see it where it is finished (`redraft.captions.sentence`)."""
        return self._vocabulary.as_sentence(text)

    def lanes(self, wish: Wish, answers: Callable[[str], Callable[[Answer], None]]) -> list[Lane]:
        """One lane a target language.

        Args:
            wish: what the client asks for.
            answers: for a language, what is told of its captions.

        Raises:
            OptionError: something is unknown, out of range or more than the operator allows.
            ModelError: the model cannot be prompted like that.
        """
        settings = self._settings(wish)
        if not 1 <= len(wish.targets) <= self.allowed.targets:
            raise OptionError(f"targets must be 1 to {self.allowed.targets} languages, not {len(wish.targets)}")
        if len(wish.glossary) > self.allowed.glossary:
            raise OptionError(f"glossary must have at most {self.allowed.glossary} entries, not {len(wish.glossary)}")
        style = Style(wish.source, self.allowed.template, wish.glossary, wish.context)
        languages = [parse_language(tag, "target") for tag in wish.targets]
        encoders = {each.tag: prompt_encoder(self.backends[TARGET], style, each) for each in languages}
        if len({each.canonical for each in languages}) < len(languages):
            raise OptionError("targets must be different languages")
        session = Session(encoders, self._vocabulary, settings)
        return [Lane(translation, answers(translation.language)) for translation in session.translations]

    def _settings(self, wish: Wish) -> Settings:
        names = {method.name: method for method in self.allowed.methods}
        if wish.method is not None and wish.method not in names:
            raise OptionError(f"method must be one of {', '.join(names)}, not {wish.method!r}")
        method = names[wish.method] if wish.method is not None else self.allowed.methods[0]
        for name, value in (("max_tokens", wish.max_tokens or 0), ("context", wish.context)):
            most = getattr(self.allowed, name)
            if value > most:
                raise OptionError(f"{name} must be at most {most}, not {value}")
        max_tokens = self.allowed.max_tokens if wish.max_tokens is None else wish.max_tokens
        return Settings(method, method.check(wish.options), wish.mask, wish.context, max_tokens, self.curve)


def _tags(text: str) -> tuple[str, ...]:
    return tuple(tag.strip() for tag in text.split(",") if tag.strip())
