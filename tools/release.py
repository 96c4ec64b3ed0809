"""Build what is published, in dist/, and try it: distributions, the documentation's site, and the container.

    make release

The distributions are installed into a new environment and used there.  llama.cpp's wheels for all processors are among
them if `make llama` has made them.  The container is built if docker runs here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

from tools import setup_env

ROOT = setup_env.ROOT
DIST = ROOT / "dist"
SITE = ROOT / "site"
PACKAGES = (ROOT, setup_env.BENCH, setup_env.FANOUT, setup_env.TRAIN, ROOT / "plugins" / "redraft-vllm")
DEMO = "redraft demo --speed 0 --sentences 1"
#: What each distribution must do where it is installed.
TRIALS = (
    "redraft --version",
    "redraft doctor",
    DEMO,
    "redraft serve --help",
    "redraft bench --help",
    "redraft finetune --help",
    "python -c 'import redraft.client, redraft_bench, redraft_fanout.fanout, redraft_train, redraft_vllm'",
)
IMAGE = "redraft"


def build(folder: Path) -> list[Path]:
    """Build source distributions and wheels; return them."""
    for package in PACKAGES:
        with chdir(package):
            command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
            setup_env.run(command, f"building {package.name}")
    return sorted(folder.iterdir())


def try_distributions(wheels: Sequence[Path]) -> None:
    """Install wheels into a new environment, and do there what they must do."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "venv", "bin", "python")
        setup_env.run([sys.executable, "-m", "venv", str(python.parents[1])], "making an environment")
        setup_env.install_engine(python, setup_env.engine_version(ROOT / "constraints.txt"))
        named = [f"{wheel}[serve]" if wheel.name.startswith("redraft-") else str(wheel) for wheel in wheels]
        # Without its libraries, redraft-train can only explain itself.
        heavy = [name for name in named if "redraft_train" in name]
        light = [name for name in named if name not in heavy]
        for options in (["--constraint", str(ROOT / "constraints.txt"), *light], ["--no-deps", *heavy]):
            setup_env.run([*setup_env.pip(python, "install"), *options], f"installing {', '.join(options)}")
        environment = os.environ | {"PATH": f"{python.parent}:{os.environ['PATH']}"}
        for trial in TRIALS:
            with chdir(folder):
                setup_env.run(["sh", "-c", trial], trial, environment=environment)


def build_container() -> bool:
    """Build and try the container; return whether docker runs here."""
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        return False
    build = [docker, "build", "--file", "packaging/Dockerfile", "--tag", IMAGE, "."]
    setup_env.run(build, "building the container")
    setup_env.run([docker, "run", "--rm", IMAGE, *DEMO.split()], "running the demo in the container")
    return True


def main() -> None:
    """Build everything, try it, and list it."""
    shutil.rmtree(DIST, ignore_errors=True)
    built = build(DIST)
    try_distributions([path for path in built if path.suffix == ".whl"])
    for wheel in setup_env.portable_wheels(setup_env.engine_version(ROOT / "constraints.txt")):
        shutil.copy(wheel, DIST)
    shutil.make_archive(str(DIST / "redraft-site"), "gztar", SITE)
    container = build_container()
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size / 1e6:8.1f} MB  {path.relative_to(ROOT)}")
    print(f"the container {IMAGE} is built" if container else "docker does not run here, so there is no container")


if __name__ == "__main__":
    main()
