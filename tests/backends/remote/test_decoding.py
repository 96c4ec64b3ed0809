"""Decoding over HTTP gives what the same model gives in process, in fewer requests than passes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import cache
from typing import Any

import pytest

from redraft import Translator
from redraft.backends.remote.backend import FEW, RemoteBackend
from redraft.backends.remote.rows import MOST, RemoteRow, RemoteRows
from redraft.decoding.backend import Backend
from redraft.decoding.decode import decode
from redraft.decoding.types import ROOT, Asking, Draft, Output, Provenance, Score, top_k
from redraft.errors import CapabilityError
from tests.backends.remote.outputs import outputs, plain_methods, stream
from tests.backends.remote.servers import FakePlugin, FakeServer, FakeSglang, FakeVllm, Table, connected
from tests.fakes import greedy

SERVERS = [FakeVllm, FakePlugin, FakeSglang]
STOCK = [FakeVllm, FakeSglang]


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> FakeServer:
    made: FakeServer = request.param(Table())
    return made


@cache
def by_hand() -> list[tuple[int, ...]]:
    """The same by plain greedy decoding."""
    table = Table()
    with Translator(table, ["de"], method="ar") as translator:
        found = []
        for update in stream(0):
            translator.translate(update)
            latest = translator.state("de")
            prompt, output = latest.prompt, latest.output
            assert list(output) == greedy(table, prompt, 200)[: len(output)]
            found.append(output)
        return found


@pytest.mark.parametrize(("method", "options"), list(plain_methods()))
def test_methods_give_greedy_ids(server: FakeServer, method: str, options: dict[str, Any]) -> None:
    with closing(connected(server)) as backend:
        assert outputs(backend, method=method, options=options) == by_hand()


@cache
def in_process(method: str, seed: int = 0, **options: Any) -> list[tuple[int, ...]]:
    """The same without a server."""
    return outputs(Table(), seed, method=method, options=options)


class Looping(Table):
    """A table whose rows follow from the last id, so that long outputs repeat themselves."""

    def logits(self, ids: Sequence[int]) -> Any:
        return self.after(ids[-1])

    @cache  # noqa: B019 - a few tables of 30 rows
    def after(self, last: int) -> Any:
        row = super().logits([last]).copy()
        row[list(self.end_tokens)] -= 2.0 * (self.seed % 3)
        return row


@pytest.mark.parametrize(("beta", "limit"), [(0.0, 16), (0.3, 40)])
def test_requests_of_outputs_that_are_decoded_again(beta: float, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each decoding of an update is a request; one with a barred token inside its draft, two."""
    found: list[Output] = []

    def counted(*args: Any, **more: Any) -> Asking[Output]:
        found.append((yield from decode(*args, **more)))
        return found[-1]

    monkeypatch.setattr("redraft.captions.translation.decode", counted)
    again = loops = 0
    for seed in (2, 3, 35):
        server = FakePlugin(Looping(seed))
        settings: dict[str, Any] = {"method": "ssbd", "options": {"beta": beta, "max_tokens": limit}}
        with closing(connected(server)) as backend, Translator(backend, ["de"], **settings) as translator:
            for update in stream(seed, sentences=1):
                found.clear()
                before = len(server.bodies)
                translator.translate(update)
                barred = max(0, sum(output.loop is not None for output in found) - 1)
                assert len(server.bodies) - before <= len(found) + barred
                again, loops = again + len(found) - 1, loops + barred
    assert again and bool(loops) == (limit == 40)


@pytest.mark.parametrize("beta", [0.0, 0.002, 0.05, 0.2, 0.3, 0.5])
def test_bias_keeps_what_it_keeps_in_process(server: FakeServer, beta: float) -> None:
    with closing(connected(server)) as backend:
        for seed in range(3):
            ours = outputs(backend, seed, method="ssbd", options={"beta": beta})
            assert ours == in_process("ssbd", seed, beta=beta)


@pytest.mark.parametrize("method", ["cd", "ssbd-aasd"])
def test_other_rules_keep_what_they_keep_in_process(server: FakeServer, method: str) -> None:
    options = {"ssbd-aasd": {"verification": "threshold", "end_guard": "off"}}.get(method, {})
    with closing(connected(server)) as backend:
        assert outputs(backend, method=method, options=options) == in_process(method, **options)


def test_small_model_drafts_on_server_too() -> None:
    large, small = FakeVllm(Table()), FakeVllm(Table(seed=1))
    with closing(connected(large)) as target, closing(connected(small)) as drafter:
        options = {"rollback": 0.0}
        ours = outputs(target, method="bild", options=options, small=drafter)
        assert ours == outputs(Table(), method="bild", options=options, small=Table(seed=1))


def test_new_draft_is_judged_by_rows_of_its_own() -> None:
    best = {token: -1.0 - token for token in range(MOST)}
    asked = RemoteRow({**best, 77: -30.0}, MOST)
    rows = RemoteRows([RemoteRow(best, MOST)], 100, lambda _k: [asked])  # of a continuation, before there was a draft
    assert (rows.logprob(ROOT, 3), rows.logprob(ROOT, 77)) == (-4.0, -30.0)
    with pytest.raises(CapabilityError, match="of the draft and of the 20 best tokens only"):
        rows.logprob(ROOT, 78)


def test_leads_are_those_of_model(server: FakeServer) -> None:
    def shown(backend: Backend) -> list[str]:
        with Translator(backend, ["de"], method="ssbd", options={"agree": 2, "first_sight": 0.1}) as translator:
            return [event.text for update in stream(3) for event in translator.translate(update)]  # type: ignore

    with closing(connected(server)) as backend:
        assert shown(backend) == shown(Table())


def requests_of(server: FakeServer, method: str, ahead: int) -> tuple[int, int]:
    """Requests and passes of a stream."""
    server.bodies.clear()
    with closing(connected(server, ahead=ahead)) as backend, Translator(backend, ["de"], method=method) as translator:
        for update in stream(0):
            translator.translate(update)
        return len(server.bodies), translator.state("de").tally.passes


@pytest.mark.parametrize("method", ["ar", "ssbd"])
@pytest.mark.parametrize("kind", STOCK)
def test_what_follows_draft_takes_one_request(kind: type[FakeServer], method: str) -> None:
    server = kind(Table())
    alone, passes = requests_of(server, method, ahead=1)
    assert alone == passes
    together, same = requests_of(server, method, ahead=64)
    assert same == passes
    # A draft, and what follows it; the first update of an utterance has no draft.
    assert together <= (16 if method == "ar" else 2 * 16 - 2)


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.2, 0.5])
def test_update_is_one_request_where_server_verifies(beta: float) -> None:
    server = FakePlugin(Table())
    with closing(connected(server)) as backend:
        ours = outputs(backend, method="ssbd", options={"beta": beta})
        assert ours == outputs(Table(), method="ssbd", options={"beta": beta})
        assert len(server.bodies) <= len(ours)
        assert all("prompt_logprobs" not in body for body in server.bodies)
        sent = [body["vllm_xargs"] for body in server.bodies if "vllm_xargs" in body]
        assert len(sent) >= len(ours) // 2 and {bias for each in sent for bias in each["ssbd_bias"]} == {beta}


@pytest.mark.parametrize(("beta", "hidden"), [(0.4, 0.05), (0.5, 0.0), (0.3, 0.3)])
def test_server_has_a_bias_for_each_token(beta: float, hidden: float) -> None:
    """Shown tokens have one, and hidden ones another."""
    settings: dict[str, Any] = {"method": "redraft", "options": {"beta": beta, "hidden_beta": hidden}}
    server = FakePlugin(Table())
    with closing(connected(server)) as backend:
        assert outputs(backend, **settings) == outputs(Table(), **settings)
    sent = [body["vllm_xargs"] for body in server.bodies if "vllm_xargs" in body]
    assert all(len(each["ssbd_bias"]) == len(each["ssbd_draft"]) for each in sent)
    assert {beta, hidden} <= {bias for each in sent for bias in each["ssbd_bias"]} <= {beta, hidden, 0.0}
    assert all(each["ssbd_bias"] == sorted(each["ssbd_bias"], reverse=True) for each in sent)


def test_update_is_one_request_by_default() -> None:
    """Nothing reads rows of rejected tokens, which a server that verifies drafts does not return."""
    server = FakePlugin(Table())
    with closing(connected(server)) as backend:
        ours = outputs(backend, method="redraft")
        assert len(server.bodies) <= len(ours)
        assert sum("vllm_xargs" in body for body in server.bodies) >= len(ours) // 2


def test_final_is_one_request_more() -> None:
    """The exact output is compared where the bias has given up something; a server searches no beams."""
    found = []
    for seed in range(6):
        server = FakePlugin(Table())
        with closing(connected(server)) as backend, Translator(backend, ["de"], options={"doubt": 0}) as translator:
            for update in stream(seed):
                before = len(server.bodies)
                translator.translate(update)
                likelihood = translator.state("de").decoded.output.likelihood
                found.append((update.final, len(server.bodies) - before))
                assert (likelihood is not None) == update.final
    assert {asked for final, asked in found if not final} <= {0, 1}
    assert {asked for final, asked in found if final} == {1, 2}


@pytest.mark.parametrize("kind", SERVERS)
def test_stop_ends_request(kind: type[FakeServer]) -> None:
    """What is not decoded is not asked for, and a stopped update is no further request."""
    options: dict[str, Any] = {"beta": 0.2, "hidden_beta": 0.2, "stop": 0.5}
    server = kind(Table())
    with closing(connected(server)) as backend, Translator(backend, ["de"], options=options) as translator:
        stopped = 0
        for update in stream(0):
            before = len(server.bodies)
            translator.translate(update)
            line = backend._slots[0]
            assert line._steps is None
            stopped += translator.state("de").decoded.output.stopped
            assert len(server.bodies) - before <= 2
        assert stopped >= 3


def test_stricter_rule() -> None:
    settings: dict[str, Any] = {"method": "ssbd", "options": {"beta": 0.3, "floor": 0.2}}
    server = FakePlugin(Table())
    with closing(connected(server)) as backend:
        ours = outputs(backend, **settings)
    assert ours == outputs(Table(), **settings) != outputs(Table(), **settings | {"options": {"beta": 0.3}})
    assert len(ours) < len(server.bodies)


def test_rule_without_bias_is_not_left_to_server() -> None:
    server = FakePlugin(Table())
    with closing(connected(server)) as backend:
        outputs(backend, method="ssbd-aasd", options={"verification": "threshold", "end_guard": "off"})
    assert not any("vllm_xargs" in body for body in server.bodies)


def test_plugin_can_be_left_alone() -> None:
    server = FakePlugin(Table())
    with closing(connected(server, plugin=False)) as backend:
        assert outputs(backend) == outputs(Table())
    assert not any("vllm_xargs" in body for body in server.bodies)


def test_guess_against_what_server_said_takes_no_request(server: FakeServer) -> None:
    requests, passes = requests_of(server, "pld", ahead=64)
    assert requests < 0.6 * passes


def test_end_of_output_is_servers_business_too(server: FakeServer) -> None:
    with closing(connected(server)) as backend:
        slot = backend.open_slot()
        backend.score([(slot, Score((3, 4, 5)))])
    (body,) = server.bodies
    assert (body.get("stop_token_ids") or body["sampling_params"]["stop_token_ids"]) == [0]


def test_several_slots_are_asked_at_same_time(server: FakeServer) -> None:
    table = Table()
    scores = [Score((3, 4 + slot), Draft.chain(range(slot), Provenance.PREVIOUS)) for slot in range(4)]
    with closing(connected(server)) as backend:
        slots = [backend.open_slot() for _ in scores]
        rows = backend.score(list(zip(slots, scores, strict=True)))
        same(rows, table.score(list(enumerate(scores))), scores)


def same(ours: Sequence[Any], theirs: Sequence[Any], scores: Sequence[Score]) -> None:
    for own, other, score in zip(ours, theirs, scores, strict=True):
        for node in range(ROOT, len(score.draft)):
            assert own.argmax(node) == other.argmax(node)
            for (token, value), (wanted, exact) in zip(top_k(own, node, 3), top_k(other, node, 3), strict=True):
                assert token == wanted and value == pytest.approx(exact, abs=1e-5)
        for node, token in enumerate(score.draft.tokens):
            assert own.logprob(node - 1, token) == pytest.approx(other.logprob(node - 1, token), abs=1e-5)


def test_line_that_was_told_is_not_asked_for_again(server: FakeServer) -> None:
    with closing(connected(server)) as backend:
        slot = backend.open_slot()
        prefix = next((3, 4, token) for token in range(1, 29) if len(greedy(server.table, (3, 4, token), 5)) == 5)
        backend.score([(slot, Score(prefix))])
        line = greedy(server.table, prefix, 5)
        draft = Draft.chain(line[1:3], Provenance.GENERATED)
        score = Score((*prefix, line[0]), draft)
        rows = backend.score([(slot, score)])
        assert len(server.bodies) == 1
        same(rows, server.table.score([(0, score)]), [score])
        rows[0].best(ROOT, FEW + 1)
        assert len(server.bodies) == 2, "so many best tokens had not been asked for"
        wrong = Score((*prefix, line[0]), Draft.chain([line[1], 29, 29], Provenance.GENERATED))
        same(backend.score([(slot, wrong)]), server.table.score([(0, wrong)]), [wrong])
        assert len(server.bodies) == 3


def test_contexts_end_where_servers_does(server: FakeServer) -> None:
    with closing(connected(server, context_length=1 << 20)) as backend:
        assert isinstance(backend, RemoteBackend) and backend.context_length == 512
        slot = backend.open_slot()
        backend.score([(slot, Score(tuple(range(1, 29)) * 18 + tuple(range(1, 9))))])  # 512 ids, and one that is added
        backend.close_slot(slot)
