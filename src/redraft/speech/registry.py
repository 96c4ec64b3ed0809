"""The registry of recognisers, built-in ones and plug-ins.

An entry point in the group ``redraft.recognisers`` names a module with ``SUMMARY``, a line about the recogniser;
``MODELS``, its models by name, each with a line about it; and ``recogniser(wanted)``, which returns a
`redraft.speech.recogniser.Recogniser`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import ModuleType

from redraft.captions.languages import parse_language
from redraft.errors import OptionError
from redraft.speech.dialect import find_dialect
from redraft.speech.endpoint import PAUSE
from redraft.speech.punctuation import Punctuated, punctuator
from redraft.speech.recogniser import Recogniser
from redraft.speech.servers import ServerRecogniser

ENTRY_POINT_GROUP = "redraft.recognisers"


@dataclass(frozen=True, slots=True)
class RecogniserOptions:
    """Options for opening a recogniser.

    Attributes:
        model: name or folder of a model; empty uses the recogniser's default.
        language: code of the spoken language, such as "en".
        pause: seconds of silence that end an utterance.
    """

    model: str = ""
    language: str = "en"
    pause: float = PAUSE

    def check_language(self, owner: str, allowed: Sequence[str]) -> None:
        """Check that a recogniser supports the language.

        Args:
            owner: name of the recogniser or model, for the message.
            allowed: codes of the languages that it supports.

        Raises:
            OptionError: the language is not one of ``allowed``.
        """
        if self.language not in allowed:
            raise OptionError(f"{owner} recognises {', '.join(allowed)}, not {self.language!r}")


def all_recognisers(group: str = ENTRY_POINT_GROUP) -> dict[str, ModuleType]:
    """Return the modules registered in an entry point group by name, including plug-ins."""
    return {point.name: point.load() for point in entry_points(group=group)}


def check_recogniser(spec: str) -> str:
    """Return the name in ``NAME``, ``NAME:MODEL`` or ``NAME:ws://HOST:PORT`` without opening anything.

    Raises:
        OptionError: the name is unknown, or the address is invalid.
    """
    name = spec.partition(":")[0]
    if "://" in spec:
        find_dialect(spec)
        return name
    known = [point.name for point in entry_points(group=ENTRY_POINT_GROUP)]
    if name not in known:
        raise OptionError(f"recogniser {name!r} is not known; known recognisers: {', '.join(known)}")
    return name


def open_recogniser(
    spec: str, language: str = "en", pause: float = PAUSE, punctuation: str | None = None
) -> Recogniser:
    """Open the recogniser given as ``NAME``, ``NAME:MODEL`` or ``NAME:ws://HOST:PORT``.

    Args:
        spec: the recogniser.
        language: code of the spoken language.
        pause: seconds of silence that end an utterance.
        punctuation: folder of a punctuation model, see `redraft.speech.punctuation`.

    Raises:
        OptionError: no recogniser has this name, or it lacks the model or the language.
        MissingExtra: a dependency is not installed.
        ModelError: its model has not been downloaded, or cannot be opened.
        InputError: its server cannot be reached.
    """
    made = _open(spec, language, pause)
    return made if punctuation is None else Punctuated(made, punctuator(punctuation))


def _open(spec: str, language: str, pause: float) -> Recogniser:
    name = check_recogniser(spec)
    if "://" in spec:
        return ServerRecogniser(spec)
    known = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    options = RecogniserOptions(spec.partition(":")[2], parse_language(language, "source language").code, pause)
    made: Recogniser = known[name].load().recogniser(options)
    return made
