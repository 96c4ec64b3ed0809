"""Which kernels llama.cpp may run here: those of its own choice, unless a self-test found them broken."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

from redraft.backends import selftest
from redraft.backends.engine import lib
from redraft.backends.machine import Processor, cache_folder, library_hash, processor
from redraft.backends.selftest import SelfTestResult
from redraft.errors import ModelError
from redraft.models import shipped_path

log = logging.getLogger(__name__)

#: Compiles llama.cpp so that AMX works with every compiler: GCC before 13.3 needs the flags, later ones lose nothing.
REBUILD = (
    'CXXFLAGS="-fno-tree-dse -fno-dse" pip install --force-reinstall --no-deps --no-cache-dir '
    "--no-binary llama-cpp-python llama-cpp-python"
)
#: What keeps the libraries of torch to AVX-512.
NO_TILES = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "MKL_ENABLE_INSTRUCTIONS": "AVX512"}
_FOUND = {
    "wrong": "compute wrong results",
    "crash": "crash",
    "hang": "hang",
    "untested": "could not be tested",
}


@cache
def trusted() -> bool:
    """Whether llama.cpp may choose kernels by itself; if not, that is logged once.

    Only its AMX kernels are known to break, so processors without AMX are not tested.  The test takes a second, once
    for each build and processor.

    Raises:
        ModelError: this build of llama.cpp crashes whatever the kernels.
    """
    here = processor()
    if not here.has_amx:
        return True
    verdict = remembered(here) or test(here)
    if verdict.kernels == "right":
        return True
    if verdict.kernels == "crash" and not verdict.plain_run:
        raise ModelError(f"llama.cpp crashes on this processor ({verdict.detail}); compile it here: {REBUILD}")
    log.warning("%s", complaint(verdict))
    return False


@cache
def tiles_are_ours() -> bool:
    """Whether llama.cpp alone uses AMX's tiles in this process; torch is kept off them, if it is not too late.

    llama.cpp shapes the tiles once in a thread.  oneDNN and MKL, by which torch multiplies in bfloat16, reset them, and
    the next pass of llama.cpp in that thread ends with an illegal instruction.  They read their settings when they
    first run, so where torch is loaded already llama.cpp goes without AMX.
    """
    if not processor().has_amx or set(NO_TILES) <= os.environ.keys():
        return True
    for name, value in NO_TILES.items():
        os.environ.setdefault(name, value)
    if "torch" not in sys.modules:
        return True
    log.warning("torch was loaded before llama.cpp, whose models run without AMX in this process, about half as fast")
    return False


def complaint(verdict: SelfTestResult) -> str:
    """One sentence on kernels that are not right."""
    return (
        f"llama.cpp's AMX kernels {_FOUND[verdict.kernels]} in this build ({verdict.detail}), so models run without "
        "them, about half as fast; `redraft doctor` says how to get a right build"
    )


def report() -> str:
    """What to know of the kernels here, and how to get faster ones; tests them again where the processor has AMX."""
    here = processor()
    if not here.has_amx:
        return "chosen by llama.cpp; this processor has no AMX, so they need no test"
    verdict = test(here)
    if verdict.kernels != "right":
        found = f"AMX kernels {_FOUND[verdict.kernels]} ({verdict.detail}), so they are not used"
        return f"{found}. To build working ones:\n{REBUILD}"
    if "AMX_INT8 = 1" not in lib.llama_print_system_info().decode():
        return f"without AMX, which this processor has and is about twice as fast. To build with it:\n{REBUILD}"
    return "AMX, passed the self-test"


def test(here: Processor) -> SelfTestResult:
    """Run the self-test, and remember what it found."""
    verdict = selftest.examine(shipped_path("demo-tiny"))
    # A test that failed before its first kernel says nothing of the next time.
    if verdict.plain_run and verdict.kernels != "untested":
        with suppress(OSError, RuntimeError):  # where it cannot be remembered, it is tested again
            _write(here, verdict)
    return verdict


def remembered(here: Processor) -> SelfTestResult | None:
    """What the self-test found for this build and processor; None if it has not run."""
    try:
        return SelfTestResult(**json.loads(_file().read_text(encoding="utf-8"))[_key(here)])
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):  # RuntimeError: there is no home
        return None


def _write(here: Processor, verdict: SelfTestResult) -> None:
    path = _file()
    try:
        known = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        known = {}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(json.dumps({**known, _key(here): asdict(verdict)}, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def _file() -> Path:
    return cache_folder() / "kernels.json"


def _key(here: Processor) -> str:
    """Build, processor and the test itself, since another one may find something else."""
    rest = hashlib.sha256(" ".join(sorted(here.features)).encode() + Path(selftest.__file__).read_bytes())
    return f"{library_hash()} {here.label} {rest.hexdigest()[:12]}"
