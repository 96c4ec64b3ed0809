"""Invalid settings of the fan-out are refused in one sentence, before a model is loaded."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fanout.conftest import RedisServer, replica
from redraft.cli.main import main
from redraft.errors import MissingExtra, OptionError, RedraftError
from redraft.serve import run
from redraft.serve.settings import load
from tests.programs import program

ADDRESS = "fanout must be an address such as redis://host:6379/0, or rediss://host:6379/0 with TLS"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("127.0.0.1:6379", ADDRESS),
        ("http://127.0.0.1", ADDRESS),
        ("redis://", ADDRESS),
        ("redis://host:port", ADDRESS),
        ("redis://host/zero", ADDRESS),
    ],
)
def test_invalid_address(url: str, sentence: str) -> None:
    with pytest.raises(OptionError) as raised:
        run.serve(load(port=0, fanout=url, model="no such model"))
    assert str(raised.value).startswith(sentence)
    assert "secret" not in str(raised.value)


def test_redis_away_in_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--port", "0", "--fanout", "redis://127.0.0.1:9"])
    assert ended.value.code == 1
    assert "cannot be reached" in capfd.readouterr().err


def test_redis_away() -> None:
    """That may pass, unlike a wrong setting, so that systemd starts the server again."""
    with pytest.raises(RedraftError) as raised:
        run.serve(load(port=0, fanout="redis://user:secret@127.0.0.1:9", model="no such model"))
    assert not isinstance(raised.value, OptionError)
    assert str(raised.value).startswith("Redis at 127.0.0.1:9 cannot be reached: Connect call failed ")
    assert "secret" not in str(raised.value)


def test_password(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert redis.ask("CONFIG", "SET", "requirepass", "open sesame").startswith(b"+OK")
    with pytest.raises(OptionError, match="cannot be used: .*[Aa]uth"):
        run.serve(load(port=0, fanout=redis.url, model="no such model"))
    monkeypatch.setenv("REDRAFT_SERVE_FANOUT_PASSWORD", "open sesame")
    settings = load(port=0, fanout=redis.url, model="no such model")
    assert "open sesame" not in repr(settings)
    with pytest.raises(Exception, match="no such model"):
        run.serve(settings)


@pytest.mark.parametrize(("version", "accepted"), [("6.0.16", False), ("6.2.0", True), ("8.0", True), ("", True)])
def test_version(redis: RedisServer, monkeypatch: pytest.MonkeyPatch, version: str, accepted: bool) -> None:
    from redis.asyncio import Redis

    async def info(self: Redis, section: str) -> dict[str, str]:
        return {"redis_version": version} if version else {}

    monkeypatch.setattr(Redis, "info", info)
    sentence = "no such model" if accepted else f"must have version 6.2 or later, not {version}"
    with pytest.raises(Exception, match=sentence):
        run.serve(load(port=0, fanout=redis.url, model="no such model"))


def test_version_that_is_not_told(redis: RedisServer) -> None:
    assert redis.ask("ACL", "SETUSER", "default", "-info").startswith(b"+OK")
    with pytest.raises(Exception, match="no such model"):
        run.serve(load(port=0, fanout=redis.url, model="no such model"))


def test_a_connection_with_tls(tmp_path: Path) -> None:
    redis_server, openssl = program("redis-server"), program("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = f"req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} -days 1 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([openssl, *made.split(), *names], check=True, capture_output=True, timeout=60)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tls = f"--tls-port {port} --tls-cert-file {certificate} --tls-key-file {key} --tls-auth-clients no"
    redis = RedisServer(redis_server, tmp_path, *tls.split())
    try:
        url = f"rediss://127.0.0.1:{port}/0"
        with pytest.raises(OptionError, match="cannot be used: .*certificate"):
            run.serve(load(port=0, fanout=url, model="no such model"))
        with pytest.raises(Exception, match="no such model"):
            run.serve(load(port=0, fanout=f"{url}?ssl_ca_certs={certificate}", model="no such model"))
    finally:
        redis.kill()


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft.serve.sessions.fanout.ENTRY_POINT_GROUP", "redraft.absent")
    with pytest.raises(MissingExtra, match=r"fanout needs redraft-fanout: pip install \./packages/redraft-fanout "):
        run.serve(load(port=0, fanout="redis://127.0.0.1:9"))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "viewers_only needs fanout, the address of Redis"),
        ({"fanout": "redis://127.0.0.1", "compat": ("deepl",)}, "viewers_only cannot be combined with compat"),
    ],
)
def test_viewers_only_settings(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError) as raised:
        load(viewers_only=True, **settings)
    assert str(raised.value) == sentence


def test_viewers_only_without_keys(redis: RedisServer, tmp_path: Path) -> None:
    with replica(redis, viewers_only=True, keys=tmp_path / "absent", rooms={"hall-1": ("stage",)}) as viewers:
        assert viewers.ask("/v1/rooms/hall-1").json["state"] == "waiting"
        assert viewers.ask("/metrics").status == 200
    assert load(viewers_only=True, fanout="redis://127.0.0.1", host="0.0.0.0").keys is None
    with pytest.raises(OptionError, match="needs API keys"):
        load(fanout="redis://127.0.0.1", host="0.0.0.0")
