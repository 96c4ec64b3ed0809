"""From an address to captions over a real connection: the tokenizer is read here, the model runs on a server."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra hf")

import uvicorn
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.backends.load import open_backend
from redraft.backends.remote.backend import RemoteBackend
from redraft.cli.main import cli
from redraft.decoding.segments import PromptSegment
from redraft.decoding.types import TARGET, Score
from redraft.errors import ModelError
from redraft.serve.app import open_backends
from redraft.serve.settings import ServeSettings
from tests.backends.remote.files import config_for, write_tokenizer
from tests.backends.remote.servers import KEY, NAME, FakeServer, FakeSglang, FakeVllm, Table
from tests.fakes import RandomModel


class Tokenized(Table):
    """A table model of the vocabulary of a tokenizer."""

    def __init__(self, tokenizer: HfTokenizer) -> None:
        super().__init__(vocabulary=len(tokenizer.base))
        self.end_tokens = frozenset({tokenizer.base.eos_token_id})
        self.end_bias, self.tokenizer = 0.0, tokenizer

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        logits = super().logits(ids)
        logits[list(self.end_tokens)] += 5.0
        return logits

    def tokenize(self, text: str, *, special: bool = False, start: bool = False) -> list[int]:
        return self.tokenizer.tokenize(text)


@contextmanager
def serving(server: FakeServer) -> Iterator[str]:
    """The address of a fake server on this machine."""

    async def answer(request: Request) -> Response:
        found = server.reply(request.method, request.url.path, dict(request.headers), await request.body())
        return Response(found[1], found[0])

    app = Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])
    running = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        while not running.started:
            assert thread.is_alive()
            thread.join(0.01)
        port = running.servers[0].sockets[0].getsockname()[1]
        yield f"{server.engine}:http://127.0.0.1:{port}"
    finally:
        running.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model")
    config_for(write_tokenizer(made)).save_pretrained(made)
    return made


@pytest.fixture
def table(folder: Path) -> RandomModel:
    return Tokenized(HfTokenizer(write_tokenizer(folder)))


@pytest.mark.parametrize("kind", [FakeVllm, FakeSglang])
def test_model_is_opened_by_its_address(
    kind: type[FakeServer], folder: Path, table: RandomModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRAFT_REMOTE_KEY", KEY)
    with serving(kind(table, KEY)) as address, closing(open_backend(f"{address}/{NAME}#{folder}")) as backend:
        assert isinstance(backend, RemoteBackend)
        assert backend.context_length == 512 and backend.vocabulary_size == len(table.tokenizer.base)  # type: ignore
        assert backend.end_tokens == table.end_tokens
        assert backend.metadata["general.architecture"] == "qwen3" and backend.metadata["general.name"] == NAME
        control = table.tokenizer.base.eos_token_id  # type: ignore[attr-defined]
        assert backend.encode([PromptSegment("<|im_end|>", True)]) == [control]
        assert control not in backend.encode([PromptSegment("<|im_end|>", False)]), "a transcript ends no turn"


def test_command_line_translates_on_server(folder: Path, table: RandomModel) -> None:
    with serving(FakeVllm(table)) as address:
        command = ["translate", "--model", f"{address}/{NAME}#{folder}", "--to", "de", "--option", "max_tokens=64"]
        found = CliRunner().invoke(cli, command, input="a cat\na cat sat\n")
        assert found.exit_code == 0, found.output


def test_every_engine_of_server_has_connections_of_its_own(folder: Path, table: RandomModel) -> None:
    with serving(FakeVllm(table)) as address:
        settings = ServeSettings(model=f"{address}/{NAME}#{folder}", slots=3, engines=3, methods=("ssbd", "ar"))
        engines = [each[TARGET] for each in open_backends(settings)]
        assert len(engines) == 3 and len({id(each.client) for each in engines}) == 3  # type: ignore[attr-defined]
        score = Score((5,) * 300)
        for each in engines:
            with closing(each):
                each.score([(each.open_slot(), score)])


def test_no_tokenizer(table: RandomModel) -> None:
    with serving(FakeVllm(table)) as address, pytest.raises(ModelError, match="after a # in the address"):
        open_backend(f"{address}/{NAME}")


def test_server_that_is_not_there_is_one_sentence(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"^the vllm server at http://127.0.0.1:9 cannot be reached: .*refused"):
        open_backend(f"vllm:http://127.0.0.1:9/{NAME}#{folder}")


def test_server_that_batches_has_an_engine_for_each_slot(folder: Path, table: RandomModel) -> None:
    with serving(FakeVllm(table)) as address:
        for slots, engines in ((6, 6), (40, 32)):
            opened = open_backends(ServeSettings(model=f"{address}/{NAME}#{folder}", slots=slots))
            assert len(opened) == engines
            for each in opened:
                for _ in range(-(-slots // engines)):
                    each[TARGET].open_slot()
                each[TARGET].close()
