"""Options of the hf backend; can be made and checked without torch."""

from __future__ import annotations

from dataclasses import dataclass

from redraft.backends.slots import check_whole_numbers
from redraft.errors import OptionError

DTYPES = ("float32", "bfloat16")
DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True, slots=True)
class HfOptions:
    """Options of the backend; all are checked.

    Attributes:
        context_length: ids per slot; capped at the model's trained length.
        slots: number of independent sequences, one for each stream and target language.
        dtype: ``float32`` or ``bfloat16``, for weights and cache.
        device: ``cpu``, ``cuda``, or ``auto`` for a GPU if there is one.
        threads: CPU threads of the whole process; 0 keeps the current number.

    Raises:
        OptionError: a value is invalid.
    """

    context_length: int = 2048
    slots: int = 1
    dtype: str = "float32"
    device: str = "auto"
    threads: int = 0

    def __post_init__(self) -> None:
        check_whole_numbers(self, context_length=(16, 1 << 20), slots=(1, 4096), threads=(0, 1024))
        for name, words in (("dtype", DTYPES), ("device", DEVICES)):
            if getattr(self, name) not in words:
                allowed = f"{', '.join(words[:-1])} or {words[-1]}"
                raise OptionError(f"must be {allowed}, not {getattr(self, name)!r}", name)
