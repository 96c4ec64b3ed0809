"""Fetching listed models; nothing here leaves the machine."""

from __future__ import annotations

import pytest

from redraft.errors import ModelError
from redraft.models.hub import fetch


def test_a_download_that_fails_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def fail(*_: object, **__: object) -> str:
        raise OSError("The hub cannot be reached. Please check your connection.\nMore of it.")

    monkeypatch.setattr(hub, "hf_hub_download", fail)
    with pytest.raises(ModelError, match=r"^model 'qwen3-4b' could not be fetched from .*: The hub cannot be reached$"):
        fetch("qwen3-4b")
