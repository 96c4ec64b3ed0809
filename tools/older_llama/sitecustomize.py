"""On the path of Python, lets llama-cpp-python load a llama.cpp that lacks functions which Redraft does not use.

`tools.test_gpu` needs it for a prebuilt library, which is a little older than the bindings.
"""

import ctypes
from typing import Any


class _Lenient(ctypes.CDLL):
    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if not name.startswith(("llama_", "ggml_", "mtmd_")):
                raise
            return ctypes.CFUNCTYPE(None)(lambda: None)


ctypes.CDLL = _Lenient  # type: ignore[misc]
