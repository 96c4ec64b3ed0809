"""Options of the hf backend; can be made and checked without torch."""

from __future__ import annotations

from dataclasses import dataclass

from redraft.backends.options import check_fields
from redraft.errors import whole


@dataclass(frozen=True, slots=True)
class HfOptions:
    """Options of the backend; all are checked.

    Attributes:
        context_length: ids per slot; capped at the model's trained length.
        slots: number of independent sequences, one for each stream and target language.
        dtype: ``float32`` or ``bfloat16``, for weights and cache.
        device: ``cpu``, ``cuda``, or ``auto`` for a GPU if there is one.
        threads: CPU threads of the whole process; 0 keeps the current number.
        static: 1 pads short passes of decoder-only models to a few fixed shapes, and replays them as CUDA graphs on a
            GPU.

    Raises:
        OptionError: a value is invalid.
    """

    context_length: int = 2048
    slots: int = 1
    dtype: str = "float32"
    device: str = "auto"
    threads: int = 0
    static: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        whole("slots", self.slots, 1, 4096)
