"""Shapes of known models."""

from __future__ import annotations

from dataclasses import replace

import pytest

from redraft_bench.models.shape import SHAPES


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("qwen3-0.6b", 596_049_920),
        ("qwen3-1.7b", 1_720_574_976),
        ("qwen3-4b", 4_022_468_096),
        ("qwen3-8b", 8_190_735_360),
        ("tower-2b", 2_614_341_888),  # Gemma 2 2B
        ("tower-9b", 9_241_705_984),  # Gemma 2 9B
    ],
)
def test_as_many_parameters_as_published(name: str, published: int) -> None:
    assert SHAPES[name].parameters == published


def test_untied_embeddings_count_twice() -> None:
    tied = SHAPES["tiny"]
    untied = replace(tied, tied=False)
    assert untied.parameters - tied.parameters == tied.vocabulary * tied.hidden
    assert {name for name, _size in untied.tensors()} - {name for name, _size in tied.tensors()} == {"output.weight"}


@pytest.mark.parametrize("name", SHAPES)
def test_every_row_of_matrix_fills_blocks_of_256(name: str) -> None:
    # Otherwise llama.cpp takes another format for it than was asked for.
    matrices = [size for _name, size in SHAPES[name].tensors() if len(size) == 2]
    assert all(size[1] % 256 == 0 for size in matrices)
