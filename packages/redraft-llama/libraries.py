"""Puts compiled libraries into the wheel; ``REDRAFT_LLAMA_LIBRARIES`` is their folder (`tools.build_llama`)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def version() -> str:
    """Return the version of llama-cpp-python that the repository pins."""
    text = Path(__file__).parents[2].joinpath("constraints.txt").read_text(encoding="utf-8")
    found = re.search(r"^llama-cpp-python==(\S+)", text, re.MULTILINE)
    if found is None:
        raise RuntimeError("constraints.txt must pin llama-cpp-python")
    return found[1]


class Libraries(BuildHookInterface[Any]):  # type: ignore[misc]  # hatchling is not read
    """Adds the libraries, and the platform that they need."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to the wheel."""
        folder = os.environ.get("REDRAFT_LLAMA_LIBRARIES")
        if folder is None:
            raise RuntimeError("build this package with `python -m tools.build_llama`, which compiles the libraries")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['REDRAFT_LLAMA_PLATFORM']}"
        for path in Path(folder).iterdir():
            build_data["force_include"][str(path)] = f"redraft_llama/lib/{path.name}"
