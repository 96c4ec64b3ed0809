"""Sessions that share a real model, in 32-bit floats: their texts never mix."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.serve.interleaved import compare, talks

pytest.importorskip("gguf")

WORDS = "we saw her duck under the old table and it was there again in the rain".split()


def test_200_interleaved_sessions_get_byte_for_byte_what_each_gets_alone(tmp_path: Path) -> None:
    from tests.gguf_models import write_llama

    model = write_llama(tmp_path / "f32.gguf", facts={"redraft.prompt": "{source}<2{code}>"})
    chance = random.Random(0)
    sentences = [f"{number} {' '.join(chance.choices(WORDS, k=chance.randint(2, 6)))}" for number in range(200)]
    found = compare(model, talks(sentences, 200), ["de", "ja"], max_tokens=8)
    assert (found.finals, found.differing) == (200, 0)
    assert found.different > 150  # so that a mix-up would show
    assert found.most_requests > 20
