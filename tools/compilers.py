"""Find the compilers that CMake will use for llama.cpp, and the flags that one needs.  Standard library only."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping

#: CMake's name of a language -> variable that names a compiler, and the programs that CMake tries without it.
LANGUAGES = {"C": ("CC", ("cc", "gcc", "clang")), "CXX": ("CXX", ("c++", "g++", "clang++"))}

#: GCC before 13.2.1 takes the operand of `_tile_loadconfig` for 8 bytes and drops the other stores to it, so that AMX
#: starts with random tile shapes and faults (GCC bug 114098).  These flags keep the stores.  Measured on a Xeon with
#: AMX, GCC 12.2, one thread: passes of 1 to 96 tokens take as long as with the flags on the AMX file alone, within 5%.
AMX_FLAGS = "-fno-tree-dse -fno-dse"
_FIRST_RIGHT_GCC = (13, 2, 1)


def compiler(language: str, environment: Mapping[str, str]) -> list[str]:
    """Return the compiler command for a language of `LANGUAGES`; empty if there is none."""
    variable, defaults = LANGUAGES[language]
    chosen = re.search(rf"-DCMAKE_{language}_COMPILER(?::\w+)?=(\S+)", environment.get("CMAKE_ARGS", ""))
    command = shlex.split(chosen[1] if chosen else environment.get(variable, ""))
    found = [[name] for name in defaults if shutil.which(name)]
    return command or next(iter(found), [])


def identity(command: list[str]) -> str:
    """Return a compiler's version text; empty if it cannot be run."""
    return _output([*command, "--version"])


def flags(command: list[str], *, amx: bool) -> str:
    """Return the flags that a C++ compiler needs to build llama.cpp's kernels correctly.

    Args:
        command: the compiler.
        amx: whether llama.cpp is compiled for a processor with AMX.
    """
    gcc = gcc_version(command) if amx else None
    return AMX_FLAGS if gcc and gcc < _FIRST_RIGHT_GCC else ""


def gcc_version(command: list[str]) -> tuple[int, ...] | None:
    """Return GCC's version; None for other compilers, which may mention a GCC version too but also name themselves."""
    macros = dict(re.findall(r"^#define (\w+) (.*)$", _output([*command, "-dM", "-E", "-x", "c++", "-"]), re.MULTILINE))
    parts = [macros.get(f"__GNUC{part}__", "") for part in ("", "_MINOR", "_PATCHLEVEL")]
    if not all(map(str.isdigit, parts)) or macros.keys() & {"__clang__", "__INTEL_COMPILER"}:
        return None
    return tuple(map(int, parts))


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError, IndexError):
        return ""
    return done.stdout if done.returncode == 0 else ""
