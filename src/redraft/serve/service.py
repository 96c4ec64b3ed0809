"""The models and the limits that the operator sets; makes the lanes of sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from redraft.backends.costs import known_curve
from redraft.backends.pair import check_same_vocabulary
from redraft.captions.languages import parse_language
from redraft.captions.own_prompt import prompt_file
from redraft.captions.prompt import SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY
from redraft.captions.session import Translation
from redraft.captions.settings import Settings
from redraft.captions.source import check_policy
from redraft.captions.style import Style
from redraft.decoding.backend import Backend
from redraft.decoding.cost import CostCurve
from redraft.decoding.methods import get_method
from redraft.decoding.types import DRAFT_MODEL, TARGET
from redraft.errors import CapabilityError, OptionError
from redraft.serve.lanes import Answer, Lane
from redraft.serve.protocol import Wanted
from redraft.serve.settings import ServeSettings
from redraft.translator import prompt_encoder, vocabulary_of


class Service:
    """The models and what clients may ask of them.

    Args:
        backends: the target model and, if a method needs it, the draft model.
        settings: the operator's settings: methods, the default first, and limits.
        curve: cost of a pass of the target; None measures it if it is not known yet.

    Raises:
        CapabilityError: a model lacks something that a method needs.
        OptionError: a method is unknown, or the prompt file cannot be read.
    """

    def __init__(
        self, backends: Mapping[str, Backend], settings: ServeSettings, curve: CostCurve | None = None
    ) -> None:
        self.backends, self.settings = backends, settings
        #: The methods that clients may choose, by name; the first is the default.
        self.methods = {name: get_method(name) for name in settings.methods}
        for method in self.methods.values():
            method.require(backends[TARGET].capabilities)
            if method.draft_model == "layers":
                raise CapabilityError(
                    f"method {method.name!r} needs a model of its own for every stream and cannot be served"
                )
            if method.draft_model and DRAFT_MODEL not in backends:
                raise CapabilityError(f"method {method.name!r} needs a small model; name it with --draft-model")
        if DRAFT_MODEL in backends:
            check_same_vocabulary(backends[TARGET], backends[DRAFT_MODEL])
        self.curve = curve or known_curve(backends[TARGET])
        self._vocabulary = vocabulary_of(backends)
        self._prompt = None if settings.prompt_file is None else prompt_file(settings.prompt_file)

    @property
    def languages(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Source and target languages that the model declares it was trained on; empty if it declares none."""
        metadata = self.backends[TARGET].metadata
        sources, targets = (metadata.get(key, "") for key in (SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY))
        return _tags(sources), _tags(targets)

    def as_sentence(self, text: str) -> str:
        """Return a complete text as the models should see it (`redraft.captions.sentence`)."""
        return self._vocabulary.as_sentence(text)

    def lanes(self, wanted: Wanted, tell: Callable[[Lane, Answer], None]) -> list[Lane]:
        """Make a lane for each target language.

        Args:
            wanted: the client's request.
            tell: called with the lane and the answer to each update.

        Raises:
            OptionError: a value is unknown, out of range or beyond the operator's limits.
            ModelError: the model's prompt format does not support the request.
        """
        self._check(wanted)
        style = Style(wanted.source, self.settings.template, self._prompt, wanted.glossary, wanted.context)
        languages = [parse_language(tag, "target") for tag in wanted.targets]
        encoders = {each.tag: prompt_encoder(self.backends[TARGET], style, each) for each in languages}
        if len({each.canonical for each in languages}) < len(languages):
            raise OptionError("targets must be different languages")
        method = self.methods[wanted.method or self.settings.methods[0]]
        most = self.settings.max_tokens if wanted.max_tokens is None else wanted.max_tokens
        options = method.check(wanted.options)
        source = wanted.source_policy
        source = self.settings.source if source is None else check_policy(source, "source_policy")
        settings = Settings(method, options, wanted.mask, wanted.context, most, self.curve, source)
        return [
            Lane(Translation(language, encode, self._vocabulary, settings), tell)
            for language, encode in encoders.items()
        ]

    def _check(self, wanted: Wanted) -> None:
        """Check a request against the operator's limits."""
        if wanted.method is not None and wanted.method not in self.methods:
            raise OptionError(f"method must be one of {', '.join(self.methods)}, not {wanted.method!r}")
        asked = (
            ("max_tokens", "be", wanted.max_tokens or 0, ""),
            ("context", "be", wanted.context, ""),
            ("targets", "have", len(wanted.targets), " languages"),
            ("glossary", "have", len(wanted.glossary), " entries"),
        )
        for name, verb, number, unit in asked:
            most = getattr(self.settings, name)
            if number > most:
                raise OptionError(f"{name} must {verb} at most {most}{unit}, not {number}")


def _tags(text: str) -> tuple[str, ...]:
    return tuple(tag.strip() for tag in text.split(",") if tag.strip())
