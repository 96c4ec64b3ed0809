"""Find the compilers that CMake will use for llama.cpp.  Standard library only."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping

#: CMake's name of a language -> variable that names a compiler, and the programs that CMake tries without it.
LANGUAGES = {"C": ("CC", ("cc", "gcc", "clang")), "CXX": ("CXX", ("c++", "g++", "clang++"))}


def compiler(language: str, environment: Mapping[str, str]) -> list[str]:
    """Return the compiler command for a language of `LANGUAGES`; empty if there is none."""
    variable, defaults = LANGUAGES[language]
    chosen = re.search(rf"-DCMAKE_{language}_COMPILER(?::\w+)?=(\S+)", environment.get("CMAKE_ARGS", ""))
    command = shlex.split(chosen[1] if chosen else environment.get(variable, ""))
    found = [[name] for name in defaults if shutil.which(name)]
    return command or next(iter(found), [])


def identity(command: list[str]) -> str:
    """Return a compiler's version text; empty if it cannot be run."""
    asked = [*command, "--version"]
    try:
        done = subprocess.run(
            asked, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
