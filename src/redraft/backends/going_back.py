"""How a model goes back to an earlier token: by cells of its cache, by anchors, or not at all.

Models with recurrent layers cannot give up single ids.  llama.cpp says of some that they can, and then computes
something else, or ends the process.  So its word is not taken: when such a model is opened for the first time, a child
process tries (`redraft.backends.probe`).
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from redraft.backends.machine import cached, keep_cached, library_hash
from redraft.backends.selftest import judge
from redraft.errors import CapabilityError

#: Name of the file with results in the cache.
FILE = "going-back.json"
#: Timeout of the child in seconds, which loads the model.
TIMEOUT_S = 600.0
#: Maximum difference that can be rounding; with our kernels it is 0, and states that are not those of the ids differ by
#: 0.2 or more in models of two layers.
TOLERANCE = 0.15
#: Name of the child's module.
_PROBE = "probe"


class GoesBack(Enum):
    """How the cache of a model goes back to an earlier token."""

    CELLS = "cells"
    ANCHORS = "anchors"


def proven(path: Path, metadata: Mapping[str, str], gpu_layers: int) -> GoesBack:
    """Return how a model with recurrent layers goes back, from a probe or from what an earlier one has found.

    Args:
        path: its file.
        metadata: its metadata.
        gpu_layers: layers on the GPU.

    Raises:
        CapabilityError: it does not go back correctly.
    """
    key = _key(metadata, gpu_layers)
    if cached(FILE).get(key) != "right":
        command = [sys.executable, "-P", "-m", f"{__package__}.{_PROBE}", str(path), str(gpu_layers)]
        found = judge(command, timeout=TIMEOUT_S, tolerance=TOLERANCE)
        if found.kernels != "right":
            reasons = {"wrong": found.detail, "untested": f"the test failed: {found.detail}"}
            reason = reasons.get(found.kernels, f"llama.cpp does not survive it: {found.detail}")
            raise CapabilityError(
                f"model {path.name!r} has recurrent layers, which do not return to an earlier token correctly "
                f"({reason}); use another model"
            )
        keep_cached(FILE, key, found.kernels)
    return GoesBack.ANCHORS


def _key(metadata: Mapping[str, str], gpu_layers: int) -> str:
    """Return a key of build, place and shape: models that differ only in their weights go back alike."""
    shape = {key: value for key, value in metadata.items() if not key.startswith(("general.name", "tokenizer."))}
    probe = Path(__file__).with_name(f"{_PROBE}.py").read_bytes()
    digest = hashlib.sha256(json.dumps(shape, sort_keys=True).encode() + probe)
    return f"{library_hash()} {gpu_layers} {digest.hexdigest()[:12]}"
