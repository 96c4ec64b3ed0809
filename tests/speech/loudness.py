"""Loud and quiet audio."""

from __future__ import annotations

import numpy as np

from redraft.speech.audio import Samples


def loud(frame: Samples) -> bool:
    return bool(np.abs(frame).max() > 0.03)
