"""The registry of recognisers, built-in ones and plug-ins, and punctuation for those that write none.

An entry point in the group ``redraft.recognisers`` names a module with

- ``SUMMARY``, a line about the recogniser;
- ``MODELS``, its models by name, each with a line about it;
- ``recogniser(wanted)``, which returns a `redraft.speech.recogniser.Recogniser` for `RecogniserOptions`;
- optionally ``default_model(language)``, which returns the model that is used if none is named;
- optionally ``place(language)``, a number: ``auto`` tries recognisers for a language in ascending order of
  it. Moonshine has 10 for English and 40 for others, sherpa 20, and Whisper 30.  Without it, ``auto`` never
  chooses the recogniser;
- optionally ``PACKAGE``, the package that it cannot work without, as it is imported: ``auto`` prefers recognisers whose
  package is installed.

A model for punctuation is a folder with ``model.int8.onnx`` or ``model.onnx`` and ``bpe.vocab`` (punctuation and
capitals), or without that file (only punctuation, for Chinese and English).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from redraft.captions.ending import lowered
from redraft.captions.languages import parse_language
from redraft.errors import ModelError, OptionError, RedraftError, first_sentence
from redraft.speech.audio import Samples, library
from redraft.speech.dialect import find_dialect
from redraft.speech.endpoint import PAUSE
from redraft.speech.recogniser import Hypothesis, Recognised, Recogniser

ENTRY_POINT_GROUP = "redraft.recognisers"
#: The recogniser that is chosen by language, among the installed ones.
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class RecogniserOptions:
    """Options for opening a recogniser.

    Attributes:
        model: name or folder of a model; empty uses the recogniser's default.
        languages: codes of the languages that may be spoken, such as "en"; empty if any may be.  Of several, each
            hypothesis should name its own (`Hypothesis.language`).
        pause: seconds of silence that end an utterance.
    """

    model: str = ""
    languages: tuple[str, ...] = ("en",)
    pause: float = PAUSE

    @property
    def language(self) -> str:
        """Code of the spoken language; `AUTO` if there are several."""
        return self.languages[0] if len(self.languages) == 1 else AUTO

    def check_language(self, name: str, allowed: Sequence[str]) -> None:
        """Raise `OptionError`, with the name of the recogniser or model, for a language that is not ``allowed``."""
        for language in self.languages or (AUTO,):
            if language not in allowed:
                raise OptionError(f"{name} recognises {', '.join(allowed)}, not {language!r}")


def all_recognisers(group: str = ENTRY_POINT_GROUP) -> dict[str, ModuleType]:
    """Return the modules registered in an entry point group by name, including plug-ins."""
    return {name: point.load() for name, point in _points(group).items()}


def check_recogniser(spec: str) -> str:
    """Return the name in ``auto``, ``NAME``, ``NAME:MODEL`` or ``NAME:ws://HOST:PORT`` without opening anything.

    Raises:
        OptionError: the name is unknown, or the address is invalid.
    """
    name = spec.partition(":")[0]
    if "://" in spec:
        find_dialect(spec)
    elif spec != AUTO and name not in (known := _points()):
        raise OptionError(f"recogniser {name!r} is not known; known recognisers: {', '.join(known)}")
    return name


def open_recogniser(
    spec: str, language: str = "en", pause: float = PAUSE, punctuation: str | None = None
) -> Recogniser:
    """Open the recogniser given as ``auto``, ``NAME``, ``NAME:MODEL`` or ``NAME:ws://HOST:PORT``.

    Args:
        spec: the recogniser.
        language: tag or name of the spoken language; several with commas between, or ``auto`` for any.
        pause: seconds of silence that end an utterance.
        punctuation: folder of a punctuation model, see `redraft.speech.registry`.

    Raises:
        OptionError: no recogniser has this name, or it lacks the model or the language.
        MissingExtra: a dependency is not installed.
        ModelError: its model has not been downloaded, or cannot be opened.
        InputError: its server cannot be reached.
    """
    made: Recogniser
    if "://" in spec:
        from redraft.speech.servers import ServerRecogniser  # needs an extra

        made = ServerRecogniser(spec)
    else:
        name, _, model = resolve(spec, language).partition(":")
        made = _points()[name].load().recogniser(RecogniserOptions(model, _codes(language), pause))
    return punctuated(made, punctuation)


def resolve(spec: str, language: str = "en") -> str:
    """Return ``NAME:MODEL`` for a recogniser that leaves its name or model open; others are returned as they are.

    Arguments are those of `open_recogniser`.

    Raises:
        OptionError: no recogniser has this name, or it has no model for the language, or no one for all of several.
        ModelError: its model for this language has not been downloaded.
        MissingExtra: its package is not installed.
    """
    name = check_recogniser(spec)
    if spec == AUTO:
        spec = name = _chosen(language)
    if spec != name:
        return spec
    default = getattr(_points()[name].load(), "default_model", None)
    if default is None:
        return name
    models = {default(code) for code in _codes(language) or (AUTO,)}
    if len(models) > 1:
        raise OptionError(f": {name} has a model for each language, so name one that recognises several", "recogniser")
    return f"{name}:{models.pop()}"


def _codes(language: str) -> tuple[str, ...]:
    named = () if language == AUTO else language.split(",")
    return tuple(dict.fromkeys(parse_language(each, "source language").code for each in named))


def _chosen(language: str) -> str:
    """Return the name of the first recogniser that has a model for a language; one that is installed comes first."""
    found: list[tuple[bool, float, str]] = []
    codes = _codes(language) or (AUTO,)
    for name, point in _points().items():
        with suppress(ImportError, RedraftError):  # a broken plug-in must not keep the others from being chosen
            module = point.load()
            if hasattr(module, "place"):
                resolve(name, language)
                package = getattr(module, "PACKAGE", "")
                place = max(map(module.place, codes))
                found.append((bool(package) and not find_spec(package), place, name))
    if not found:
        raise OptionError(f": none has a model for {language!r}", "recogniser")
    return min(found)[2]


def _points(group: str = ENTRY_POINT_GROUP) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def punctuator(folder: str) -> Callable[[str], str]:
    """Return a function that punctuates a text.

    Raises:
        OptionError: the folder does not exist.
        ModelError: it contains no such model, or the model cannot be opened.
        MissingExtra: the extra ``listen-sherpa`` is not installed.
    """
    if not Path(folder).is_dir():
        raise OptionError(f"must be the folder of a punctuation model, not {folder!r}", "punctuation")
    files = [file for name in ("model.int8.onnx", "model.onnx") if (file := Path(folder) / name).exists()]
    if not files:
        raise ModelError(f"folder {folder!r} is not a punctuation model: model.onnx is missing")
    sherpa, vocabulary = library("sherpa_onnx", "listen-sherpa"), Path(folder) / "bpe.vocab"
    try:
        if vocabulary.exists():
            model = sherpa.OnlinePunctuationModelConfig(cnn_bilstm=str(files[0]), bpe_vocab=str(vocabulary))
            online = sherpa.OnlinePunctuation(sherpa.OnlinePunctuationConfig(model_config=model))
            return lambda text: str(online.add_punctuation_with_case(text))
        offline = sherpa.OfflinePunctuation(
            sherpa.OfflinePunctuationConfig(sherpa.OfflinePunctuationModelConfig(ct_transformer=str(files[0])))
        )
        return lambda text: str(offline.add_punctuation(text))
    except Exception as error:
        raise ModelError(f"folder {folder!r} is not a punctuation model: {first_sentence(error)}") from error


def punctuated(recogniser: Recogniser, folder: str | None) -> Recogniser:
    """Return a recogniser with the punctuation of the model in ``folder`` (`punctuator`), or as it is if that is None.

    A final full stop is added only at the end of the utterance.
    """
    if folder is None:
        return recogniser
    punctuate = punctuator(folder)

    def recognise(blocks: Iterator[Samples]) -> Generator[Recognised, None, None]:
        mixed = False
        with closing(recogniser(blocks)) as recognised:
            for each in recognised:
                if isinstance(each, Hypothesis) and each.text.strip():
                    text, mixed = lowered(each.text, mixed=mixed)
                    text = punctuate(text)
                    each = replace(each, text=text if each.final else text.rstrip(" .。?？!！"))
                yield each

    return recognise
