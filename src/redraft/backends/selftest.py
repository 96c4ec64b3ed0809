"""Test whether the installed llama.cpp computes correctly on this processor.

Some builds do not: a library compiled for another processor uses instructions that are missing here, and a compiler may
have faults.  A crash cannot be caught, so a child process decodes a few tokens of a quantised model, with plain kernels
and with those that Redraft uses, and compares.

Uses only the standard library, except in the child, because tools/setup_env.py tests a fresh build with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from redraft.errors import ModelError
from redraft.models import shipped_path

if TYPE_CHECKING:
    import numpy as np

    Logits = np.ndarray[Any, np.dtype[np.float32]]

#: Numbers of new tokens in a pass; kernels for one row, for one tile and for several tiles differ.
SIZES = (1, 16, 64)
#: Two, so that a thread other than the main one computes as well.
THREADS = 2
#: Timeout of the child in seconds; it needs about one.
TIMEOUT_S = 60.0
#: Maximum difference of logits that can be rounding, in standard deviations of those from plain kernels.
TOLERANCE = 0.3

#: Signals of a process's own faults; others, such as SIGKILL when memory runs out, say nothing about kernels.
_FAULTS = {"SIGSEGV", "SIGILL", "SIGBUS", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS"}
#: Higher exit statuses are those of processes that Windows ended for a fault.
_LARGEST_STATUS = 255

#: Compiles llama.cpp for this processor.
REBUILD = "pip install --force-reinstall --no-deps --no-cache-dir --no-binary llama-cpp-python llama-cpp-python"
_FAILED = {"wrong": "computes wrong results", "crash": "crashes", "hang": "hangs"}

Kernels = Literal["right", "wrong", "crash", "hang", "untested"]


@dataclass(frozen=True, slots=True)
class SelfTestResult:
    """Result of a self-test.

    Attributes:
        kernels: whether the kernels that Redraft uses are correct, compute something else, crash or hang; "untested"
            if the test itself failed.
        detail: how the test ended, such as "SIGSEGV"; may be empty.
    """

    kernels: Kernels
    detail: str = ""


def report() -> str:
    """Run the self-test, which takes a second, and say how it ended.

    Raises:
        ModelError: llama.cpp is not usable on this processor.
    """
    verdict = examine(shipped_path("demo-tiny"))
    if verdict.kernels == "right":
        return "passed the self-test"
    if verdict.kernels == "untested":
        return f"could not be tested ({verdict.detail})"
    raise ModelError(
        f"llama.cpp {_FAILED[verdict.kernels]} on this processor ({verdict.detail}); compile it here: {REBUILD}"
    )


def examine(model: Path, python: str = sys.executable, path: Sequence[str] | None = None) -> SelfTestResult:
    """Test the llama.cpp that ``python`` imports, in a child process; takes about a second.

    Args:
        model: a small quantised GGUF file.
        python: interpreter of the environment to test.
        path: its PYTHONPATH; None uses this process's import path.
    """
    return judge([python, "-P", "-m", "redraft.backends.selftest", str(model)], path=path)


def judge(
    command: Sequence[str],
    *,
    path: Sequence[str] | None = None,
    timeout: float | None = None,
    tolerance: float = TOLERANCE,
) -> SelfTestResult:
    """Run a child that prints a difference of logits in its last line, and interpret its result.

    Args:
        command: the child.
        path: as for `examine`.
        timeout: seconds; None for `TIMEOUT_S`.
        tolerance: maximum difference that is right.
    """
    timeout = timeout or TIMEOUT_S
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(each for each in (sys.path if path is None else path) if each),
        "OMP_WAIT_POLICY": "passive",  # spinning threads could make a busy machine look like a hang
        "GGML_NO_BACKTRACE": "1",
    }
    try:
        child = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return SelfTestResult("hang", f"not done in {timeout:g} s")
    except OSError as error:
        return SelfTestResult("untested", f"{command[0]!r} cannot be run: {error.strerror or error}")
    if child.returncode:
        ending = _ending(child.returncode, _lines(child.stderr))
        fault = ending in _FAULTS or child.returncode > _LARGEST_STATUS
        return SelfTestResult("crash" if fault else "untested", ending)
    difference = float(_lines(child.stdout)[-1])
    if difference <= tolerance:  # false for NaN
        return SelfTestResult("right")
    return SelfTestResult("wrong", f"logits are off by {difference:.2g} standard deviations")


def _lines(output: bytes) -> list[str]:
    return output.decode(errors="replace").strip().splitlines()


def _ending(status: int, err: Sequence[str]) -> str:
    """Describe how a process failed: the signal, the status on Windows, or the last line of an exception."""
    if status < 0:
        names = {int(each): each.name for each in signal.Signals}
        return names.get(-status, f"signal {-status}")
    if status > _LARGEST_STATUS:
        return f"status {status:#x}"
    return err[-1] if err else f"status {status}"


def _child(model: Path) -> None:
    """Print the largest difference between the logits of plain kernels and of those that Redraft uses."""
    import numpy as np

    from redraft.backends.engine import have_amx

    plain = _run(model, extra=False)
    used = _run(model, extra=not have_amx())
    print(max(float(np.abs(a - b).max() / a.std()) for a, b in zip(plain, used, strict=True)), flush=True)


def _run(path: Path, *, extra: bool) -> list[Logits]:
    """Return the logits of one pass for each of `SIZES`, (tokens, vocabulary) each.

    Args:
        path: the model.
        extra: whether llama.cpp may repack weights for the kernels it chooses.
    """
    import numpy as np

    from redraft.backends.library import load

    lib = load()

    chosen = lib.llama_model_default_params()
    chosen.n_gpu_layers, chosen.use_extra_bufts = 0, extra
    model = lib.llama_model_load_from_file(os.fsencode(path), chosen)
    params = lib.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = max(SIZES)
    params.n_threads = params.n_threads_batch = THREADS
    params.offload_kqv = params.op_offload = False
    context = lib.llama_init_from_model(model, params) if model else None
    if not model or not context:
        raise RuntimeError(f"llama.cpp cannot load {path.name}")
    vocabulary = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    found = []
    for size in SIZES:
        lib.llama_memory_clear(lib.llama_get_memory(context), True)
        batch = lib.llama_batch_init(size, 0, 1)
        batch.n_tokens = size
        for index in range(size):
            batch.token[index], batch.pos[index] = 37 * (index + 1) % vocabulary, index
            batch.n_seq_id[index], batch.logits[index] = 1, 1
            batch.seq_id[index][0] = 0
        if lib.llama_decode(context, batch):
            raise RuntimeError(f"llama.cpp cannot decode {size} tokens")
        found.append(np.ctypeslib.as_array(lib.llama_get_logits(context), (size, vocabulary)).copy())
        lib.llama_batch_free(batch)
    lib.llama_free(context)
    lib.llama_model_free(model)
    return found


if __name__ == "__main__":
    _child(Path(sys.argv[1]))
