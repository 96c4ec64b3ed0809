"""Choose llama.cpp's kernels: its own choice, unless a self-test found it broken."""

from __future__ import annotations

import hashlib
import logging
import re
from concurrent.futures import Executor, ThreadPoolExecutor
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


def own_thread() -> Executor | None:
    """Return a thread in which a context must run its passes; None if it may run them in any.

    llama.cpp configures AMX's tiles once per thread.  Other libraries configure or release those of the threads in
    which they run (ONNX Runtime, which recognisers use, and oneDNN and MKL, which torch uses); then llama.cpp's results
    are wrong without an error, or its next pass ends with an illegal instruction.  Our build (native/llama.cpp)
    configures them for every product; passes of other builds share their thread with nobody.
    """
    features = _features()
    if "AMX_INT8 = 1" not in features or "REDRAFT_TILES = 1" in features:
        return None
    return ThreadPoolExecutor(1, "redraft-passes")


def _features() -> str:
    """Return what llama.cpp says that it was built with, such as ``AVX2 = 1 | AMX_INT8 = 1 |``."""
    return str(lib.llama_print_system_info().decode())


def complaint(verdict: SelfTestResult) -> str:
    """Return one sentence on broken kernels."""
    return (
        f"llama.cpp's AMX kernels {_FOUND[verdict.kernels]} in this build ({verdict.detail}), so models run without "
        "them; `redraft doctor` says how to get a right build"
    )


def mark() -> str:
    """Return the mark of our kernels (native/llama.cpp) in this build of llama.cpp; empty if it has none."""
    found = re.search(r"\bREDRAFT_KERNELS = (\w+)", _features())
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
    if "AMX_INT8 = 1" not in _features():
        return f"without AMX, which this processor has. To build with it:\n{REBUILD}"
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
