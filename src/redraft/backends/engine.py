"""The bindings of llama.cpp as ``lib``, and the kernels that its installed build has.

Raises:
    ModelError: on import, if llama-cpp-python or a library that it needs is missing or broken.
"""

from __future__ import annotations

import re

from redraft.backends.library import load
from redraft.errors import ModelError

try:
    lib = load()
except (ImportError, OSError, RuntimeError) as error:
    raise ModelError(
        f"llama.cpp cannot be loaded ({error}): install it again with pip install --force-reinstall --no-cache-dir "
        "llama-cpp-python"
    ) from error


def kernels_mark() -> str:
    """Return the mark of our kernels (native/llama.cpp) in this build of llama.cpp; empty if it has none."""
    found = re.search(r"\bREDRAFT_KERNELS = (\w+)", _features())
    return found[1] if found else ""


def have_amx() -> bool:
    """Whether this build has llama.cpp's kernels for AMX, which Redraft does not use.

    With them, a row depends on the other rows of its pass.  If another library in the process, such as ONNX Runtime,
    oneDNN or MKL, configures or releases AMX's tiles, their results are wrong without an error, or the process ends.
    GCC before 13.3 miscompiles them.  Builds with our kernels leave them out.
    """
    return "AMX_INT8 = 1" in _features()


def _features() -> str:
    """Return what llama.cpp says that it was built with, such as ``AVX2 = 1 | AMX_INT8 = 1 |``."""
    return str(lib.llama_print_system_info().decode())
