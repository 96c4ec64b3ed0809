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
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from redraft.errors import ModelError
from redraft.models import shipped_path

if TYPE_CHECKING:
    from redraft.backends.numpy_rows import Matrix

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
        with suppress(ValueError):  # a real-time signal
            return signal.Signals(-status).name
    if status > _LARGEST_STATUS:
        return f"status {status:#x}"
    return err[-1] if err else f"status {status}"


def _logits(path: Path, *, plain: bool) -> list[Matrix]:
    """Return the logits of one pass for each of `SIZES`, (tokens, vocabulary) each.

    Args:
        path: the model.
        plain: whether llama.cpp must leave weights as they are, instead of repacking them for the kernels it chooses.
    """
    from redraft.backends.llama_context import LlamaContext, feed_of
    from redraft.backends.llama_model import LlamaModel
    from redraft.backends.options import LlamaOptions

    options, computed = LlamaOptions(gpu_layers=0, exact=plain), LlamaOptions(gpu_layers=0)
    with (
        closing(LlamaModel(path, options)) as model,
        closing(
            LlamaContext(model, computed, cells=max(SIZES), sequences=1, shared=False, threads=lambda: THREADS)
        ) as context,
    ):
        found = []
        for size in SIZES:
            context.remove(0)
            ids = [37 * (index + 1) % model.vocabulary_size for index in range(size)]
            found.append(context.decode(feed_of(ids, range(size), [[0]] * size, size)).copy())
        return found


if __name__ == "__main__":
    # The first model chooses kernels for the process, and those of exact passes would be others.
    used, right = (_logits(Path(sys.argv[1]), plain=plain) for plain in (False, True))
    print(max(float(abs(a - b).max() / b.std()) for a, b in zip(used, right, strict=True)), flush=True)
