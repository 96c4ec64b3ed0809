"""Models that attend to a window of positions, in all or some of their layers, far behind which a context goes on."""

from __future__ import annotations

from typing import Any

import pytest
import transformers

torch = pytest.importorskip("torch", reason="needs the extra hf")

from redraft.decoding.decode import decode  # noqa: E402
from redraft.decoding.drafters import Nothing  # noqa: E402
from redraft.decoding.drive import run  # noqa: E402
from redraft.decoding.methods.ssbd import PreviousOutput  # noqa: E402
from redraft.decoding.rules import Exact  # noqa: E402
from redraft.decoding.types import ROOT, Prompt, Score  # noqa: E402
from tests.backends.hf import models as tiny  # noqa: E402
from tests.backends.hf.models import LIMIT, VOCABULARY, chain, logs, path_to, tree  # noqa: E402

WINDOW = 5
MIXED = ["sliding_attention", "full_attention"]
FAMILIES: dict[str, dict[str, object]] = {
    "Gemma2Config": {"layer_types": MIXED},
    "Gemma3TextConfig": {"layer_types": MIXED},
    "Qwen2Config": {"layer_types": MIXED, "use_sliding_window": True},
    "Cohere2Config": {"layer_types": MIXED},
    "Olmo3Config": {"layer_types": MIXED},
    "MistralConfig": {},
    "Phi3Config": {},
}


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest) -> Any:
    return tiny.of_family(request.param, sliding_window=WINDOW, **FAMILIES[request.param])


def plain(model: Any, ids: tuple[int, ...]) -> list[float]:
    """(vocabulary,) log-probabilities after ids, by one pass with the masks that the model makes for itself."""
    with torch.inference_mode():
        found: list[float] = model(torch.tensor([ids]), use_cache=False).logits[0, -1].log_softmax(-1).tolist()
    return found


def test_window_matters(model: Any) -> None:
    ids = tiny.prompts(1, 12)[0]
    wide = type(model)(type(model.config)(**{**model.config.to_dict(), "sliding_window": 64})).eval()
    wide.load_state_dict(model.state_dict())
    assert max(abs(one - other) for one, other in zip(plain(model, ids), plain(wide, ids), strict=True)) > 0.01


def test_greedy_ids_of_generate(model: Any) -> None:
    backend = tiny.watched(model, context_length=64)
    slot, kept = backend.open_slot(), 0
    for prompt in tiny.prompts(4, 20):
        expected, finished = tiny.greedy(model, prompt)
        ends: dict[str, Any] = {"end_tokens": backend.end_tokens, "limit": LIMIT}
        alone = run(decode(Prompt(prompt), Nothing(), Exact(), **ends), backend, slot)
        assert (alone.tokens, alone.finished) == (expected, finished)
        wrong = (*expected[:5], (expected[5] + 1) % VOCABULARY, *expected[6:]) if len(expected) > 6 else expected
        again = run(decode(Prompt(prompt), PreviousOutput(), Exact(), previous=wrong, **ends), backend, slot)
        assert (again.tokens, again.finished) == (expected, finished)
        kept += again.accepted
    assert kept


def test_every_node_of_tree_sees_its_own_window(model: Any) -> None:
    backend = tiny.watched(model, context_length=64)
    first, second = backend.open_slot(), backend.open_slot()
    ids = tiny.prompts(1, 40)[0]
    draft = tree((5, 6, 7, 8, 9, 10, 11, 12), (ROOT, ROOT, 1, 2, 3, 4, 5, 6))  # its path is longer than the window
    rows, others = backend.score([(first, Score(ids[:9], draft)), (second, Score(ids[:22], chain((4, 5))))])
    for node in range(-1, len(draft)):
        assert logs(rows, node) == pytest.approx(plain(model, (*ids[:9], *path_to(draft, node))), abs=1e-3)
    assert logs(others, 1) == pytest.approx(plain(model, (*ids[:22], 4, 5)), abs=1e-3)
    longer = (*ids[:9], 6, 7, 8, 9, 3)  # the second branch is kept, and read on behind it
    assert logs(backend.ask(first, longer), ROOT) == pytest.approx(plain(model, longer), abs=1e-3)
    assert backend.fed[-1] == [1]
    shorter = (*ids[:4], 9, 8)  # rolled back to before the window
    assert logs(backend.ask(first, shorter), ROOT) == pytest.approx(plain(model, shorter), abs=1e-3)
    assert backend.fed[-1] == [2]


def test_early_exit_keeps_its_windows(model: Any) -> None:
    short = tiny.watched(model, context_length=64).early_exit(1)
    ids = tiny.prompts(1, 20)[0]
    rows = short.score([(short.open_slot(), Score(ids, tree((5, 6, 7), (ROOT, ROOT, 1))))])[0]
    assert logs(rows, 2) == pytest.approx(plain(short.model, (*ids, 6, 7)), abs=1e-3)


def test_gemma_3() -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    text = {**sizes, "vocab_size": VOCABULARY, "num_key_value_heads": 4, "head_dim": 8, "layer_types": MIXED}
    config = transformers.Gemma3Config(
        text_config={**text, "sliding_window": WINDOW, "max_position_embeddings": 64},
        vision_config={**sizes, "image_size": 28, "patch_size": 14},
        **{"boi_token_index": 20, "eoi_token_index": 21, "image_token_index": 22},
    )
    torch.manual_seed(0)
    model = transformers.Gemma3ForConditionalGeneration(config).eval()
    backend = tiny.watched(model, context_length=64)
    ids = tiny.prompts(1, 20)[0]
    ids = tuple(token if token < 20 else 5 for token in ids)
    rows = backend.ask(backend.open_slot(), ids, tree((5, 6, 7), (ROOT, ROOT, 1)))
    assert logs(rows, 2) == pytest.approx(plain(model, (*ids, 6, 7)), abs=1e-3)


def test_model_without_kinds_of_layers_or_window_runs() -> None:
    model = tiny.of_family("GPT2Config", n_positions=64)
    backend = tiny.watched(model, context_length=64)
    prompt = tiny.prompts(1)[0]
    asking = decode(Prompt(prompt), Nothing(), Exact(), end_tokens=backend.end_tokens, limit=6)
    assert run(asking, backend, backend.open_slot()).tokens == tiny.greedy(model, prompt, limit=6)[0]
