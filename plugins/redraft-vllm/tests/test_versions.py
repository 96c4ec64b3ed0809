"""Another vLLM is left as it is, with one sentence."""

from __future__ import annotations

import logging
import sys
from types import ModuleType

import pytest

import redraft_vllm


def test_only_the_version_that_it_was_tested_with() -> None:
    assert redraft_vllm.problem("0.32.0") == redraft_vllm.problem("0.32.0+cpu") == ""
    sentence = "redraft-vllm works with vLLM 0.32.0, not 0.33.0: install vllm==0.32.0, or another redraft-vllm"
    assert redraft_vllm.problem("0.33.0") == sentence
    assert redraft_vllm.problem("0.32.0rc1") and redraft_vllm.problem("0.32.01") and redraft_vllm.problem("dev")


def test_another_version_is_not_patched(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    other = ModuleType("vllm")
    other.__version__ = "0.33.0"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", other)
    with caplog.at_level(logging.WARNING, "vllm.redraft"):
        redraft_vllm.register()  # anything but the version would fail: the module has nothing else
    assert not redraft_vllm.is_installed()
    assert caplog.messages == [redraft_vllm.problem("0.33.0") + "; drafts are not available"]
