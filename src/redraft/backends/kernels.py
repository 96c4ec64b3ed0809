"""Choose llama.cpp's kernels: its own choice, unless a self-test found it broken."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sys
from dataclasses import asdict
from functools import cache
from pathlib import Path

from redraft.backends import selftest
from redraft.backends.engine import lib
from redraft.backends.machine import Processor, cached, keep_cached, library_hash, processor
from redraft.backends.selftest import SelfTestResult
from redraft.errors import ModelError
from redraft.models import shipped_path

#: Name of the file with results of self-tests in the cache.
FILE = "kernels.json"
log = logging.getLogger(__name__)

#: Builds llama.cpp with working AMX kernels on any compiler: GCC before 13.3 needs the flags, which cost later versions
#: nothing.
REBUILD = (
    'CXXFLAGS="-fno-tree-dse -fno-dse" pip install --force-reinstall --no-deps --no-cache-dir '
    "--no-binary llama-cpp-python llama-cpp-python"
)
#: Keeps torch's libraries to AVX-512.
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

    Only its AMX kernels are known to fail, so processors without AMX are not tested.  The test takes a second, once per
    build and processor.

    Raises:
        ModelError: this build of llama.cpp crashes with any kernels.
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
    """Whether only llama.cpp uses AMX's tiles in this process; keeps torch from using them if it is not loaded yet.

    llama.cpp configures the tiles once per thread.  oneDNN and MKL, which torch uses to multiply in bfloat16, reset
    them, and llama.cpp's next pass in that thread ends with an illegal instruction.  These libraries read their
    settings on first use, so if torch is already loaded, llama.cpp runs without AMX.
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
    """Return one sentence on broken kernels."""
    return (
        f"llama.cpp's AMX kernels {_FOUND[verdict.kernels]} in this build ({verdict.detail}), so models run without "
        "them, about half as fast; `redraft doctor` says how to get a right build"
    )


def mark() -> str:
    """Return the mark of our kernels (native/llama.cpp) in this build of llama.cpp; empty if it has none."""
    found = re.search(r"\bREDRAFT_KERNELS = (\w+)", lib.llama_print_system_info().decode())
    return found[1] if found else ""


def report() -> str:
    """Report which kernels run here and how to get faster ones; repeats the self-test if the processor has AMX."""
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
    """Run the self-test and store its result."""
    verdict = selftest.examine(shipped_path("demo-tiny"))
    # A test that failed before its first kernel may succeed next time.
    if verdict.plain_run and verdict.kernels != "untested":
        keep_cached(FILE, _key(here), asdict(verdict))
    return verdict


def remembered(here: Processor) -> SelfTestResult | None:
    """Return the self-test's stored result for this build and processor; None if there is none."""
    try:
        return SelfTestResult(**cached(FILE)[_key(here)])
    except (KeyError, TypeError):
        return None


def _key(here: Processor) -> str:
    """Return a key of build, processor and test, since another test may find something else."""
    rest = hashlib.sha256(" ".join(sorted(here.features)).encode() + Path(selftest.__file__).read_bytes())
    return f"{library_hash()} {here.label} {rest.hexdigest()[:12]}"
