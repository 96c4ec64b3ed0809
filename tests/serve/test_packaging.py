"""The image and the systemd unit, checked without building or starting them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from configparser import RawConfigParser
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from redraft.cli.serve import serve
from redraft.serve.settings import ServeSettings, load
from tests.serve.servers import Running
from tools import setup_env

PACKAGING = ROOT / "packaging"
DOCKERFILE = (PACKAGING / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")


def unit() -> dict[str, str]:
    """The unit's section of the service; of what stands there twice, the last."""
    parser = RawConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(PACKAGING / "redraft.service", encoding="utf-8")
    return dict(parser["Service"])


def image_environment() -> dict[str, str]:
    """What the image sets of the server's settings."""
    return dict(re.findall(r"(REDRAFT_SERVE_\w+)=(\S+)", DOCKERFILE))


def health_check(port: int, **environment: str) -> int:
    """The exit status of the image's health check."""
    found = re.search(r"^HEALTHCHECK .*?CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    assert found
    python, *arguments = json.loads(found[1])
    assert python == "python"
    environment = {**os.environ, "REDRAFT_SERVE_PORT": str(port), **environment}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, timeout=60).returncode


def test_image_context() -> None:
    copied = [line.split()[1:-1] for line in re.findall(r"^COPY (?!--from).*", DOCKERFILE, re.MULTILINE)]
    names = sorted({name for line in copied for name in line})
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]
    assert {"constraints.txt", "pyproject.toml", "src", hook} <= set(names)
    assert all((ROOT / name).exists() for name in names if "*" not in name)  # what matches nothing is not copied
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert rules[1] == "*"
    assert sorted(rule[1:] for rule in rules if rule.startswith("!")) == names


def test_image_excludes() -> None:
    assert f'SKBUILD_WHEEL_EXCLUDE="{setup_env.SURPLUS}"' in DOCKERFILE
    assert f'CMAKE_ARGS="-DGGML_NATIVE=OFF {setup_env.ONLY_TEXT}"' in DOCKERFILE


def test_image_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in image_environment().items():
        monkeypatch.setenv(name, value)
    found = load()
    assert not found.local
    assert (found.port, found.keys) == (ServeSettings().port, Path("/etc/redraft/keys.txt"))
    assert f"EXPOSE {found.port}\n" in DOCKERFILE


def test_health_check(server: Running) -> None:
    elsewhere = {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    assert health_check(server.port, **elsewhere) == 0
    server.engine.stop()
    assert health_check(server.port) == 1
    assert health_check(9) == 1


def test_unit_settings() -> None:
    program, command, *arguments = unit()["ExecStart"].split()
    assert (Path(program).name, command) == ("redraft", serve.name)
    named = {option for parameter in serve.params for option in parameter.opts}
    assert {argument for argument in arguments if argument.startswith("--")} <= named
    settings = load(PACKAGING / "serve.toml")
    assert settings.slots == 32 and settings.local


def test_unit_drain_time() -> None:
    stop = re.search(r"--stop-timeout (\d+)", (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8"))
    assert stop
    assert min(int(unit()["TimeoutStopSec"]), int(stop[1])) >= load(PACKAGING / "serve.toml").drain_seconds + 10


def test_ray_settings() -> None:
    config = yaml.safe_load((PACKAGING / "ray.yaml").read_text(encoding="utf-8"))
    (application,) = config["applications"]
    found = load(**application["args"])
    assert (found.host, found.keys) == (config["http_options"]["host"], Path("/etc/redraft/keys.txt"))
    module, _, name = application["import_path"].partition(":")
    source = (
        (ROOT / "packages" / "redraft-fanout" / "src" / module.replace(".", "/"))
        .with_suffix(".py")
        .read_text(encoding="utf-8")
    )
    assert f"\ndef {name}(args" in source and f'name="{application["deployments"][0]["name"]}"' in source
