"""The layers of the package, and the checker that keeps them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.check_layers import PACKAGE, violations

SOURCE = Path(__file__).parents[1] / "src" / PACKAGE


def check(folder: Path, name: str, text: str) -> list[str]:
    """What the checker reports about a package with one module."""
    path = folder / PACKAGE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return list(violations(folder / PACKAGE))


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        (
            "decoding/decode.py",
            "import redraft.captions.translation\n",
            "redraft/decoding/decode.py:1: decoding imports captions",
        ),
        ("decoding/decode.py", "from redraft import captions\n", "decoding imports captions"),
        ("decoding/decode.py", "from .. import captions\n", "decoding imports captions"),
        (
            "decoding/drafters/previous.py",
            "from ...captions.translation import Translation\n",
            "decoding imports captions",
        ),
        ("errors.py", "def later():\n    import json\n    import redraft.decoding.decode\n", ":3: errors"),
        ("captions/translation.py", "from redraft import __version__\n", "captions imports __init__"),
        (
            "captions/translation.py",
            "import redraft.captions.prompt as prompt\n",
            "captions.translation belongs to the core",
        ),
        ("captions/stabilise.py", "import numpy as np\n", "captions imports numpy, and the core needs"),
        ("decoding/rules.py", "from llama_cpp import llama_decode\n", "decoding imports llama_cpp"),
        ("decoding/drive.py", "async def main():\n    import asyncio\n", "drive.py:2: decoding imports asyncio"),
        (
            "cli/train.py",
            "from redraft_train.recipe import loop\n",
            "cli imports redraft_train, which is not in the wheel",
        ),
        ("wonder.py", "", "wonder is in no layer"),
    ],
)
def test_wrong_import_is_named(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    (found,) = check(tmp_path, name, text)
    assert complaint in found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cli/main.py", "import click\nfrom redraft import __version__, captions\nfrom redraft.serve import app\n"),
        ("captions/translation.py", "import json\nfrom redraft.decoding.types import Draft\nfrom ..errors import E\n"),
        ("captions/prompt.py", "import numpy\nfrom redraft.captions.chat import Chat\n"),
        ("decoding/drafters/a.py", "from redraft.decoding.drafters.b import B\nfrom . import b\n"),
        ("backends/a.py", "import numpy\nimport asyncio\nfrom redraft.decoding.types import Rows\n"),
    ],
)
def test_right_import_passes(tmp_path: Path, name: str, text: str) -> None:
    assert check(tmp_path, name, text) == []


def test_command_fails_on_violation(tmp_path: Path) -> None:
    tool = tmp_path / "tools" / "check_layers.py"
    tool.parent.mkdir()
    tool.write_bytes((SOURCE.parents[1] / "tools" / "check_layers.py").read_bytes())
    check(tmp_path / "src", "errors.py", "import redraft.decoding.types\n")
    done = subprocess.run([sys.executable, tool], capture_output=True, text=True, check=False, timeout=200)
    assert (done.returncode, done.stdout) == (1, "redraft/errors.py:1: errors imports decoding, which lies above it\n")


def test_importing_package_loads_no_engine() -> None:
    heavy = "{'llama_cpp', 'numpy', 'torch', 'jinja2', 'click', 'iso639', 'rich'}"
    query = f"import redraft, sys; print({heavy} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", query], capture_output=True, text=True, check=True, timeout=200)
    assert done.stdout.strip() == "set()"
