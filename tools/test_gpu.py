"""Run the tests of GPUs: on the installed llama.cpp if it was built for one, otherwise on a prebuilt one for Vulkan.

    make test-gpu

The prebuilt library is that of npm's @node-llama-cpp/linux-x64-vulkan.  It needs a driver: that of a card, or, in
software and slow, that of Debian's mesa-vulkan-drivers.  GGML_VK_VISIBLE_DEVICES chooses the device.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

PACKAGE, VERSION = "@node-llama-cpp/linux-x64-vulkan", "3.22.1"
#: Where it is unpacked.
FOLDER = Path(sys.prefix) / f"vulkan-{VERSION}"
#: Names under which the bindings look for libraries, and the beginnings of those of the package.
LINKS = {"libllama.so": "libllama.vulkan.", "libggml.so": "libggml.vulkan."}
SUPPORTED = "import llama_cpp; raise SystemExit(not llama_cpp.llama_supports_gpu_offload())"


def fetched(folder: Path = FOLDER) -> Path:
    """Return the folder of the prebuilt library, which npm downloads the first time."""
    libraries = folder / "package" / "bins" / "linux-x64-vulkan"
    if not libraries.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"], cwd=folder, check=True)
        (archive,) = folder.glob("*.tgz")
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
    for link, begins in LINKS.items():
        (found,) = libraries.glob(f"{begins}*")
        if not (libraries / link).exists():
            (libraries / link).symlink_to(found.name)
    return libraries


def environment() -> dict[str, str]:
    """Return the environment of the tests."""
    if subprocess.run([sys.executable, "-c", SUPPORTED], check=False).returncode == 0:
        return dict(os.environ)
    shim = str(Path(__file__).parent / "older_llama")
    paths = [shim, *filter(None, [os.environ.get("PYTHONPATH")])]
    chosen = {"LLAMA_CPP_LIB_PATH": str(fetched()), "PYTHONPATH": os.pathsep.join(paths)}
    return {"GGML_VK_VISIBLE_DEVICES": "0", **os.environ, **chosen}


def main(arguments: list[str]) -> int:
    """Run pytest; return its exit status."""
    options = ("-o", "faulthandler_timeout=1800", "-m", "gpu")  # a pass in software takes seconds
    command = [sys.executable, "-m", "pytest", *options, "tests/backends/test_gpu.py", *arguments]
    return subprocess.run(command, env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
