"""Create a virtual environment with Redraft, and compile llama.cpp at most once per machine.

    python3 -m tools.setup_env .venv [--extras dev,eval]

llama-cpp-python is distributed as source only.  Its wheel is compiled for this processor (``-march=native``), stored in
``$XDG_CACHE_HOME/redraft/wheels`` by version, Python, processor, compilers and build options, and reused by later
environments.  A wheel is stored only if its kernels pass a self-test.  Wheels for all processors, where
tools/build_llama.py has made them, come first.  Standard library only, since nothing is
installed yet.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tools import compilers

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
BENCH, FANOUT, TRAIN = (ROOT / "packages" / f"redraft-{name}" for name in ("bench", "fanout", "train"))
NATIVE = ROOT / "native" / "llama.cpp"
ENGINE = "llama-cpp-python"
SMALL_MODEL = SOURCES / "redraft" / "models" / "redraft-demo-tiny-q8_0.gguf"

#: Prefixes of the processor features that determine compiler output.
FEATURES = ("amx", "asimd", "avx", "bf16", "bmi", "f16c", "fma", "i8mm", "sse", "sve")

#: llama.cpp installs a second copy of its libraries, its headers, and each library under three names; one copy under
#: the two names that the loader uses is enough, and saves 47 MB.
SURPLUS = "/lib;/include;*.so.*.*.*"
#: Folder of wheels for all processors, which tools/build_llama.py makes.
PORTABLE = ROOT / "packages" / "redraft-llama" / "dist"
#: Leaves out image support, almost a third of the compilation.
ONLY_TEXT = "-DLLAVA_BUILD=OFF"
#: Folder of the cache with our wheels.
WHEELS = "redraft/wheels"
#: Makes passes over few tokens faster; CMake runs the first on llama.cpp's source, and ends the build if that has
#: changed.  CMAKE_ARGS=-DREDRAFT_KERNELS=OFF leaves them out.
KERNELS = tuple(NATIVE / name for name in ("kernels.cmake", "q8_rows.h", "k_rows.h", "attention_rows.h"))

#: What CMake takes for false.
OFF = re.compile("|0|off|no|n|false|ignore|.*-notfound", re.IGNORECASE)

#: Environment variables that affect the build.
BUILD_VARIABLES = (
    "CC",
    "CFLAGS",
    "CMAKE_ARGS",
    "CMAKE_GENERATOR",
    "CPPFLAGS",
    "CUDACXX",
    "CXX",
    "CXXFLAGS",
    "LDFLAGS",
    "SKBUILD_CMAKE_ARGS",
)

#: Signals that end the program; the command that it runs ends with it.
STOPPING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

OTHER_COMPILER = "remove .venv and try another compiler, such as CXX=clang++ CC=clang"


def prepare(venv: Path, extras: str = "", *, editable: bool = True) -> None:
    """Create ``venv`` if necessary, and install Redraft in it.

    Args:
        venv: folder of the environment.
        extras: names separated by commas, of Redraft or Redraft Bench; with any, both are installed.
        editable: whether the installation uses the sources here.

    Raises:
        SystemExit: something is missing or fails; the message is one sentence.
    """
    python = venv / "bin" / "python"
    if not (python.exists() and (venv / "bin" / "pip").exists()):
        check_python()
        run([sys.executable, "-m", "venv", str(venv)], f"making {venv}")
    version = engine_version(ROOT / "constraints.txt")
    os.environ.pop("LLAMA_CPP_LIB_PATH", None)  # names another library than the environment's
    if installed_engine(python, kernels_mark(os.environ)) != version:
        install_engine(python, version)
    options = ["--constraint", str(ROOT / "constraints.txt")]
    for target in targets(extras):
        options += ["--editable", target] if editable else [target]
    run([*pip(python, "install"), *options], f"installing redraft{extras and f'[{extras}]'} into {venv}")
    if extras and "train" not in extras.split(","):  # its help is a page of the documentation; its libraries are large
        run([*pip(python, "install"), "--no-deps", "--editable", str(TRAIN)], "installing redraft-train")


def targets(extras: str) -> list[str]:
    """Return what pip installs: this project, and with extras Redraft Bench too, each with those that it has.

    The extras ``fanout``, ``ray`` and ``train`` stand for Redraft Fanout, also with Ray, and for Redraft Train.
    """
    if not extras:
        return [str(ROOT)]
    bench = tomllib.loads((BENCH / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    packages = {"fanout": str(FANOUT), "ray": f"{FANOUT}[ray]", "train": str(TRAIN)}
    names = extras.split(",")
    found = []
    for folder, chosen in (
        (ROOT, [name for name in names if name not in bench and name not in packages]),
        (BENCH, [name for name in names if name in bench]),
    ):
        found.append(f"{folder}[{','.join(chosen)}]" if chosen else str(folder))
    return found + [target for name, target in packages.items() if name in names]


def check_python() -> None:
    """Check that this Python can create an environment; otherwise say what is needed."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this runs before anything has looked at requires-python
        raise SystemExit(
            f"Python must be 3.11 or newer, not {platform.python_version()}: say which with PYTHON=python3.11"
        )
    if find_spec("ensurepip") is None:
        raise SystemExit("Python's venv module is not complete: run `sudo apt-get install python3-venv`")


def pip(python: Path, command: str) -> list[str]:
    """Return the start of a pip command line."""
    quiet = ["--quiet", "--disable-pip-version-check"]
    return [str(python), "-m", "pip", command, *quiet, *(["--use-pep517"] if command == "install" else [])]


def engine_version(constraints: Path) -> str:
    """Return the version of llama-cpp-python pinned in ``constraints``."""
    pin = re.search(rf"^{ENGINE}==(\S+)", constraints.read_text(encoding="utf-8"), re.MULTILINE)
    if not pin:
        raise SystemExit(f"{constraints.name} must hold a line {ENGINE}==VERSION")
    return pin[1]


#: Prints the version of llama.cpp's bindings, where they were installed from, and the features of the library.
_INSTALLED = f"""
import sys
from importlib.metadata import distribution
found = distribution('{ENGINE}')
print(found.version)
print(found.read_text('direct_url.json') or '', flush=True)
sys.path.append({str(SOURCES)!r})
from redraft.backends.library import load
print(load().llama_print_system_info().decode())
"""


def installed_engine(python: Path, mark: str) -> str:
    """Return the version of llama-cpp-python in an environment.

    Args:
        python: the environment's interpreter.
        mark: the mark of the kernels that a wheel of ours must have; others are taken as they are.

    Returns:
        The version; empty if there is none, or a wheel of ours with other kernels.
    """
    found = subprocess.run([python, "-c", _INSTALLED], capture_output=True, text=True, check=False).stdout
    version, _, more = found.partition("\n")
    origin, _, features = more.partition("\n")
    marked = re.search(r"REDRAFT_KERNELS = (\w+)", features)
    ours = any(folder in origin for folder in (f"{WHEELS}/{ENGINE}-", "packages/redraft-llama/dist"))
    return "" if ours and mark != (marked[1] if marked else "") else version


def kernels_mark(environment: Mapping[str, str]) -> str:
    """Return the mark of a library that is built now, as kernels.cmake makes it; empty if it has no kernels."""
    options = [*environment.get("SKBUILD_CMAKE_ARGS", "").split(";"), *shlex.split(environment.get("CMAKE_ARGS", ""))]
    switches = re.findall(r"^-D\n?REDRAFT_KERNELS(?::\w+)?=(.*)$", "\n".join(options), re.MULTILINE)
    if switches and OFF.fullmatch(switches[-1]):
        return ""
    digests = "".join(hashlib.sha256(path.read_bytes()).hexdigest() for path in KERNELS)
    return hashlib.sha256(digests.encode()).hexdigest()[:8]


def build_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for compiling llama.cpp: the caller's, with settings for a small and correct wheel."""
    return {
        **environment,
        "SKBUILD_WHEEL_EXCLUDE": SURPLUS,
        "CMAKE_ARGS": f"{ONLY_TEXT} {_with_kernels()} {environment.get('CMAKE_ARGS', '')}".strip(),
    }


def _with_kernels() -> str:
    """Return the build option that adds `KERNELS`."""
    return f"-DCMAKE_PROJECT_llama_cpp_INCLUDE={shlex.quote(str(KERNELS[0]))}"


def wheel_folder(version: str, build: Mapping[str, str]) -> Path:
    """Return the folder of the wheel for this Python, processor, compilers and options."""
    known = [compilers.identity(compilers.compiler(language, build)) for language in compilers.LANGUAGES]
    # Where this clone is does not matter.
    options = [f"{name}={build.get(name, '').replace(_with_kernels(), '')}" for name in BUILD_VARIABLES]
    kernels = [path.read_text() for path in KERNELS]
    digest = hashlib.sha256("\n".join((features(), *known, *options, *kernels)).encode()).hexdigest()[:8]
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}-{sys.platform}-{platform.machine()}-{digest}"
    cache: Path | None = redraft("folders").cache_folder(build)
    if cache is None:
        raise SystemExit("there is no home directory to keep llama.cpp in once it is compiled: set XDG_CACHE_HOME")
    return cache.parent / WHEELS / f"{ENGINE}-{version}" / tag


def features() -> str:
    """Return the processor features that matter to a compiler, or its name if the system does not list them."""
    here = redraft("backends.machine").processor()
    return " ".join(sorted(name for name in here.features if name.startswith(FEATURES))) or here.name


def redraft(module: str) -> Any:
    """Import a module of redraft from the sources; it may need only the standard library."""
    if str(SOURCES) not in sys.path:
        sys.path.append(str(SOURCES))
    return import_module(f"redraft.{module}")


def install_engine(python: Path, version: str) -> None:
    """Install llama.cpp for all processors, or the wheel stored for this one; otherwise compile, test and store it."""
    if not any(os.environ.get(name) for name in BUILD_VARIABLES) and (wheels := portable_wheels(version)):
        _install(python, wheels, f"installing {ENGINE} {version}, compiled for all processors")
        verdict = self_test(python)
        if verdict.kernels == "right":
            return
        print(f"* it is compiled here, since its self-test found: {verdict.kernels} ({verdict.detail})", flush=True)
    build = build_environment(os.environ)
    folder = wheel_folder(version, build)
    for kept in folder.glob("*.whl"):
        _install(python, [kept], f"installing {ENGINE} {version} from the wheel in {folder}")
        return
    if not compilers.compiler("CXX", build):
        raise SystemExit("a C++ compiler is needed to build llama.cpp: run `sudo apt-get install g++`")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        # Bypasses pip's cache, which may have a wheel for another processor.
        command = [*pip(python, "wheel"), "--no-deps", "--no-cache-dir", "--wheel-dir", scratch, f"{ENGINE}=={version}"]
        run(command, "compiling llama.cpp once, two to four minutes on two cores", environment=build)
        built = next(Path(scratch).glob("*.whl"))
        _install(python, [built], f"installing {ENGINE} {version}")
        if installed_engine(python, kernels_mark(os.environ)) != version:
            raise SystemExit(
                "llama.cpp has been compiled without the kernels of native/llama.cpp, which the build has not read, so "
                "look for -DCMAKE_PROJECT_llama_cpp_INCLUDE in CMAKE_ARGS and SKBUILD_CMAKE_ARGS; "
                "CMAKE_ARGS=-DREDRAFT_KERNELS=OFF does without them"
            )
        if passes_self_test(python):
            built.replace(folder / built.name)
            print(f"* the wheel is kept in {folder}", flush=True)


def _install(python: Path, wheels: Sequence[Path], message: str) -> None:
    """Install wheels of llama.cpp in the place of others, which pip would keep if they are of the same version."""
    for name in (ENGINE, "redraft-llama"):
        if next(python.parent.parent.glob(f"lib/python*/site-packages/{name.replace('-', '_')}-*.dist-info"), None):
            run([str(python), "-m", "pip", "uninstall", "--yes", name], f"removing {name}")
    run([*pip(python, "install"), *map(str, wheels)], message)


def portable_wheels(version: str, folder: Path = PORTABLE) -> list[Path]:
    """Return the wheels in a folder of a library for all processors with today's kernels; none if it cannot run here.

    They are what tools/build_llama.py makes: the library, and bindings without one.
    """
    glibc = tuple(int(part) for part in re.findall(r"\d+", platform.libc_ver()[1])[:2])
    for library in folder.glob(f"redraft_llama-{version}-py3-none-manylinux_*_{platform.machine()}.whl"):
        needed = tuple(int(part) for part in library.name.split("manylinux_")[1].split("_")[:2])
        with zipfile.ZipFile(library) as wheel:
            backends = [name for name in wheel.namelist() if "ggml-cpu-" in name]
            ours = all(kernels_mark({}).encode() in wheel.read(name) for name in backends)
        bindings = sorted(folder.glob(f"llama_cpp_python-{version}-py3-*.whl"))
        if needed <= glibc and ours and bindings:
            return [library, bindings[0]]
    return []


def self_test(python: Path) -> Any:
    """Return the `redraft.backends.selftest.SelfTestResult` of the llama.cpp of an environment."""
    return redraft("backends.selftest").examine(SMALL_MODEL, python=str(python), path=[str(SOURCES)])


def passes_self_test(python: Path) -> bool:
    """Whether the llama.cpp that was compiled for an environment computes correctly; says if that is unknown.

    Raises:
        SystemExit: it does not, and was removed.
    """
    verdict = self_test(python)
    if verdict.kernels == "untested":
        print(f"* the wheel is not kept, since it could not be tested: {verdict.detail}", flush=True)
    elif verdict.kernels != "right":
        run([str(python), "-m", "pip", "uninstall", "--yes", ENGINE], f"removing {ENGINE}")
        found = f"{verdict.kernels}, {verdict.detail}"
        raise SystemExit(f"llama.cpp as compiled fails its self-test on this processor ({found}): {OTHER_COMPILER}")
    return bool(verdict.kernels == "right")


def run(
    command: Sequence[str], message: str, *, environment: Mapping[str, str] | None = None, beat_s: float = 25
) -> None:
    """Run a command; print what it does, and every ``beat_s`` seconds that it is still running.

    Raises:
        SystemExit: it failed, after its last lines were printed, or it was stopped by Ctrl-C.
    """
    print(f"* {message}", flush=True)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        process = None
        # A signal that arrives while the process starts waits until the process is known, and can be killed.
        arrived: list[int] = []
        handlers = {each: signal.signal(each, lambda number, _: arrived.append(number)) for each in STOPPING}
        try:
            try:
                # In a separate session, so that its child processes, such as a compiler, end with it.
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
                )
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
                for missed in arrived:
                    signal.raise_signal(missed)
            status = wait(process, beat_s)
        except KeyboardInterrupt:
            print(f"\nstopped while {message}: the same command begins this step again", file=sys.stderr)
            raise SystemExit(130) from None
        finally:
            if process is not None:
                with suppress(ProcessLookupError):  # it has ended already
                    os.killpg(process.pid, signal.SIGKILL)
        if status:
            log.seek(0)
            print("".join(log.readlines()[-40:]), file=sys.stderr)
            raise SystemExit(f"this failed, see above: {message}")


def wait(process: subprocess.Popen[bytes], beat_s: float) -> int:
    """Return the exit status of a process; every ``beat_s`` seconds, print how long it has been running."""
    start = time.monotonic()
    while True:
        try:
            return process.wait(timeout=beat_s)
        except subprocess.TimeoutExpired:
            minutes, seconds = divmod(round(time.monotonic() - start), 60)
            print(f"  still at it after {minutes} min {seconds:02d} s", flush=True)


if __name__ == "__main__":
    for stopping in (signal.SIGHUP, signal.SIGTERM):  # child processes end with it
        signal.signal(stopping, lambda number, _: sys.exit(128 + number))
    parser = argparse.ArgumentParser(description="Make a virtual environment with Redraft in it.")
    parser.add_argument("venv", type=Path)
    parser.add_argument("--extras", default="", help="optional dependencies, with commas between")
    arguments = parser.parse_args()
    prepare(arguments.venv, arguments.extras)
