"""Load llama.cpp's library: the one that LLAMA_CPP_LIB_PATH names, that of redraft-llama, or the bindings' own.

redraft-llama (packages/redraft-llama) has a backend for each kind of processor, of which llama.cpp loads the fastest
one that runs here.  Uses only the standard library, because tools/setup_env.py tests a library before anything else is
installed.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

VARIABLE = "LLAMA_CPP_LIB_PATH"
_SILENT = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)


@cache
def load() -> ModuleType:
    """Return llama.cpp's bindings, with its backends.

    Raises:
        ImportError, OSError, RuntimeError: the bindings or a library are missing or broken.
    """
    folder = library_folder()
    if folder is not None:
        os.environ[VARIABLE] = str(folder)
    import llama_cpp

    if folder is not None and any(folder.glob("*ggml-cpu-*")):
        ggml = next(path for path in sorted(folder.glob("*ggml.*")) if path.suffix in (".so", ".dll", ".dylib"))
        loaded = ctypes.CDLL(str(ggml))
        loaded.ggml_log_set(_SILENT, None)  # it would print which backend it has loaded
        loaded.ggml_backend_load_all_from_path(os.fsencode(folder))
    return llama_cpp


def library_folder() -> Path | None:
    """Return the folder of the library; None for the bindings' own."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen)
    spec = find_spec("redraft_llama")
    return Path(spec.origin).parent / "lib" if spec and spec.origin else None
