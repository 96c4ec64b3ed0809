"""Add punctuation and capitals to recognisers without them, with models of sherpa-onnx.

A model is a folder with ``model.int8.onnx`` or ``model.onnx`` and ``bpe.vocab`` (punctuation and capitals), or without
that file (only punctuation, for Chinese and English).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from redraft.captions.capitals import Capitals
from redraft.errors import ModelError, OptionError, first_sentence
from redraft.speech.audio import Samples, library
from redraft.speech.recogniser import Hypothesis, Recognised, Recogniser


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


class Punctuated:
    """A recogniser with punctuated hypotheses; the final full stop is added only at the end of the utterance."""

    def __init__(self, recogniser: Recogniser, punctuate: Callable[[str], str]) -> None:
        self._recogniser, self._punctuate, self._capitals = recogniser, punctuate, Capitals()

    def hear(self, samples: Samples) -> Iterator[Recognised]:
        """Yield what a block of audio adds."""
        yield from self._all(self._recogniser.hear(samples))

    def finish(self) -> Iterator[Recognised]:
        """Yield the utterance that is still open, as final."""
        yield from self._all(self._recogniser.finish())

    def hurry(self) -> None:
        """Pass on that the end of the audio was asked for."""
        getattr(self._recogniser, "hurry", bool)()

    def close(self) -> None:
        """Release the recogniser's resources."""
        self._recogniser.close()

    def _all(self, recognised: Iterable[Recognised]) -> Iterator[Recognised]:
        for each in recognised:
            if isinstance(each, Hypothesis) and each.text.strip():
                self._capitals, text = self._capitals.lowered(each.text)
                text = self._punctuate(text)
                each = replace(each, text=text if each.final else text.rstrip(" .。?？!！"))
            yield each
