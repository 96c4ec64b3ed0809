"""Costs of a pass: by the data sheet, by a curve, and from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from redraft.backends.gguf_facts import gguf_facts
from redraft.decoding.cost import CostCurve
from redraft.errors import InputError, ModelError, OptionError
from redraft.measure.plan.costs import LinearCost, Roofline, from_curve, read_costs, write_costs
from redraft.measure.plan.hardware import HARDWARE, Hardware, find_hardware
from redraft.measure.plan.model import ModelSize, model_size
from redraft.measure.plan.rehearse import positive_fit
from redraft.models import shipped_path

#: 1 GB of weights, 1 MB of cache for a token.
SIZE = ModelSize("made up", 500_000_000, 1e9, 125, 8, 250, "")
#: 100 GB and a teraflop per second.
SLOW = Hardware("slow", True, 1e11, 1e12, 8e9, "")


def test_few_tokens_take_the_time_of_reading_weights_and_cache() -> None:
    assert SIZE.cell_bytes == 1_000_000
    cost = Roofline(SLOW, SIZE, memory_share=0.5, compute_share=1.0, overhead=0.001)
    assert cost(1, 1, 99) == pytest.approx((1e9 + 100e6) / 50e9 + 0.001)


def test_many_tokens_take_the_time_of_their_arithmetic() -> None:
    cost = Roofline(SLOW, SIZE, memory_share=1.0, compute_share=0.5, overhead=0.0)
    assert cost(100, 100, 0) == pytest.approx(2 * 500e6 * 100 / 0.5e12)


def test_a_curve_becomes_a_line_through_its_first_point() -> None:
    cost = from_curve(CostCurve((1, 2, 11), (0.003, 0.0035, 0.008)), "")
    assert cost(1, 1, 0) == pytest.approx(0.003)
    assert cost(1, 11, 0) == pytest.approx(0.008)
    assert cost(4, 4, 0) == pytest.approx(4 * cost(1, 1, 0))  # nothing is known of several requests


def test_costs_survive_a_file(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    write_costs(path, LinearCost(0.1, 0.2, 0.3, {"ar": 0.4}, "measured here"))
    found = read_costs(path)
    assert (found.base, found.request, found.token, found.host) == (0.1, 0.2, 0.3, {"ar": 0.4})
    assert found.source == "given in costs.json: measured here"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no json", "cannot be read"),
        ("[]", "must be one object"),
        ('{"base": 0}', "must be one object"),
        ('{"base": 0, "request": -1, "token": 0}', "seconds, 0 or more"),
        ('{"base": 0, "request": NaN, "token": 0}', "seconds, 0 or more"),
        ('{"base": 0, "request": 1, "token": 0, "host": 3}', "seconds, 0 or more"),
    ],
)
def test_wrong_costs_are_refused_in_a_sentence(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        read_costs(path)


def test_a_fit_finds_the_costs_of_passes_and_none_below_zero() -> None:
    sizes = [(1, 1), (1, 9), (4, 4), (8, 30), (16, 16)]
    assert positive_fit(sizes, [0.5 + 2 * m + 3 * n for m, n in sizes]) == pytest.approx((0.5, 2, 3))
    base, request, token = positive_fit(sizes, [3.0 * n - 0.1 for _, n in sizes])
    assert base == 0 and request >= 0 and token == pytest.approx(3, rel=0.05)


def test_unknown_hardware_is_refused_with_all_names() -> None:
    with pytest.raises(OptionError, match=", ".join(HARDWARE)):
        find_hardware("abacus")


def test_the_sizes_of_a_file_are_read_without_its_weights() -> None:
    facts = gguf_facts(shipped_path("demo"))
    assert (facts.parameters, facts.layers, facts.kv_heads, facts.head) == (27_663_616, 6, 8, 64)
    assert model_size("demo", "BF16").weight_bytes == facts.weight_bytes < shipped_path("demo").stat().st_size


def test_a_shape_has_the_published_sizes() -> None:
    found = model_size("tower-2b", "BF16")
    assert found.parameters == pytest.approx(2.6e9, rel=0.01)
    assert found.weight_bytes == 2 * found.parameters
    assert found.cell_bytes == 2 * 26 * 4 * 256 * 2


def test_unknown_models_and_broken_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="one of tiny, qwen3-0.6b.*or the path of a GGUF file, not 'nothing'"):
        model_size("nothing", "BF16")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(20))
    with pytest.raises(ModelError, match=r"broken\.gguf"):
        model_size(str(broken), "BF16")
    with pytest.raises(OptionError, match="format must be one of F32"):
        model_size("tower-2b", "Q1")
