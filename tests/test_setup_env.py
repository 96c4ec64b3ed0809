"""The scripts that install Redraft: what they keep, what they say, and when they stop."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from tools import check_size, setup_env


def test_the_pin_of_the_engine_is_read_from_the_constraints(tmp_path: Path) -> None:
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("# llama-cpp-python==0\ntorch==2.13.0\nllama-cpp-python==1.2.3\n", encoding="utf-8")
    assert setup_env.engine_version(constraints) == "1.2.3"
    constraints.write_text("torch==2.13.0\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="must hold a line llama-cpp-python==VERSION"):
        setup_env.engine_version(constraints)


def test_wheels_are_kept_apart_by_version_processor_and_build_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    folder = setup_env.wheel_folder("1.0", cache)
    assert folder.is_relative_to(tmp_path / "redraft" / "wheels")
    assert folder == setup_env.wheel_folder("1.0", cache)
    assert folder != setup_env.wheel_folder("1.1", cache)
    assert folder != setup_env.wheel_folder("1.0", {**cache, "CMAKE_ARGS": "-DGGML_CUDA=on"})
    monkeypatch.setattr(setup_env, "features", lambda: "avx2")
    assert folder != setup_env.wheel_folder("1.0", cache)


def test_features_are_those_that_decide_what_is_compiled(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("model name\t: Some\nflags\t\t: vmx sse2 avx2 rep_good\nflags\t\t: other\n", encoding="utf-8")
    assert setup_env.features(cpuinfo) == "avx2 sse2"


def test_a_kept_wheel_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_CUDA=on")
    built = []

    def build(command: list[str], message: str, *, environment: dict[str, str]) -> None:
        built.append(message)
        assert environment["SKBUILD_WHEEL_EXCLUDE"] == setup_env.SURPLUS
        assert environment["CMAKE_ARGS"] == "-DLLAVA_BUILD=OFF -DGGML_CUDA=on"
        (Path(command[command.index("--wheel-dir") + 1]) / "engine.whl").touch()

    monkeypatch.setattr(setup_env, "run", build)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    first, second = (setup_env.engine_wheel(Path("python"), "1.0") for _ in range(2))
    assert first == second == setup_env.wheel_folder("1.0", os.environ) / "engine.whl"
    assert [path.name for path in first.parent.iterdir()] == ["engine.whl"]
    assert len(built) == 1
    assert "compiling llama.cpp once, about four minutes on two cores" in built[0]
    assert str(first.parent) in built[0]


def test_what_is_missing_is_named_with_the_command_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match=r"apt-get install g\+\+"):
        setup_env.engine_wheel(Path("python"), "1.0")
    monkeypatch.setattr(setup_env, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="apt-get install python3-venv"):
        setup_env.check_python()
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    with pytest.raises(SystemExit, match=r"must be 3\.11 or newer"):
        setup_env.check_python()


def test_a_long_command_says_that_it_still_runs(capfd: pytest.CaptureFixture[str]) -> None:
    setup_env.run([sys.executable, "-c", "import time; print('noise'); time.sleep(0.5)"], "waiting", beat_s=0.1)
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "* waiting"
    assert lines[1].startswith("  still at it after 0 min 0")
    assert "noise" not in lines


def test_a_command_that_fails_shows_its_last_lines(capfd: pytest.CaptureFixture[str]) -> None:
    script = "import sys; print(*range(100), sep='\\n', flush=True); sys.exit('no compiler')"
    with pytest.raises(SystemExit, match="this failed, see above: building"):
        setup_env.run([sys.executable, "-c", script], "building")
    shown = capfd.readouterr().err.splitlines()
    assert "no compiler" in shown
    assert "50" not in shown


def test_too_large_an_installation_is_refused(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "large.bin").write_bytes(b"x" * 100_000)
    found = check_size.sizes(tmp_path)
    assert 100_000 <= found["torch"] < 200_000
    assert check_size.complaints(found) == ["the default install must not bring torch"]
    assert check_size.complaints(Counter(numpy=200_000_000)) == []
    assert check_size.complaints(Counter(numpy=200_600_000)) == ["site-packages must stay below 200 MB and has 201 MB"]
