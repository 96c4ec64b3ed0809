"""The backend on a real vLLM server with a small model drawn at random; `make test-scale` runs it.

vLLM has an environment of its own: ``REDRAFT_VLLM_PYTHON`` names its interpreter.  Everything is in 32 bits, so that
the same model on transformers gives the same ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra hf")

from click.testing import CliRunner

from redraft import Translator, Update
from redraft.backends.options import RemoteOptions
from redraft.backends.remote.address import Address
from redraft.backends.remote.backend import RemoteBackend, open_remote
from redraft.captions.events import Caption, Failure
from redraft.cli.main import cli
from redraft.decoding.backend import Backend
from redraft.decoding.types import ROOT, Draft, Provenance, Score, top_k
from redraft.errors import ModelError
from tests.backends.remote.conftest import NEEDS_VLLM
from tests.backends.remote.files import POSITIONS, write_model
from tests.backends.remote.outputs import plain_methods
from tests.backends.remote.vllm_server import VllmServer

KEY, NAME = "secret", "tiny"
WORDS = "the cats of our house have eaten all of the fish that was left for them".split()

pytestmark = NEEDS_VLLM


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    folder = tmp_path_factory.mktemp("scale") / "model"
    write_model(folder)
    made = VllmServer(folder, NAME, ["--max-model-len", str(POSITIONS), "--max-num-seqs", "8"], key=KEY)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def remote(server: VllmServer) -> Iterator[RemoteBackend]:
    options = RemoteOptions(POSITIONS, slots=4, timeout=300)
    (backend,) = open_remote(Address.parse(server.model), options, KEY)
    with closing(backend):
        yield backend


def outputs(
    backend: Backend, updates: int = 6, *, options: Mapping[str, Any] | None = None, **settings: Any
) -> list[tuple[int, ...]]:
    """Ids of every update of an utterance."""
    with Translator(backend, ["de"], options={"max_tokens": 20, **(options or {})}, **settings) as translator:
        found = []
        for seq in range(1, updates + 1):
            translator.translate(Update("1", seq, " ".join(WORDS[: 2 * seq])))
            found.append(translator.state("de").output)
        assert any(found)
        return found


def test_what_is_known_of_model_is_same(remote: RemoteBackend, local: Backend) -> None:
    assert remote.context_length == local.context_length == POSITIONS - 1
    assert remote.end_tokens == local.end_tokens and remote.vocabulary_size == local.vocabulary_size
    assert {**remote.metadata, "general.name": ""} == {**local.metadata, "general.name": ""}


@pytest.mark.parametrize("length", [0, 1, 9, 60])
def test_rows_are_those_of_model(remote: RemoteBackend, local: Backend, length: int) -> None:
    ids = [5 + (7 * place) % 300 for place in range(100 + length)]
    score = Score(tuple(ids[:100]), Draft.chain(ids[100:], Provenance.PREVIOUS))
    slots = remote.open_slot(), local.open_slot()
    (ours,), (theirs,) = remote.score([(slots[0], score)]), local.score([(slots[1], score)])
    for node in range(ROOT, length):
        for (token, value), (wanted, exact) in zip(top_k(ours, node, 20), top_k(theirs, node, 20), strict=True):
            assert token == wanted and value == pytest.approx(exact, abs=1e-4)
        if node + 1 < length:
            drafted = score.draft.tokens[node + 1]
            assert ours.logprob(node, drafted) == pytest.approx(theirs.logprob(node, drafted), abs=1e-4)
    local.close_slot(slots[1])


@pytest.mark.parametrize(("method", "options"), list(plain_methods()))
def test_methods_give_greedy_ids(remote: RemoteBackend, local: Backend, method: str, options: dict[str, Any]) -> None:
    assert outputs(remote, method=method, options=options) == outputs(local, method="ar")


@pytest.mark.parametrize("beta", [0.0, 0.002, 0.004, 0.05, 0.2, 0.3])
def test_bias_keeps_what_it_keeps_on_transformers(remote: RemoteBackend, local: Backend, beta: float) -> None:
    options = {"beta": beta}
    assert outputs(remote, 7, options=options) == outputs(local, 7, options=options)


def test_slots_share_server(remote: RemoteBackend, local: Backend) -> None:
    scores = [Score(tuple(range(5 + each, 40)), Draft.chain([9] * each, Provenance.PREVIOUS)) for each in range(4)]
    slots = [remote.open_slot() for _ in scores], [local.open_slot() for _ in scores]
    found = [
        backend.score(list(zip(own, scores, strict=True))) for backend, own in zip((remote, local), slots, strict=True)
    ]
    for ours, theirs, score in zip(*found, scores, strict=True):
        nodes = range(ROOT, len(score.draft))
        assert [ours.argmax(node) for node in nodes] == [theirs.argmax(node) for node in nodes]
    for slot in slots[1]:
        local.close_slot(slot)


def test_wrong_key_is_refused(server: VllmServer) -> None:
    with pytest.raises(ModelError, match="refuses the API key"):
        open_remote(Address.parse(server.model), RemoteOptions(), "wrong")


def test_command_line(server: VllmServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_REMOTE_KEY", KEY)
    command = ["translate", "--model", server.model, "--to", "de", "--option", "max_tokens=200"]
    found = CliRunner().invoke(cli, command, input="a cat\na cat sat\n")
    assert "de" in found.output and "Traceback" not in found.output


def test_killed_server_is_error_and_session_goes_on(server: VllmServer, remote: RemoteBackend) -> None:
    updates = [Update("1", seq, " ".join(WORDS[: 3 * seq])) for seq in range(1, 5)]
    with Translator(remote, ["de"], options={"max_tokens": 20}) as translator:
        assert isinstance(translator.translate(updates[0])[-1], Caption)
        server.kill()
        (failure,) = translator.translate(updates[1])
        assert isinstance(failure, Failure) and "cannot be reached" in failure.message
        server.start()
        assert isinstance(translator.translate(updates[2])[-1], Caption)
        assert isinstance(translator.translate(updates[3])[-1], Caption)
