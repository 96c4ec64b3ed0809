"""Passes in fixed shapes give the rows and ids of others; on a GPU they are replayed as CUDA graphs."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra hf")

from redraft.backends.hf.cache import BLOCK  # noqa: E402
from redraft.backends.hf.decoder_only import WIDTHS, StaticPasses, shape_of  # noqa: E402
from redraft.backends.hf.model import backend_of  # noqa: E402
from redraft.backends.options import HfOptions  # noqa: E402
from redraft.decoding.types import ROOT, Draft, Provenance, Score  # noqa: E402
from redraft.errors import CapabilityError  # noqa: E402
from tests.backends.hf import models as tiny  # noqa: E402
from tests.backends.hf.models import VOCABULARY, Watched, logs  # noqa: E402

DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]


def requests(count: int, seed: int, longest: int = 300) -> list[list[tuple[int, Score]]]:
    """Rounds of requests for one to three of three slots; texts grow, shrink and change, drafts are of any form."""
    draw = random.Random(seed)
    texts: list[list[int]] = [[5], [6], [7]]
    rounds = []
    for _ in range(count):
        asked = []
        for slot in sorted(draw.sample(range(3), draw.randint(1, 3))):
            text = texts[slot]
            del text[max(1, len(text) - draw.choice((0, 0, 0, 2, 30))) :]
            text += [draw.randrange(4, VOCABULARY) for _ in range(draw.choice((1, 1, 2, 7, 40, 90)))]
            del text[longest:]
            nodes = draw.choice((0, 0, 3, 8))
            parents = tuple(draw.choice((node - 1, draw.randint(ROOT, node - 1))) for node in range(nodes))
            tokens = tuple(draw.randrange(4, VOCABULARY) for _ in range(nodes))
            asked.append((slot, Score(tuple(text), Draft(tokens, parents, (Provenance.MODEL,) * nodes))))
        rounds.append(asked)
    return rounds


def pair(model: Any, device: str = "cpu") -> tuple[Watched, Watched]:
    made = [tiny.watched(model, device=device, static=static) for static in (0, 1)]
    for backend in made:
        for _ in range(3):
            backend.open_slot()
    return made[0], made[1]


def windowed() -> Any:
    layers = ["sliding_attention", "full_attention"]
    return tiny.of_family("Gemma3TextConfig", sliding_window=5, layer_types=layers)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", [tiny.qwen3, windowed], ids=["one mask", "a mask for each kind of layer"])
def test_rows_are_those_of_other_passes(make: Any, device: str) -> None:
    plain, static = pair(make(), device)
    for asked in requests(15, seed=3, longest=min(300, plain.context_length - 10)):
        for one, other, (_, score) in zip(plain.score(asked), static.score(asked), asked, strict=True):
            for node in range(ROOT, len(score.draft)):
                assert logs(one, node) == pytest.approx(logs(other, node), abs=2e-3)
                assert one.argmax(node) == other.argmax(node)
    assert plain.fed == static.fed  # what the cache holds is reused alike


def test_few_shapes() -> None:
    _, static = pair(tiny.qwen3())
    for asked in requests(20, seed=4):
        static.score(asked)
    assert static.static is not None
    assert {width for _, width, _ in static.static._passes} <= set(WIDTHS)
    assert {cells for _, _, cells in static.static._passes} <= {BLOCK, 2 * BLOCK}
    keys = static._cache.layers[0].keys
    assert keys.shape[2] == 3 * BLOCK + 1  # all that the context can be, and a cell for padding: it never moves
    place = keys.data_ptr()
    static.score([(0, Score(tuple(range(4, 20)) * 30))])
    assert static._cache.layers[0].keys.data_ptr() == place


@pytest.mark.parametrize(
    ("width", "length", "expected"),
    [(1, 1, (1, 256)), (3, 256, (4, 256)), (33, 257, (64, 512)), (64, 600, (64, 768)), (65, 70, None)],
)
def test_shape(width: int, length: int, expected: tuple[int, int] | None) -> None:
    assert shape_of(width, length) == expected


def test_a_pass_reads_only_what_is_copied() -> None:
    """What a graph would compute: the same function of the same tensors, whatever the caller passes."""
    seen: list[tuple[int, ...]] = []

    def run(inputs: Any, length: int) -> Any:
        seen.append(tuple(sorted(tensor.data_ptr() for tensor in inputs.values())))
        return inputs["ids"] * 2 + length

    passes = StaticPasses(run)
    for number in (1, 2, 3):
        given = {"ids": torch.full((1, 4), number), "rows": torch.tensor([number])}
        assert passes(given, 256).tolist() == [[2 * number + 256] * 4]
    assert len(set(seen)) == 1 and [*passes._passes] == [(1, 4, 256)]


def test_encoder_decoders_have_none() -> None:
    with pytest.raises(CapabilityError, match="static"):
        backend_of(tiny.marian(), tiny.tokenizer(), "tiny", HfOptions(device="cpu", static=1))
