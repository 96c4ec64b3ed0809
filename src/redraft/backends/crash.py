"""Report a crash of native code in one sentence instead of "Segmentation fault"."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, ParamSpec, TypeVar

from redraft.errors import ModelError

#: Signals of a process's own faults that this system has.
SIGNALS = [
    getattr(signal, name) for name in ("SIGSEGV", "SIGILL", "SIGBUS", "SIGFPE", "SIGABRT") if hasattr(signal, name)
]
WAY_OUT = (
    "compile llama.cpp on this machine (pip install --force-reinstall --no-deps --no-cache-dir --no-binary "
    "llama-cpp-python llama-cpp-python), or try --exact, and --gpu-layers 0 where there is a GPU"
)
#: At least the size of `struct sigaction` on any system.
_ACTION_SIZE = 512

Given = ParamSpec("Given")
Result = TypeVar("Result")

_WINDOWS = os.name == "nt"
_lock = threading.Lock()
_doing: list[str] = []
_before: dict[int, Any] = {}


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """End the process with one sentence on standard error if a fault occurs in the block.

    The exit status is 128 plus the signal number, as in shells.  After the block, the previous fault handlers, such as
    faulthandler, are restored.

    Args:
        doing: what the block does, such as "loading llama.cpp".

    Raises:
        ModelError: a fault occurred on Windows, where ctypes turns it into an exception.
    """
    _enter(doing)
    try:
        yield
    except OSError as error:
        if _WINDOWS and str(error).startswith("exception:"):
            raise ModelError(_sentence(str(error).removeprefix("exception: "), doing)) from error
        raise
    finally:
        _leave(doing)


def explained_once(function: Callable[Given, Result], doing: str) -> Callable[Given, Result]:
    """Return a function whose first call is `explained`."""
    first = True

    def call(*arguments: Given.args, **named: Given.kwargs) -> Result:
        nonlocal first
        if not first:
            return function(*arguments, **named)
        with explained(doing):
            result = function(*arguments, **named)
        first = False
        return result

    return call


def _sentence(fault: str, doing: str) -> str:
    return f"llama.cpp crashed ({fault}) while {doing}: {WAY_OUT}"


def _end(number: int) -> None:
    """Runs in the faulting thread and does not return."""
    sentence = _sentence(signal.Signals(number).name, ", ".join(_doing))
    os.write(2, f"redraft: {sentence}\n".encode())
    os._exit(128 + number)


_handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(_end)


def _enter(doing: str) -> None:
    with _lock:
        _doing.append(doing)
        if len(_doing) == 1 and not _WINDOWS:
            for number in SIGNALS:
                _before[number] = ctypes.create_string_buffer(_ACTION_SIZE)
                _libc().sigaction(number, None, _before[number])
                _libc().signal(number, _handler)


def _leave(doing: str) -> None:
    with _lock:
        _doing.remove(doing)
        if not _doing and _before:
            for number in SIGNALS:
                _libc().sigaction(number, _before.pop(number), None)


@cache
def _libc() -> Any:
    """Return the C library; Python's signal module cannot handle faults, since it waits for the next bytecode."""
    libc = ctypes.CDLL(None)
    libc.signal.restype = ctypes.c_void_p
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    libc.sigaction.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    return libc
