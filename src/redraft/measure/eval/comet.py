"""COMET of final translations (Rei et al. 2022), by the library unbabel-comet with the model wmt22-comet-da.

The library is no part of an extra: its release 2.2 asks for transformers below 5 and numpy below 2, so it wants an
environment without the ``hf`` extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redraft.errors import MissingExtra, ModelError

MODEL = "Unbabel/wmt22-comet-da"


@dataclass(frozen=True, slots=True)
class Comet:
    """``score``, the mean of ``segments``, about 0 to 1, and the ``model`` that gave them."""

    score: float
    segments: tuple[float, ...]
    model: str


def comet(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    model: str = MODEL,
    batch_size: int = 16,
    gpus: int = 0,
) -> Comet:
    """Scores of translations.

    Args:
        sources, hypotheses, references: one a segment.
        model: its name on the Hugging Face Hub, where it is downloaded from if the cache does not hold it, or a
            checkpoint file with ``hparams.yaml`` two folders above.
        batch_size: segments a batch.
        gpus: how many GPUs; 0 computes on the CPU.

    Raises:
        MissingExtra: unbabel-comet is not installed.
        ModelError: the model is absent and cannot be downloaded, or cannot be loaded.
    """
    try:
        from comet import download_model, load_from_checkpoint
    except ImportError as error:
        raise MissingExtra(
            "COMET needs unbabel-comet, best in an environment without the hf extra: pip install unbabel-comet"
        ) from error
    try:
        loaded = load_from_checkpoint(model if Path(model).is_file() else download_model(model))
    except Exception as error:  # the library raises nothing more special
        raise ModelError(
            f"the model {model} of COMET cannot be had ({error}): download it with "
            f"`huggingface-cli download {model}`, or name a checkpoint file"
        ) from error
    data = [
        {"src": source, "mt": hypothesis, "ref": reference}
        for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True)
    ]
    found = loaded.predict(data, batch_size=batch_size, gpus=gpus, progress_bar=False)
    return Comet(float(found.system_score), tuple(float(score) for score in found.scores), model)
