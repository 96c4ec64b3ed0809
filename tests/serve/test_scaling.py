"""The configurations for several servers, checked without a cluster."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from kubernetes_validate import validate

from conftest import ROOT
from redraft.deadlines import PING
from redraft.serve.http.endpoints import OPERATIONS
from redraft.serve.settings import ServeSettings
from tests.serve.proxies import nginx
from tests.serve.servers import SECONDS, Socket, running

PACKAGING = ROOT / "packaging"
NGINX = (PACKAGING / "nginx.conf").read_text(encoding="utf-8")
MANIFESTS = sorted((PACKAGING / "kubernetes").glob("*.yaml"))
#: Path of a request -> the tier that answers it.
TIERS = {
    "/": "sessions",
    "/v1/live": "sessions",
    "/v1/translate": "sessions",
    "/v1/sessions": "sessions",
    "/v1/ingest/secret": "sessions",
    "/v1/ingest/secret/seq": "sessions",
    "/v1/control/secret": "sessions",
    "/docs": "sessions",
    "/ready": "sessions",
    "/watch": "viewers",
    "/watch/hall-1": "viewers",
    "/overlay": "viewers",
    "/overlay-form": "viewers",
    "/js/pages/watch.js": "viewers",
    "/css/watch.css": "viewers",
    "/icon.svg": "viewers",
    "/v1/offer": "viewers",
    "/v1/qr": "viewers",
    "/v1/watch/name": "viewers",
    "/v1/rooms/hall-1": "viewers",
    "/v1/rooms/hall-1/watch": "viewers",
    "/v1/rooms/hall-1/transcript": "viewers",
}


def documents() -> list[Any]:
    return [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def of_kind(kind: str) -> dict[str, Any]:
    return {each["metadata"]["name"]: each for each in documents() if each["kind"] == kind}


@contextmanager
def backend(name: str) -> Iterator[int]:
    """A server that answers with its name; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps([name, self.headers["Host"], self.headers["Upgrade"]]).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join(SECONDS)


@contextmanager
def proxied(folder: Path, ports: dict[str, int]) -> Iterator[str]:
    """The packaged nginx in front of servers, on a free port of this machine; its address."""
    text = re.sub(r"127\.0\.0\.1:876\d", f"127.0.0.1:{ports['sessions']}", NGINX)
    text = re.sub(r"127\.0\.0\.1:877\d", f"127.0.0.1:{ports['viewers']}", text)
    text = text.replace("worker_processes auto", "worker_processes 1")
    with nginx(folder, lambda port: text.replace("listen 80;", f"listen 127.0.0.1:{port};")) as address:
        yield address


def test_nginx_tiers(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ports = {name: stack.enter_context(backend(name)) for name in ("sessions", "viewers")}
        address = stack.enter_context(proxied(tmp_path, ports))
        found = {path: json.load(urlopen(address + path, timeout=SECONDS)) for path in TIERS}
    assert {path: name for path, (name, _, _) in found.items()} == TIERS
    assert {host for _, host, _ in found.values()} == {address.removeprefix("http://")}


def test_captions_pass_through_nginx(tmp_path: Path) -> None:
    from websockets.sync.client import connect

    with running() as server, proxied(tmp_path, {"sessions": server.port, "viewers": server.port}) as address:
        place = address.replace("http", "ws")
        with connect(f"{place}/v1/live", proxy=None, origin=address) as socket:
            socket.send(json.dumps({"type": "start", "targets": ["de"]}))
            name = json.loads(socket.recv(SECONDS))["session"]
            with connect(f"{place}/v1/watch/{name}", proxy=None, origin=address) as viewer:
                update = {"type": "update", "utterance": "1", "seq": 0, "text": "we saw", "final": True}
                socket.send(json.dumps(update))
                assert Socket(viewer).until("final")[-1]["utterance"] == "1"


def test_server_is_back(tmp_path: Path) -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect
    from websockets.sync.server import serve

    with backend("away") as port:  # free as soon as it has ended
        pass
    with ExitStack() as stack:
        place = stack.enter_context(proxied(tmp_path, {"sessions": port, "viewers": port})).replace("http", "ws")
        for _ in range(2):
            with pytest.raises(InvalidStatus, match="502"):
                connect(f"{place}/v1/live", proxy=None)
        server = stack.enter_context(serve(lambda socket: [None for _ in socket], "127.0.0.1", port))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        stack.callback(thread.join, SECONDS)
        stack.callback(server.shutdown)
        for _ in range(3):
            stack.enter_context(connect(f"{place}/v1/live", proxy=None))


def test_every_path_has_a_tier() -> None:
    """A new one must be thought of in the configurations."""
    known = {re.sub(r"/(name|secret|hall-1)", "/{}", path) for path in TIERS} | {"/v1/sessions/{}", "/metrics"}
    known |= {"/v1/sessions/{}/transcript", "/v1/sentences", "/v1/talk", "/health"}
    assert {re.sub(r"\{\w+\}", "{}", path) for _, path, _ in OPERATIONS} <= known


@pytest.mark.parametrize("version", ["1.27", "1.34"])
def test_manifest_schemas(version: str) -> None:
    kinds = [document["kind"] for document in documents() if validate(document, version, strict=True)]
    assert sorted(set(kinds)) == [
        *("ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Ingress"),
        *("NetworkPolicy", "PodDisruptionBudget", "Service"),
    ]


def test_manifest_references() -> None:
    deployments, services = of_kind("Deployment"), of_kind("Service")
    assert deployments.keys() == services.keys() == {"redraft-sessions", "redraft-viewers", "redraft-redis"}
    for name, service in services.items():
        template = deployments[name]["spec"]["template"]
        assert service["spec"]["selector"] == template["metadata"]["labels"]
        (container,) = template["spec"]["containers"]
        assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    for name, budget in of_kind("PodDisruptionBudget").items():
        assert budget["spec"]["selector"] == deployments[name]["spec"]["selector"]
    backends = {
        path["backend"]["service"]["name"]
        for ingress in of_kind("Ingress").values()
        for rule in ingress["spec"]["rules"]
        for path in rule["http"]["paths"]
    }
    assert backends == {"redraft-sessions", "redraft-viewers"}
    assert of_kind("HorizontalPodAutoscaler")["redraft-viewers"]["spec"]["scaleTargetRef"]["name"] in deployments


def test_manifest_settings() -> None:
    deployments = of_kind("Deployment")
    for name in ("redraft-sessions", "redraft-viewers"):
        spec = deployments[name]["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        named = {*of_kind("ConfigMap")["redraft"]["data"], *(each["name"] for each in container["env"])}
        assert {each.removeprefix("REDRAFT_SERVE_").lower() for each in named} <= ServeSettings.model_fields.keys()
        first = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
        drained = ServeSettings().drain_seconds if "sessions" in name else 0
        assert spec["terminationGracePeriodSeconds"] >= drained + first + 10
    timeouts = re.findall(
        r"proxy-(?:read|send)-timeout: \"(\d+)\"", (PACKAGING / "kubernetes/ingress.yaml").read_text()
    )
    timeouts += re.findall(r"proxy_(?:read|send)_timeout (\d+)s", NGINX)
    assert len(timeouts) == 6 and min(map(int, timeouts)) > PING
