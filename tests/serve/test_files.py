"""The limit of open files is raised as far as it can be, and what is missing is said."""

from __future__ import annotations

import resource

import pytest

from redraft.errors import OptionError
from redraft.serve.files import allow_open_files


def test_the_limit_is_raised_as_far_as_the_system_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: chosen.append(limits))
    allow_open_files()
    allow_open_files(2000)
    assert chosen == [(4096, 4096)] * 2
    with pytest.raises(OptionError, match="5000 files must be open at a time, .* the system allows 4096: raise"):
        allow_open_files(5000)


def test_without_a_limit_of_the_system_as_many_are_allowed_as_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: chosen.append(limits))
    allow_open_files(5000)
    allow_open_files()
    assert chosen == [(5000, resource.RLIM_INFINITY), (1024, resource.RLIM_INFINITY)]
