"""The server on Ray Serve: three nodes on this machine, whose replicas crash, come, go and are replaced.

No client may lose anything by that.  The figures are printed: ``make test-ray ARGS=-s``.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from redraft.errors import OptionError
from redraft.serve.settings import ServeSettings
from tests.client.crowd import Crowd, Speaker

# Ray's own warnings are none of ours.
pytestmark = [
    pytest.mark.scale,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: make test-ray"),
    pytest.mark.filterwarnings("ignore"),
]

ROOT = Path(__file__).parents[2]
SESSIONS = 60
#: Sessions on each replica.
EACH = 20
NODES = 3
AUTOSCALING = {
    "min_replicas": 1,
    "initial_replicas": NODES,
    "max_replicas": 2 * NODES,
    "target_ongoing_requests": EACH,
    "upscale_delay_s": 2,
    "downscale_delay_s": 45,
    "look_back_period_s": 5,
}
SETTINGS = {"model": "demo-tiny", "engine": {"context_length": 256}, "busy": 1000, "starts_per_second": 1000}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


class Deployed:
    """The application on the cluster.

    Args:
        folder: of the transcripts that all replicas write.
    """

    def __init__(self, folder: Path) -> None:
        from ray import serve

        self.folder, self.port = folder, free_port()
        serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": self.port})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def deploy(self, **settings: Any) -> None:
        """Deploy the application as packaging/ray.yaml does, or another version of it in its place."""
        from ray.serve.context import _get_global_client
        from ray.serve.schema import ServeDeploySchema

        config = yaml.safe_load((ROOT / "packaging" / "ray.yaml").read_text(encoding="utf-8"))
        (application,) = config["applications"]
        for name in ("host", "keys"):  # clients are on this machine
            del application["args"][name]
        application["args"] |= {**SETTINGS, "transcripts": str(self.folder), **settings}
        (deployment,) = application["deployments"]
        deployment |= {"autoscaling_config": AUTOSCALING, "ray_actor_options": {"num_cpus": 1}}
        _get_global_client().deploy_apps(ServeDeploySchema(**config))

    @property
    def replicas(self) -> list[dict[str, Any]]:
        """What Ray says of the replicas that run: ``pid``, ``node_id``, ``start_time_s`` and so on."""
        from ray.serve.context import _get_global_client

        application = _get_global_client().get_serve_details()["applications"].get("redraft", {})
        assert application.get("status") != "DEPLOY_FAILED", application["message"]
        replicas = application.get("deployments", {}).get("redraft", {}).get("replicas", [])
        return [replica for replica in replicas if replica["state"] == "RUNNING"]

    @property
    def pids(self) -> set[int]:
        return {replica["pid"] for replica in self.replicas}

    async def until(self, reached: Callable[[set[int]], bool], seconds: float = 180) -> float:
        """Wait until the replicas that run are such, by their process ids; returns how many seconds that took."""
        begun = time.monotonic()
        async with asyncio.timeout(seconds):
            while not reached(await asyncio.to_thread(lambda: self.pids)):
                await asyncio.sleep(0.1)
        return time.monotonic() - begun


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SERVE_PROXY_PREFER_LOCAL_NODE_ROUTING": "0"}
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        for _ in range(NODES - 1):
            cluster.add_node(num_cpus=2)
        ray.init(address=cluster.address, log_to_driver=False)
        yield Deployed(tmp_path_factory.mktemp("transcripts"))
        serve.shutdown()
        ray.shutdown()
    finally:
        cluster.shutdown()


def memory(pid: int) -> float:
    """What a process has to itself, and its share of what it shares, in MB."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024


def said(what: str, away: list[float]) -> str:
    p95 = quantiles(away, n=20)[-1] if len(away) > 1 else away[0]
    return f"{what}: {len(away)} clients were without a connection for {median(away):.2f} s (p50), {p95:.2f} s (p95)"


def test_replicas_come_and_go(deployed: Deployed) -> None:
    begun = time.monotonic()
    deployed.deploy()
    asyncio.run(deployed.until(lambda pids: len(pids) == NODES))
    print(f"\n{NODES} replicas run after {time.monotonic() - begun:.1f} s")
    assert len({replica["node_id"] for replica in deployed.replicas}) == NODES
    print(f"idle replicas: {', '.join(f'{memory(pid):.0f} MB' for pid in sorted(deployed.pids))}")

    async def work() -> None:
        speakers = [Speaker(deployed.url, ["de"], pause=1.5) for _ in range(SESSIONS)]
        async with Crowd(speakers) as crowd:
            await crowd.progress(1)
            victim, *_ = deployed.pids
            os.kill(victim, signal.SIGKILL)
            killed = time.monotonic()
            await crowd.progress(1)
            away = crowd.away("connection")
            print(said("SIGKILL", away))
            assert 1 <= len(away) < SESSIONS
            await deployed.until(lambda pids: len(pids) == NODES and victim not in pids)
            print(f"{NODES} replicas again {time.monotonic() - killed:.1f} s after the kill at the latest")
            await crowd.progress(1)

            more = [Speaker(deployed.url, ["de"], pause=1.5) for _ in range(EACH)]
            async with Crowd(more) as others:
                seconds = await deployed.until(lambda pids: len(pids) > NODES)
                print(f"{SESSIONS + EACH} sessions: {len(deployed.pids)} replicas after {seconds:.1f} s")
                await others.progress(1)

                old = deployed.pids
                await asyncio.to_thread(deployed.deploy, updates_per_second=60)
                await deployed.until(lambda pids: len(pids) >= NODES and not pids & old)
                await crowd.progress(1)
                await others.progress(1)
                away = crowd.away("draining")
                print(said("rolling update", away))
                assert len(away) >= SESSIONS
                await others.finish()

            for speaker in speakers[EACH:]:
                speaker.stop()
            seconds = await deployed.until(lambda pids: 0 < len(pids) < NODES)
            print(f"{EACH} sessions: {len(deployed.pids)} replicas after {seconds:.1f} s")
            await crowd.progress(1)
            print(said("fewer replicas", crowd.away("draining")))
            await crowd.finish()
            check_transcripts([*speakers, *more])
        reconnected = sum(speaker.client.reconnected for speaker in speakers)
        print(f"{sum(each.said for each in speakers)} utterances, {reconnected} reconnections, nothing lost or doubled")

    def check_transcripts(speakers: list[Speaker]) -> None:
        for speaker in speakers:
            (file,) = deployed.folder.glob(f"*{speaker.client.session}.jsonl")
            rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
            kept = [(row["utterance"], row["language"], row["text"]) for row in rows if row["language"] != "en"]
            assert kept == speaker.finals

    asyncio.run(asyncio.wait_for(work(), 600))


def test_invalid_setting() -> None:
    from redraft_fanout.ray_app import app

    with pytest.raises(OptionError, match="'slot' is not a setting: the nearest is slots"):
        app({"slot": "3"})
    with pytest.raises(OptionError, match="slots: Input should be greater than or equal to 1, not '0'"):
        app({"slots": "0"})


@pytest.mark.parametrize(
    ("cores", "given", "engines", "threads"),
    [
        (0, {}, 0, 0),
        (2, {}, 2, 1),
        (4, {"engines": 2}, 2, 2),
        (4, {"engine": {"threads": 3}}, 0, 3),
        (1, {"engines": 3}, 3, 1),
    ],
)
def test_engines_by_cores(
    cores: int, given: dict[str, Any], engines: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redraft_fanout import ray_app

    monkeypatch.setattr(ray_app, "default_contexts", lambda name, engine: 8)
    found = ray_app.fitted(ServeSettings(model="demo-tiny", **given), cores)
    assert (found.engines, found.engine.get("threads", 0)) == (engines, threads)


def test_drain(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from redraft_fanout import ray_app

    class Hub:
        def __init__(self) -> None:
            self.engines, self.drained = SimpleNamespace(alive=True), False

        async def drain(self) -> None:
            self.drained = True

    async def work(hub: Hub) -> None:
        replica = ray_app.Replica()
        replica.app = SimpleNamespace(state=SimpleNamespace(hub=hub))
        replica.check_health()
        hub.engines.alive = False
        with pytest.raises(RuntimeError, match="must be started again"):
            replica.check_health()
        await asyncio.wait_for(replica._draining, 10)

    answers = [True, False]
    monkeypatch.setattr(ray_app, "_stopping", lambda: answers.pop())
    asyncio.run(work(hub := Hub()))
    assert hub.drained and not answers
    monkeypatch.undo()
    monkeypatch.setattr(ray_app, "global_worker", SimpleNamespace(actors={"id": object()}))
    asyncio.run(work(hub := Hub()))
    assert not hub.drained and "does not show when a replica is stopped" in caplog.text
