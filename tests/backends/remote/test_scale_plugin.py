"""The plug-in in a real vLLM server with a small model drawn at random; `make test-scale` runs it.

A step verifies 16 tokens of a draft here, so most drafts take several.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra hf")

import httpx2

from redraft import Translator
from redraft.backends.options import RemoteOptions
from redraft.backends.remote.address import Address
from redraft.backends.remote.backend import RemoteBackend, open_remote
from redraft.decoding.backend import Backend
from tests.backends.remote.conftest import NEEDS_VLLM
from tests.backends.remote.files import POSITIONS, write_model
from tests.backends.remote.outputs import stream
from tests.backends.remote.servers import sent_by
from tests.backends.remote.vllm_server import PYTHON_VARIABLE, VllmServer, with_drafts

NAME, PER_STEP = "tiny", 16
STREAMS, AT_ONCE = 50, 8

pytestmark = NEEDS_VLLM


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    folder = tmp_path_factory.mktemp("plugin") / "model"
    write_model(folder)
    more = ["--max-model-len", str(POSITIONS), "--max-num-seqs", str(AT_ONCE), *with_drafts(PER_STEP)]
    made = VllmServer(folder, NAME, more)
    made.start()
    yield made
    made.kill()


def opened(server: VllmServer, count: int = 1, **options: Any) -> list[RemoteBackend]:
    return open_remote(Address.parse(server.model), RemoteOptions(POSITIONS, timeout=300, **options), count=count)


def outputs(backend: Backend, seed: int, **settings: Any) -> list[tuple[int, ...]]:
    """Ids of every update of a growing, corrected sentence."""
    return counted(backend, seed, **settings)[0]


def counted(
    backend: Backend, seed: int, *, options: Mapping[str, Any] | None = None, **settings: Any
) -> tuple[list[tuple[int, ...]], int]:
    """The same, and the number of decodings: one for each update, and the second ones of finals."""
    with Translator(backend, ["de"], options={"max_tokens": 16, **(options or {})}, **settings) as translator:
        found = []
        for update in stream(seed, sentences=1):
            translator.translate(update)
            found.append(translator.state("de").output)
        return found, translator.state("de").tally.updates


def test_50_streams_are_exact_and_update_is_one_request(server: VllmServer, local: Backend) -> None:
    wanted = [outputs(local, seed, method="ar") for seed in range(STREAMS)]
    backends = opened(server, AT_ONCE)

    def ours(first: int) -> dict[int, tuple[list[tuple[int, ...]], int]]:
        settings: dict[str, Any] = {"method": "ssbd", "options": {"beta": 0.0}}
        return {seed: counted(backends[first], seed, **settings) for seed in range(first, STREAMS, AT_ONCE)}

    sent = [sent_by(backend.client) for backend in backends]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = {seed: made for part in threads.map(ours, range(AT_ONCE)) for seed, made in part.items()}
    assert [found[seed][0] for seed in range(STREAMS)] == wanted
    decodings = sum(count for _, count in found.values())
    assert sum(map(len, sent)) <= decodings
    for backend in backends:
        backend.close()


@pytest.mark.parametrize("beta", [0.0, 0.002, 0.004, 0.05, 0.2, 0.3, 0.5])
def test_bias_keeps_what_it_keeps_on_transformers(server: VllmServer, local: Backend, beta: float) -> None:
    (backend,) = opened(server)
    with closing(backend):
        for seed in range(6):
            settings: dict[str, Any] = {"method": "ssbd", "options": {"beta": beta, "agree": 2, "first_sight": 0.1}}
            sent = sent_by(backend.client)
            ours, decodings = counted(backend, seed, **settings)
            assert ours == outputs(local, seed, **settings)
            assert len(sent) <= decodings


def test_log_probabilities_are_models_own(server: VllmServer, local: Backend) -> None:
    def shown(backend: Backend) -> list[Any]:
        with Translator(
            backend, ["de"], method="ssbd", options={"agree": 2, "first_sight": 0.02, "max_tokens": 24}
        ) as translator:
            return [event for update in stream(1, 5) for event in translator.translate(update)]

    (backend,) = opened(server)
    with closing(backend):
        assert shown(backend) == shown(local)


def ask(server: VllmServer, prompt: list[int], count: int, **more: Any) -> httpx2.Response:
    body = {"model": NAME, "prompt": prompt, "max_tokens": count, "temperature": 0, "return_token_ids": True}
    return httpx2.post(f"{server.url}/v1/completions", json={"ignore_eos": True, **body, **more}, timeout=300)


def ids(server: VllmServer, prompt: list[int], count: int, **more: Any) -> list[int]:
    answer = ask(server, prompt, count, **more)
    assert answer.status_code == 200, answer.text
    found: list[int] = answer.json()["choices"][0]["token_ids"]
    return found


def drafted(draft: list[int], bias: float) -> dict[str, Any]:
    return {"vllm_xargs": {"ssbd_draft": draft, "ssbd_bias": bias}}


def test_drafts_longer_than_step_of_vllm(server: VllmServer) -> None:
    prompt = [5, 6, 7]
    greedy = ids(server, prompt, 320)
    begun = server.steps()
    assert ids(server, prompt, 320, **drafted(greedy, 0.0)) == greedy
    assert server.steps() - begun <= 320 // (PER_STEP + 1) + 3
    wrong = [*greedy[:200], greedy[200] ^ 1, *greedy[201:]]
    assert ids(server, prompt, 320, **drafted(wrong, 0.0)) == greedy
    anything = [5 + (7 * place) % 300 for place in range(300)]
    assert ids(server, prompt, 300, **drafted(anything, 1.0)) == anything
    assert ids(server, prompt, 320, **drafted(anything, 1.0))[:300] == anything


def test_up_to_last_position(server: VllmServer) -> None:
    prompt = [5 + place % 300 for place in range(POSITIONS - 40)]
    greedy = ids(server, prompt, 40)
    for draft in (greedy, [*greedy, *greedy], [*greedy[:30], 0]):
        assert ids(server, prompt, 40, **drafted(draft, 0.0)) == greedy


def test_prompts_that_are_in_cache(server: VllmServer) -> None:
    # Of a prompt one longer than its cached blocks a single token is left, which vLLM schedules with placeholders.
    for length in (*range(125, 133), 257):
        prompt = [9 + place % 200 for place in range(length)]
        greedy = ids(server, prompt, 12)
        for draft in (greedy, [greedy[0], 3, *greedy[2:]], [0] * 12):
            assert ids(server, prompt, 12, **drafted(draft, 0.0)) == greedy


def test_requests_with_and_without_drafts_share_steps(server: VllmServer) -> None:
    prompts = [[5 + place, 6, 7] for place in range(24)]
    greedy = [ids(server, prompt, 40) for prompt in prompts]
    options = [{}, drafted([7] * 30, 0.0), drafted([7] * 30, 1.0)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(lambda n: ids(server, prompts[n], 40, **options[n % 3]), range(24)))
    for place, each in enumerate(found):
        assert each[:30] == [7] * 30 if place % 3 == 2 else each == greedy[place]


def test_sampled_requests_may_have_drafts_and_know_no_bias(server: VllmServer) -> None:
    found = ids(server, [5, 6, 7], 30, **drafted([7] * 30, 1.0), **{"temperature": 1.0, "seed": 1})
    assert len(found) == 30 and found != [7] * 30


def test_end_of_output_is_models_own_decision(server: VllmServer) -> None:
    prompt = [5, 6, 7]
    greedy = ids(server, prompt, 6)
    draft = [*greedy[:3], 9, 10]
    ends = {"stop_token_ids": [9]}
    assert ids(server, prompt, 6, **ends, **drafted(draft, 0.49))[:4] != [*greedy[:3], 9]
    assert ids(server, prompt, 6, **ends, **drafted(draft, 1.0)) == [*greedy[:3], 9]


@pytest.mark.parametrize(
    ("carried", "words"),
    [
        ({"ssbd_draft": [1, 10**6]}, "ssbd_draft must be a list of ids from 0 to "),
        ({"ssbd_draft": [-1]}, "ssbd_draft must be a list of ids from 0 to "),
        ({"ssbd_draft": "1"}, "ssbd_draft must be a list of ids from 0 to "),
        ({"ssbd_bias": 0.2}, "ssbd_draft must be a list of ids from 0 to "),
        ({"ssbd_draft": [1], "ssbd_bias": 2}, "ssbd_bias must be a number from 0 to 1, or a list"),
    ],
)
def test_wrong_fields_are_refused_and_server_goes_on(server: VllmServer, carried: Any, words: str) -> None:
    answer = ask(server, [5, 6], 4, vllm_xargs=carried)
    assert answer.status_code == 400 and words in answer.json()["error"]["message"]
    assert len(ids(server, [5, 6], 4)) == 4


REFUSED = """
import types, vllm
vllm.__version__ = {version!r}
import redraft_vllm
redraft_vllm.register()
print("prepared", redraft_vllm.is_installed())
speculative = types.SimpleNamespace(num_speculative_tokens={tokens}, rejection_sample_method="standard")
config = types.SimpleNamespace(
    speculative_config=speculative,
    use_v2_model_runner={v2},
    scheduler_config=types.SimpleNamespace(async_scheduling=False),
    model_config=types.SimpleNamespace(logprobs_mode="raw_logprobs", max_model_len=100),
)
from redraft_vllm.proposer import DraftProposer
try:
    DraftProposer(config)
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("version", "tokens", "v2", "words"),
    [
        ("0.33.0", 100, False, "redraft-vllm has not prepared this vLLM"),
        ("0.32.0", 100, True, "redraft-vllm works with model runner V1 only: set VLLM_USE_V2_MODEL_RUNNER=0"),
        ("0.32.0", 129, False, "num_speculative_tokens must be from 1 to 128, not 129"),
    ],
)
def test_engine_that_does_not_fit_is_refused(version: str, tokens: int, v2: bool, words: str) -> None:
    script = REFUSED.format(version=version, tokens=tokens, v2=v2)
    done = subprocess.run(
        [os.environ[PYTHON_VARIABLE], "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert words in done.stdout, done.stdout + done.stderr
    assert f"prepared {version == '0.32.0'}" in done.stdout
    if version != "0.32.0":
        assert "redraft-vllm works with vLLM 0.32.0, not 0.33.0" in done.stdout + done.stderr
