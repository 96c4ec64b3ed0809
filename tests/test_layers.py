"""The layers of the package, and the checker that keeps them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.check_layers import PACKAGE, violations

SOURCE = Path(__file__).parents[1] / "src" / PACKAGE


def check(folder: Path, name: str, text: str) -> list[str]:
    """What the checker says of a package with one module."""
    path = folder / PACKAGE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return list(violations(folder / PACKAGE))


def test_every_import_of_the_package_points_down() -> None:
    assert list(violations(SOURCE)) == []
    assert len(list(SOURCE.rglob("*.py"))) > 10  # so that a folder moved elsewhere cannot pass unread


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("decode.py", "import redraft.session\n", "redraft/decode.py:1: decode imports session"),
        ("decode.py", "from redraft import session\n", "decode imports session"),
        ("decode.py", "from . import session\n", "decode imports session"),
        ("draft/previous.py", "from ..session import Session\n", "draft imports session"),
        ("draft/__init__.py", "from ..accept import exact\n", "draft imports accept"),
        ("types.py", "def later():\n    from redraft.events import Update\n    import redraft.decode\n", ":3: types"),
        ("session.py", "from redraft import __version__\n", "session imports __init__"),
        ("session.py", "import redraft.prompt as prompt\n", "session imports prompt"),
        ("stabilise.py", "import numpy as np\n", "stabilise belongs to the core and imports numpy"),
        ("accept/exact.py", "from llama_cpp import llama_decode\n", "the core and imports llama_cpp"),
        ("drive.py", "async def main():\n    import asyncio\n", "drive.py:2: drive belongs to the core"),
        ("wonder.py", "", "wonder is in no layer"),
    ],
)
def test_a_wrong_import_is_named(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    (found,) = check(tmp_path, name, text)
    assert complaint in found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cli.py", "import click\nfrom redraft import __version__, session\nfrom redraft.serve import app\n"),
        ("session.py", "import json\nfrom redraft.types import Draft\nfrom .errors import OptionError\n"),
        ("draft/a.py", "from redraft.draft.b import B\nfrom . import b\n"),
        ("backends/a.py", "import numpy\nimport asyncio\nfrom redraft.types import Rows\n"),
    ],
)
def test_a_right_import_passes(tmp_path: Path, name: str, text: str) -> None:
    assert check(tmp_path, name, text) == []


def test_the_command_fails_on_a_violation(tmp_path: Path) -> None:
    tool = tmp_path / "tools" / "check_layers.py"
    tool.parent.mkdir()
    tool.write_bytes((SOURCE.parents[1] / "tools" / "check_layers.py").read_bytes())
    check(tmp_path / "src", "errors.py", "import redraft.types\n")
    done = subprocess.run([sys.executable, tool], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "redraft/errors.py:1: errors imports types, which lies above it\n")


def test_importing_the_package_loads_no_engine() -> None:
    heavy = "{'llama_cpp', 'numpy', 'torch', 'jinja2', 'click', 'iso639', 'rich'}"
    query = f"import redraft, sys; print({heavy} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", query], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
