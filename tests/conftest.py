"""What all tests share: where the data lie, and how hard hypothesis tries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

# "ci" is the same every time and quick; HYPOTHESIS_PROFILE=thorough looks further.
settings.register_profile("ci", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the shared data, REDRAFT_DATA or ../shared/data (relative to the repository); skips without it."""
    folder = (ROOT / os.environ.get("REDRAFT_DATA", "../shared/data")).resolve()
    if not folder.is_dir():
        pytest.skip(f"no data in {folder}: set REDRAFT_DATA to a folder with train/, test/ and asr/")
    return folder
