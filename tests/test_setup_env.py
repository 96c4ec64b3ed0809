"""The scripts that install Redraft: what they keep and print, and when they stop."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from contextlib import suppress
from importlib.metadata import distribution
from pathlib import Path

import pytest

from redraft.backends import engine, machine, selftest
from redraft.backends.selftest import Kernels, SelfTestResult
from tests.programs import program
from tests.waiting import eventually
from tools import build_llama, compilers, fetch_tokenizers, setup_env

ROOT = Path(__file__).parents[1]


def test_targets() -> None:
    """Extras of this project, of Redraft Bench, and those that stand for packages of their own."""
    root, bench = str(setup_env.ROOT), str(setup_env.BENCH)
    assert setup_env.targets("") == [root]
    assert setup_env.targets("dev,fanout,serve,tasks") == [
        f"{root}[dev,serve]",
        f"{bench}[tasks]",
        str(setup_env.FANOUT),
    ]
    assert setup_env.targets("train") == [root, bench, str(setup_env.TRAIN)]


def test_pin_of_engine_is_read_from_constraints(tmp_path: Path) -> None:
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("# llama-cpp-python==0\ntorch==2.13.0\nllama-cpp-python==1.2.3\n", encoding="utf-8")
    assert setup_env.engine_version(constraints) == "1.2.3"
    constraints.write_text("torch==2.13.0\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="must hold a line llama-cpp-python==VERSION"):
        setup_env.engine_version(constraints)


def test_features_are_those_that_decide_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    some = machine.Processor("Some", frozenset({"vmx", "sse2", "avx2", "rep_good"}))
    monkeypatch.setattr(machine, "processor", lambda: some)
    assert setup_env.features() == "avx2 sse2"
    monkeypatch.setattr(machine, "processor", lambda: machine.Processor("Apple M2", frozenset()))
    assert setup_env.features() == "Apple M2"


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """A compiler with the version that the test asks for, first on the path as cc and c++."""
    compiler = Compiler(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{compiler.folder}{os.pathsep}{os.environ['PATH']}")
    for name in setup_env.BUILD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return compiler


class Compiler:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.gcc("12.2.0")

    def gcc(self, version: str) -> None:
        """Become a GCC of this version."""
        for name in ("cc", "c++"):
            (self.folder / name).write_text(f"#!/bin/sh\necho '{name} {version}'\n")
            (self.folder / name).chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="the compiler is a shell script")
class TestBuild:
    def test_folders_of_wheels(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: Compiler) -> None:
        cache = {"XDG_CACHE_HOME": str(tmp_path)}
        folder = setup_env.wheel_folder("1.0", cache)
        assert folder.is_relative_to(tmp_path / "redraft" / "wheels")
        assert folder == setup_env.wheel_folder("1.0", cache)
        assert folder != setup_env.wheel_folder("1.1", cache)
        for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CMAKE_ARGS"):
            assert folder != setup_env.wheel_folder("1.0", {**cache, name: "c++"}), name
        compiler.gcc("12.2.1")
        newer = setup_env.wheel_folder("1.0", cache)
        assert folder != newer
        monkeypatch.setattr(setup_env, "features", lambda: "avx2")
        assert newer != setup_env.wheel_folder("1.0", cache)

    def test_compiler_is_one_that_cmake_takes(self, compiler: Compiler) -> None:
        assert compilers.compiler("CXX", {}) == ["c++"]
        assert compilers.compiler("CXX", {"CXX": "ccache clang++"}) == ["ccache", "clang++"]
        chosen = {"CXX": "g++", "CMAKE_ARGS": "-DX=1 -DCMAKE_CXX_COMPILER:STRING=/opt/g++-13 -DY=2"}
        assert compilers.compiler("CXX", chosen) == ["/opt/g++-13"]
        assert compilers.compiler("C", {"CC": "", "CXX": "g++"}) == ["cc"]
        assert compilers.identity(["no-such-compiler"]) == ""
        assert compilers.identity([]) == ""


class TestEngine:
    @pytest.fixture
    def built(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What was run, with a build that leaves an empty wheel."""
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setenv("CMAKE_ARGS", "-DGGML_CUDA=on")
        done: list[str] = []

        def run(command: list[str], message: str, *, environment: dict[str, str] | None = None) -> None:
            done.append(message)
            if "wheel" in command:
                assert environment is not None
                assert environment["SKBUILD_WHEEL_EXCLUDE"] == setup_env.SURPLUS
                first, kernels, last = environment["CMAKE_ARGS"].split()
                assert (first, last) == ("-DLLAVA_BUILD=OFF", "-DGGML_CUDA=on")
                assert Path(kernels.removeprefix("-DCMAKE_PROJECT_llama_cpp_INCLUDE=")) == setup_env.KERNELS[0]
                (Path(command[command.index("--wheel-dir") + 1]) / "engine.whl").touch()

        monkeypatch.setattr(setup_env, "run", run)
        monkeypatch.setattr(setup_env, "installed_engine", lambda python, mark: "1.0")
        monkeypatch.setattr(compilers, "compiler", lambda language, environment: ["c++"])
        return done

    @pytest.fixture
    def folder(self, built: list[str]) -> Path:
        return setup_env.wheel_folder("1.0", setup_env.build_environment(os.environ))

    def find(self, monkeypatch: pytest.MonkeyPatch, verdict: SelfTestResult) -> None:
        monkeypatch.setattr(selftest, "examine", lambda model, python, path: verdict)

    def test_right_wheel_is_kept_and_not_built_again(
        self, monkeypatch: pytest.MonkeyPatch, built: list[str], folder: Path
    ) -> None:
        self.find(monkeypatch, SelfTestResult("right"))
        for _ in range(2):
            setup_env.install_engine(Path("python"), "1.0")
        assert [path.name for path in folder.iterdir()] == ["engine.whl"]
        assert built == [
            "compiling llama.cpp once, two to four minutes on two cores",
            "installing llama-cpp-python 1.0",
            f"installing llama-cpp-python 1.0 from the wheel in {folder}",
        ]

    def test_other_build_of_same_version_is_replaced(
        self, monkeypatch: pytest.MonkeyPatch, built: list[str], folder: Path, tmp_path: Path
    ) -> None:
        """Pip does not install a wheel of a version that is there, and the old kernels remained."""
        self.find(monkeypatch, SelfTestResult("right"))
        (tmp_path / "venv/lib/python3.11/site-packages/llama_cpp_python-1.0.dist-info").mkdir(parents=True)
        for _ in range(2):
            setup_env.install_engine(tmp_path / "venv/bin/python", "1.0")
        assert [message.split(" 1.0")[0] for message in built] == [
            "compiling llama.cpp once, two to four minutes on two cores",
            *["removing llama-cpp-python", "installing llama-cpp-python"] * 2,
        ]

    def test_wheel_that_could_not_be_tested_is_installed_but_not_kept(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], built: list[str], folder: Path
    ) -> None:
        self.find(monkeypatch, SelfTestResult("untested", "SIGKILL"))
        setup_env.install_engine(Path("python"), "1.0")
        assert built[-1] == "installing llama-cpp-python 1.0"
        assert list(folder.iterdir()) == []
        assert "not kept, since it could not be tested: SIGKILL" in capsys.readouterr().out

    def test_wheel_without_kernels_is_not_kept(
        self, monkeypatch: pytest.MonkeyPatch, built: list[str], folder: Path
    ) -> None:
        """An include of the user's own replaces that of the kernels."""
        monkeypatch.setattr(setup_env, "installed_engine", lambda python, mark: "")
        with pytest.raises(SystemExit, match="compiled without the kernels of native/llama.cpp"):
            setup_env.install_engine(Path("python"), "1.0")
        assert list(folder.iterdir()) == []

    def test_library_from_elsewhere_is_not_looked_at(self, monkeypatch: pytest.MonkeyPatch, built: list[str]) -> None:
        """A variable that names another library made every run install the wheel again."""
        monkeypatch.setenv("LLAMA_CPP_LIB_PATH", "/elsewhere")
        seen = []
        monkeypatch.setattr(setup_env, "installed_engine", lambda *_: seen.append("LLAMA_CPP_LIB_PATH" in os.environ))
        monkeypatch.setattr(setup_env, "install_engine", lambda *_: None)
        setup_env.prepare(Path("venv"))
        assert seen == [False]

    def test_wheels_for_all_processors_that_crash(self, monkeypatch: pytest.MonkeyPatch, built: list[str]) -> None:
        """On a processor for which they have no code, one is compiled here."""
        verdicts = [SelfTestResult("crash", "SIGILL"), SelfTestResult("right")]
        monkeypatch.setattr(selftest, "examine", lambda *_, **__: verdicts.pop(0))
        monkeypatch.setattr(setup_env, "portable_wheels", lambda _: [Path("library.whl"), Path("bindings.whl")])
        monkeypatch.setattr(setup_env, "BUILD_VARIABLES", ())
        setup_env.install_engine(Path("python"), "1.0")
        assert [message.partition(" ")[0] for message in built] == ["installing", "compiling", "installing"]

    @pytest.mark.parametrize("kernels", ["wrong", "crash", "hang"])
    def test_library_that_fails_is_removed(
        self, monkeypatch: pytest.MonkeyPatch, built: list[str], folder: Path, kernels: Kernels
    ) -> None:
        self.find(monkeypatch, SelfTestResult(kernels, "SIGILL"))
        with pytest.raises(SystemExit, match=rf"fails its self-test on this processor \({kernels}, SIGILL\): remove"):
            setup_env.install_engine(Path("python"), "1.0")
        assert built[-1] == "removing llama-cpp-python"
        assert list(folder.iterdir()) == []


KERNELS = setup_env.KERNELS[0]
#: Files of llama.cpp that get kernels.
CHANGED = ["sgemm.cpp", "repack.cpp", "tiled.cpp", "ops.cpp", "ggml-cpu.cpp"]


class TestKernels:
    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        """What of llama.cpp's source the kernels replace, and nothing else."""
        script = re.split(r"_open\(\"(.*?)\" \"\w+\"\)", KERNELS.read_text(encoding="utf-8"))
        for name, steps in zip(script[1::2], script[2::2], strict=True):
            file = tmp_path / "vendor/llama.cpp/ggml/src/ggml-cpu" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(re.findall(r"_replace\(\[=\[(.*?)\]=\]", steps, re.DOTALL)), encoding="utf-8")
        (tmp_path / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.21)\nproject(llama_cpp NONE)\n"
            'set(LLAMA_BUILD_COMMON ON CACHE BOOL "" FORCE)\nmessage(STATUS "common: ${LLAMA_BUILD_COMMON}")\n'
        )
        return tmp_path

    def build(self, tree: Path, *options: str, changes: Path = KERNELS) -> subprocess.CompletedProcess[str]:
        include = f"-DCMAKE_PROJECT_llama_cpp_INCLUDE={changes}"
        command = [program("cmake"), "-S", str(tree), "-B", str(tree / "build"), include, *options]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)

    def sources(self, tree: Path) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in (tree / "vendor").rglob("*") if path.is_file()}

    def test_source_is_replaced_and_marked(self, tree: Path) -> None:
        before = self.sources(tree)
        assert len([name for name in before if name.endswith(".cpp")]) == len(CHANGED)
        built = self.build(tree)
        assert built.returncode == 0 and "common: OFF" in built.stdout
        after = self.sources(tree)
        assert all(before[name] != after[name] for name in before if name.endswith(".cpp"))
        assert {path.name for path in setup_env.KERNELS[1:]} <= after.keys()
        assert f'{{ "REDRAFT_KERNELS", "{setup_env.kernels_mark({})}" }}' in after["ggml-cpu.cpp"]
        assert self.build(tree).returncode == 0 and self.sources(tree) == after

    def test_portable_build(self, tree: Path) -> None:
        changes = KERNELS.with_name("portable.cmake")
        script = re.split(r"_open\(\"(.*?)\" \"\w+\"\)", changes.read_text(encoding="utf-8"))
        olds = [re.findall(r"_replace\(\[=\[(.*?)\]=\]", steps, re.DOTALL) for steps in script[2::2]]
        files = [tree / "vendor/llama.cpp/ggml/src/ggml-cpu" / name for name in script[1::2]]
        for file, texts in zip(files, olds, strict=True):
            file.write_text("\n".join(texts), encoding="utf-8")
        for _ in range(2):  # the second finds it done
            assert self.build(tree, changes=changes).returncode == 0
            waiting, variants = (file.read_text(encoding="utf-8") for file in files)
            assert waiting.count("ggml_cond_wait(") == waiting.count("ggml_cond_broadcast(") == 1
            assert not any(name in variants for name in ("sandybridge", "piledriver", "sapphirerapids"))
        assert "REDRAFT_KERNELS" in self.sources(tree)["ggml-cpu.cpp"]
        files[0].write_text("// new", encoding="utf-8")
        assert "do not fit this version" in self.build(tree, changes=changes).stderr

    @pytest.mark.parametrize("name", CHANGED)
    @pytest.mark.parametrize("change", ["gone", "twice", "missing"])
    def test_changed_source_ends_build(self, tree: Path, name: str, change: str) -> None:
        (file,) = (tree / "vendor").rglob(name)
        text = file.read_text(encoding="utf-8")
        file.write_text({"gone": "// new", "twice": f"{text}\n{text}", "missing": ""}[change], encoding="utf-8")
        if change == "missing":
            file.unlink()
        done = self.build(tree)
        assert done.returncode != 0
        said = " ".join(done.stderr.split())
        assert f"{name} does not have" in said and "CMAKE_ARGS=-DREDRAFT_KERNELS=OFF builds without" in said
        assert self.build(tree, "-DREDRAFT_KERNELS=OFF").returncode == 0

    def test_switch(self, tree: Path) -> None:
        before = self.sources(tree)
        assert self.build(tree, "-DREDRAFT_KERNELS=OFF").returncode == 0
        assert self.sources(tree) == before

    @pytest.mark.parametrize(
        "options",
        [
            "-DREDRAFT_KERNELS=OFF",
            "-DX=1 -DREDRAFT_KERNELS:BOOL=off",
            "-D REDRAFT_KERNELS=OFF",
            "-DREDRAFT_KERNELS=n",
            "-DREDRAFT_KERNELS=",
            "'-DREDRAFT_KERNELS:STRING=X-NOTFOUND'",
            "-DREDRAFT_KERNELS=ON -DREDRAFT_KERNELS=0",
            "-DREDRAFT_KERNELS=OFF -DREDRAFT_KERNELS=1",
            "-DREDRAFT_KERNELS=off-ish",
            "-DX=OFF",
        ],
    )
    def test_switch_is_read_as_cmake_reads_it(self, tree: Path, options: str) -> None:
        built = self.build(tree, *shlex.split(options))
        without = "keeps its own kernels" in built.stdout
        assert (setup_env.kernels_mark({"CMAKE_ARGS": options}) == "") is without
        other = ";".join(shlex.split(options.replace("-D ", "-D")))
        assert (setup_env.kernels_mark({"SKBUILD_CMAKE_ARGS": other}) == "") is without


@pytest.mark.parametrize(
    ("origin", "features", "found"),
    [
        ("redraft/wheels/llama-cpp-python-1.0/cp311/a.whl", "REDRAFT_KERNELS = 1234abcd | AVX2 = 1", "1.0"),
        ("redraft/wheels/llama-cpp-python-1.0/cp311/a.whl", "REDRAFT_KERNELS = abcd1234 | AVX2 = 1", ""),
        ("redraft/wheels/llama-cpp-python-1.0/cp311/a.whl", "AVX2 = 1", ""),  # before there were marks
        ("downloads/llama_cpp_python-1.0.whl", "CUDA = 1", "1.0"),  # chosen by the user
    ],
)
def test_wheel_of_ours_with_other_kernels_is_outdated(tmp_path: Path, origin: str, features: str, found: str) -> None:
    """A stand-in for the environment's interpreter, which has this wheel."""
    about = tmp_path / "llama_cpp_python-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: llama-cpp-python\nVersion: 1.0\n")
    (about / "direct_url.json").write_text(f'{{"url": "file:///home/me/.cache/{origin}"}}')
    (tmp_path / "llama_cpp.py").write_text(f"def llama_print_system_info():\n    return b'{features}'\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert setup_env.installed_engine(python, "1234abcd") == found


def test_wheels_for_all_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    mark = setup_env.kernels_mark({})
    bindings = tmp_path / "llama_cpp_python-1.2.3-py3-none-any.whl"

    def library(glibc: str, *marks: str) -> Path:
        made = tmp_path / f"redraft_llama-1.2.3-py3-none-manylinux_{glibc}_x86_64.whl"
        with zipfile.ZipFile(made, "w") as wheel:
            for number, each in enumerate(marks):
                wheel.writestr(f"redraft_llama/lib/libggml-cpu-{number}.so", f"...{each}...")
        return made

    def found() -> list[Path]:
        return setup_env.portable_wheels("1.2.3", tmp_path)

    assert found() == []
    made = library("2_34", mark, mark)
    assert found() == []  # without bindings
    bindings.touch()
    assert found() == [made, bindings]
    assert setup_env.portable_wheels("1.2.4", tmp_path) == []
    library("2_34", mark, "00000000")  # a backend with other kernels
    assert found() == []
    made.unlink()
    library("2_39", mark)  # made where the C library is newer
    assert found() == []


def test_source_that_was_unpacked_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that was stopped meanwhile is resumed with the whole source, of the version that is wanted."""

    def download(command: list[str], **_: object) -> None:
        version = command[-1].partition("==")[2]
        with tarfile.open(tmp_path / f"llama_cpp_python-{version}.tar.gz", "w:gz") as archive:
            for name in ("a", "b"):
                archive.addfile(tarfile.TarInfo(f"llama_cpp_python-{version}/{name}"))

    def stop(archive: tarfile.TarFile, folder: Path, **_: object) -> None:
        archive.extract(archive.getmembers()[0], folder)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", download)
    for version in ("1.2.3", "1.2.4"):
        with monkeypatch.context() as stopped:
            stopped.setattr(tarfile.TarFile, "extractall", stop)
            with pytest.raises(KeyboardInterrupt):
                build_llama.fetch(version, tmp_path)
        assert sorted(path.name for path in build_llama.fetch(version, tmp_path).iterdir()) == ["a", "b"]


def test_libraries_look_for_others_in_their_own_folder(tmp_path: Path) -> None:
    """An empty name in this list is the folder in which a program runs, whose libraries were loaded."""
    places = {"right": b"$ORIGIN", "wrong": b":$ORIGIN", "none": b"", "built": b"$ORIGIN:/build/bin:"}
    for name, place in places.items():
        (tmp_path / name).write_bytes(b"\x7fELF\0libm.so.6\0" + place + b"\0.text\0")
    assert build_llama.looking_elsewhere(sorted(tmp_path.iterdir())) == ["built", "none", "wrong"]


def test_this_build_has_its_kernels() -> None:
    tag = setup_env.wheel_folder("", setup_env.build_environment(os.environ)).name
    if f"/{tag}/" not in (distribution(setup_env.ENGINE).read_text("direct_url.json") or ""):
        pytest.skip("needs llama.cpp with the kernels of this processor: make")
    assert engine.kernels_mark() == setup_env.kernels_mark(os.environ)


def test_missing_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDRAFT_TOKENIZERS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("CMAKE_ARGS", raising=False)
    with pytest.raises(SystemExit, match=r"apt-get install g\+\+"):
        setup_env.install_engine(Path("python"), "1.0")
    monkeypatch.setattr(setup_env, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="apt-get install python3-venv"):
        setup_env.check_python()
    with pytest.raises(SystemExit, match="apt-get install npm"):
        fetch_tokenizers.main()
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    with pytest.raises(SystemExit, match=r"must be 3\.11 or newer"):
        setup_env.check_python()


def test_command_that_is_stopped_shows_no_traceback(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = subprocess.Popen.wait

    def interrupted(process: subprocess.Popen[str], timeout: float) -> int:
        wait(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(SystemExit) as stopped:
        setup_env.run([sys.executable, "-c", "pass"], "doing nothing")
    assert stopped.value.code == 130 and "stopped while doing nothing" in capfd.readouterr().err


RUN_SLEEP = """
import signal, subprocess, sys, time
from tools import setup_env

class Popen(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        time.sleep(float(sys.argv[2]))  # the process runs, and the caller does not know it yet

subprocess.Popen = Popen
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
setup_env.run(["sh", "-c", f"sleep 200 & echo $! > {sys.argv[1]}.new && mv {sys.argv[1]}.new {sys.argv[1]}; wait"], "")
"""


@pytest.mark.parametrize("delay", ["0", "1"], ids=["while it runs", "as it starts"])
def test_what_command_has_started_ends_with_it(tmp_path: Path, delay: str) -> None:
    started = tmp_path / "pid"
    command = [sys.executable, "-c", RUN_SLEEP, str(started), delay]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        eventually(started.exists)
        process.terminate()
        assert process.wait(60) == 143
    sleeping = int(started.read_text())
    try:
        eventually(lambda: not alive(sleeping))
    finally:
        with suppress(ProcessLookupError):
            os.kill(sleeping, signal.SIGKILL)


def alive(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
