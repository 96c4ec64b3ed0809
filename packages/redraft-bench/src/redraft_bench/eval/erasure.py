"""NE in the tokens of another tokenizer: SSBD v2 computes it with that of Flores-101 from sacrebleu (section A.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from redraft.decoding.types import common_prefix
from redraft_bench.eval.record import Record

Tokenize = Callable[[str], Sequence[str]]


def flores_tokenizer() -> Tokenize | None:
    """Return sacrebleu's tokenizer of Flores-101; None if its model has not been fetched (docs/metrics.md)."""
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS, Flores101Tokenizer
    from sacrebleu.utils import SACREBLEU_DIR

    url = SPM_MODELS["flores101"]["url"]
    if find_spec("sentencepiece") is None or not (Path(SACREBLEU_DIR) / "models" / Path(url).name).exists():
        return None
    made = Flores101Tokenizer()
    return lambda text: made(text).split()


def erasure_of_texts(records: Iterable[Record], tokenize: Tokenize) -> float | None:
    """Return NE of whole outputs in tokens of their texts, pooled over segments; None without output."""
    erased = final = 0
    for record in records:
        outputs = [(), *(tuple(tokenize(step.text + step.unstable)) for step in record.steps)]
        erased += sum(len(before) - common_prefix(before, after) for before, after in pairwise(outputs))
        final += len(outputs[-1])
    return round(erased / final, 4) if final else None
