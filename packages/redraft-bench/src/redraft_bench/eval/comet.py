"""COMET of final translations (Rei et al. 2022), computed by unbabel-comet with the model wmt22-comet-da.

The library is not in an extra: release 2.2 requires transformers below 5 and numpy below 2, so it needs an environment
without the ``hf`` extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redraft.errors import MissingExtra, ModelError

MODEL = "Unbabel/wmt22-comet-da"


@dataclass(frozen=True, slots=True)
class Comet:
    """COMET: ``score`` is the mean of ``segments``, about 0 to 1; ``model`` computed them."""

    score: float
    segments: tuple[float, ...]
    model: str


def comet(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    model: str = MODEL,
) -> Comet:
    """Score translations.

    Args:
        sources: source texts, one per segment.
        hypotheses: translations, one per segment.
        references: reference translations, one per segment.
        model: name on the Hugging Face Hub, downloaded if it is not cached, or a checkpoint file with ``hparams.yaml``
            two folders above.

    Raises:
        MissingExtra: unbabel-comet is not installed.
        ModelError: the model cannot be downloaded or loaded.
    """
    try:
        from comet import download_model, load_from_checkpoint
    except ImportError as error:
        raise MissingExtra(
            "COMET needs unbabel-comet, best in an environment without the hf extra: pip install unbabel-comet"
        ) from error
    try:
        loaded = load_from_checkpoint(model if Path(model).is_file() else download_model(model))
    except Exception as error:  # the library raises nothing more specific
        raise ModelError(
            f"the model {model} of COMET cannot be had ({error}): download it with "
            f"`huggingface-cli download {model}`, or name a checkpoint file"
        ) from error
    data = [
        {"src": source, "mt": hypothesis, "ref": reference}
        for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True)
    ]
    found = loaded.predict(data, batch_size=16, gpus=0, progress_bar=False)
    return Comet(float(found.system_score), tuple(float(score) for score in found.scores), model)
