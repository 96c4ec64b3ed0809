"""Whether a model with recurrent layers goes back to an earlier token, by anchors (`redraft.backends.llama_slot`).

    python -m redraft.backends.probe FILE GPU_LAYERS

Such models cannot give up single ids.  llama.cpp says of some that they can, and then computes something else, or ends
the process.  So its word is not taken: when such a model is opened for the first time, a child process tries.  It plays
a few updates, which grow, shrink and reject drafts in two slots, and compares all rows with those of slots that have
read the same ids and nothing else, alone in a pass: of some models, llama.cpp also mixes up the states of several slots
that share one.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, cast

from redraft.backends.machine import library_hash
from redraft.backends.numpy_rows import Matrix, NumpyRows
from redraft.backends.options import LlamaOptions
from redraft.backends.selftest import judge
from redraft.decoding.types import Draft, Provenance, Score
from redraft.errors import CapabilityError
from redraft.folders import cache_folder

if TYPE_CHECKING:
    from redraft.backends.llamacpp import LlamaCpp

#: Folder in the cache with an empty file for each model that goes back.
FOLDER = "going-back"
#: Timeout of the child in seconds, which loads the model.
TIMEOUT_S = 600.0
#: Maximum difference that can be rounding; with our kernels it is 0, and states that are not those of the ids differ by
#: 0.2 or more in models of two layers.
TOLERANCE = 0.15
_SLOTS = 2


def check_anchors(path: Path, metadata: Mapping[str, str], gpu_layers: int) -> None:
    """Check by a probe, or by what an earlier one has found, that a model goes back by anchors.

    Args:
        path: its file.
        metadata: its metadata.
        gpu_layers: layers on the GPU.

    Raises:
        CapabilityError: it does not go back correctly.
    """
    # Build, place and shape: models that differ only in their weights go back alike.
    shape = {key: value for key, value in metadata.items() if not key.startswith(("general.name", "tokenizer."))}
    digest = hashlib.sha256(json.dumps(shape, sort_keys=True).encode() + Path(__file__).read_bytes())
    folder, name = cache_folder(), f"{library_hash()}-{gpu_layers}-{digest.hexdigest()[:12]}"
    if folder and os.path.exists(folder / FOLDER / name):  # noqa: PTH110  # false if it cannot be read
        return
    command = [sys.executable, "-P", "-m", __name__, str(path), str(gpu_layers)]
    found = judge(command, timeout=TIMEOUT_S, tolerance=TOLERANCE)
    if found.kernels != "right":
        reasons = {"wrong": found.detail, "untested": f"the test failed: {found.detail}"}
        reason = reasons.get(found.kernels, f"llama.cpp does not survive it: {found.detail}")
        raise CapabilityError(
            f"model {path.name!r} has recurrent layers, which do not return to an earlier token correctly "
            f"({reason}); use another model"
        )
    if folder:
        with suppress(OSError):  # the next process tries again
            (folder / FOLDER).mkdir(parents=True, exist_ok=True)
            (folder / FOLDER / name).touch()


def difference(path: Path, gpu_layers: int = 0, *, anchored: bool = True) -> float:
    """Return how far rows after going back are from those of a fresh slot alone, in standard deviations of logits.

    Of the rows of a request the worst counts; of the requests, the middle one, since rounding may send a token to other
    experts.

    Args:
        anchored: whether it goes back by anchors, or else by the cells of its cache.

    Raises:
        CapabilityError: llama.cpp itself says that the model does not go back in this way.
    """
    from redraft.backends.llama_model import LlamaModel
    from redraft.backends.llamacpp import LlamaCpp

    options = LlamaOptions(context_length=256, slots=2 * _SLOTS, gpu_layers=gpu_layers)
    with (
        closing(LlamaModel(path, options, anchored=anchored)) as model,
        closing(LlamaCpp(path, options, model)) as backend,
    ):
        slots = [backend.open_slot() for _ in range(_SLOTS)]
        apart = []
        for scores in _script(backend.vocabulary_size):
            found = _logits(backend, list(zip(slots, scores, strict=True)))
            for rows, score in zip(found, scores, strict=True):
                fresh = backend.open_slot()
                (others,) = _logits(backend, [(fresh, score)])
                backend.close_slot(fresh)
                apart.append(max(float(abs(a - b).max() / b.std()) for a, b in zip(rows, others, strict=True)))
        return median(apart)


def _script(vocabulary: int) -> Iterator[list[Score]]:
    """Yield requests for all slots: drafts and their rejections, while the sources grow, shrink and change."""
    from redraft.backends.llama_slot import DISTANCE

    def some(start: int, count: int) -> tuple[int, ...]:
        return tuple([37 * (start + place + 1) % vocabulary for place in range(count)])

    def score(prefix: tuple[int, ...], draft: tuple[int, ...]) -> Score:
        return Score(prefix, Draft.chain(draft, Provenance.PREVIOUS))

    after, drafted, other = some(60, 2 * DISTANCE), some(80, 5), some(90, 3)
    for source in (some(0, 12), some(0, 24), some(0, 9) + some(30, 6)):
        prompts = [(slot, *source, *after) for slot in range(_SLOTS)]
        yield [score(prompt, drafted) for prompt in prompts]
        yield [score(prompt + drafted[: 1 + slot] + other[:1], other[:slot]) for slot, prompt in enumerate(prompts)]


def _logits(backend: LlamaCpp, requests: Sequence[tuple[int, Score]]) -> list[list[Matrix]]:
    """Return copies of the rows of requests, which are lost at the next pass."""
    answers = zip(cast(list[NumpyRows], backend.score(requests)), requests, strict=True)
    return [[rows.row(node).copy() for node in range(-1, len(score.draft))] for rows, (_, score) in answers]


if __name__ == "__main__":
    print(difference(Path(sys.argv[1]), int(sys.argv[2])), flush=True)
