"""Which format of a model's weights is fastest on this machine, measured on the file in each format.

Only times count, so the file may have any format: weights that were quantised twice cost as much as others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from redraft.backends.costs import measured_curve
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.quantise import quantise
from redraft.decoding.cost import CostCurve

FORMATS = ("BF16", "Q8_0", "Q4_K_M", "Q4_0")
#: An update of average size on talks: new ids of the prompt, output tokens with the end, tokens of the draft, and how
#: many of these are accepted.
_NEW, _OUTPUT, _DRAFT, _ACCEPTED = 5, 21, 17, 13


@dataclass(frozen=True, slots=True)
class FormatCost:
    """What a format costs.

    Attributes:
        format: its name, one of `FORMATS`.
        megabytes: size of the file.
        curve: T(n).
    """

    format: str
    megabytes: float
    curve: CostCurve

    @property
    def ar(self) -> float:
        """Seconds of an update without a draft."""
        return self.curve(_NEW) + (_OUTPUT - 1) * self.curve(1)

    @property
    def ssbd(self) -> float:
        """Seconds of the same update with the previous output as its draft."""
        return self.curve(_NEW + _DRAFT) + (_OUTPUT - _ACCEPTED - 1) * self.curve(1)


def measure_formats(model: Path, options: LlamaOptions) -> Iterator[FormatCost]:
    """Yield the cost of each of `FORMATS`; each is written to a temporary folder for as long as it is measured.

    Raises:
        ModelError: the file is invalid, or the folder has no room.
    """
    with tempfile.TemporaryDirectory(prefix="redraft-") as folder:
        for name in FORMATS:
            path = Path(folder) / "model.gguf"
            quantise(model, path, name)
            with closing(LlamaCpp(path, options)) as backend:
                curve = measured_curve(backend)
            yield FormatCost(name, path.stat().st_size / 1e6, curve)
