"""A dialect of another package, found by its entry point."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from conftest import ROOT
from redraft.errors import OptionError
from redraft.serve.http import compat
from redraft.serve.settings import ServeSettings
from tests.serve.servers import Running, running


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The documentation's example is installed, and one that cannot be imported."""
    (code,) = re.findall(
        r"```python\n(\"\"\"MyMemory.*?)```", (ROOT / "docs" / "compat.md").read_text("utf-8"), re.DOTALL
    )
    module = types.ModuleType("redraft_mymemory")
    exec(code, module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    points = [
        EntryPoint("mymemory", "redraft_mymemory:mymemory", compat.ENTRY_POINT_GROUP),
        EntryPoint("broken", "redraft_absent:routes", compat.ENTRY_POINT_GROUP),
    ]

    def found(**wanted: Any) -> EntryPoints:
        return EntryPoints(points).select(**wanted)

    monkeypatch.setattr(compat, "entry_points", found)


@pytest.fixture
def server(installed: None) -> Iterator[Running]:
    with running(compat=("mymemory",)) as found:
        yield found


def test_translates(server: Running) -> None:
    found = server.ask("/get?q=we+saw&langpair=en|de").json
    assert found["responseStatus"] == 200 and found["responseData"]["translatedText"]


def test_refusal(server: Running) -> None:
    found = server.ask("/get?q=we+saw&langpair=en|nonsense")
    assert (found.status, found.json["responseDetails"].split()[0]) == (400, "langpair")


@pytest.mark.parametrize("name", ["bing", "broken"])
def test_invalid(installed: None, name: str) -> None:
    with pytest.raises(OptionError, match=name) as caught:
        compat.check_compat(ServeSettings(compat=(name,)))
    assert caught.value.field == "compat"
