"""Loud and quiet audio."""

from __future__ import annotations

import numpy as np


def loud(frame: bytes) -> bool:
    return bool(np.abs(np.frombuffer(frame, "<i2")).max() > 1000)
