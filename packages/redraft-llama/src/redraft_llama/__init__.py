"""llama.cpp with Redraft's kernels, compiled for all processors of a platform."""

from pathlib import Path

#: Folder of the libraries, for ``LLAMA_CPP_LIB_PATH``.
LIBRARIES = Path(__file__).parent / "lib"
