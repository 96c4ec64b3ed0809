"""This machine: the processor, and the installed build of llama.cpp.

Uses only the standard library and does not load llama.cpp, because tools/setup_env.py runs before anything is
installed.
"""

from __future__ import annotations

import hashlib
import platform
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path

from redraft.backends.library import library_folder

CPUINFO = Path("/proc/cpuinfo")
#: Trademarks, clock rates, and the separators of signatures.
_FILLER = re.compile(r"\((?:R|TM|C)\)|\bCPU\b|@.*$|[|:]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor as described by the system.

    Attributes:
        name: such as "Intel(R) Xeon(R) Processor", or the architecture if the system gives no name.
        features: such as "avx2" and "amx_tile"; empty if the system does not list them.
        numbers: family and model of an x86 processor, such as "6-207"; cloud providers hide the marketing name.
    """

    name: str
    features: frozenset[str]
    numbers: str = ""

    @property
    def label(self) -> str:
        """Its name in tables and signatures, such as ``Intel Xeon Processor (6-207) AMX``."""
        name = " ".join(_FILLER.sub(" ", self.name).split())
        return name + (f" ({self.numbers})" if self.numbers else "") + (" AMX" if "amx_tile" in self.features else "")


def processor(cpuinfo: Path = CPUINFO) -> Processor:
    """Return the processor of this machine, the first of several."""
    facts: dict[str, str] = {}
    with suppress(OSError), cpuinfo.open(encoding="utf-8", errors="replace") as lines:
        # There is an entry per core, with an empty line between.
        pairs = (line.split(":", 1) for line in takewhile(lambda line: ":" in line, lines))
        facts = {key.strip(): value.strip() for key, value in pairs}
    # ARM entries have no name, only the part number of the core.
    part = f"ARM {facts.get('CPU implementer', '')} {facts['CPU part']}" if "CPU part" in facts else ""
    name = facts.get("model name") or part or platform.processor() or platform.machine()
    numbers = f"{facts['cpu family']}-{facts['model']}" if {"cpu family", "model"} <= facts.keys() else ""
    return Processor(name, frozenset((facts.get("flags") or facts.get("Features") or "").split()), numbers)


@cache
def library_hash() -> str:
    """Return 12 hex digits that identify the installed build of llama.cpp."""
    spec, digest = find_spec("llama_cpp"), hashlib.sha256()
    folder = library_folder() or Path((spec and spec.origin) or "").parent / "lib"
    for path in sorted(folder.glob("*")):
        if path.suffix in {".so", ".dll", ".dylib"}:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
