"""Passes in a few fixed shapes, which a GPU replays as CUDA graphs.

A short pass is hundreds of small kernels, and starting them takes longer than running them.  A graph starts all of them
at once, but has fixed shapes and addresses: so a pass is padded to the next of a few widths and lengths, and its inputs
are copied into tensors that stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.backends.hf.cache import BLOCK

#: Numbers of new ids to which passes are padded; wider ones, such as those of new prompts, run as they are.
WIDTHS = (1, 2, 4, 8, 16, 32, 64)

Inputs = Mapping[str, Tensor]


def shape_of(width: int, length: int) -> tuple[int, int] | None:
    """Return the width and the number of cells to which a pass is padded; None if it runs as it is."""
    fixed = next((each for each in WIDTHS if each >= width), None)
    return None if fixed is None else (fixed, cells_of(length))


def cells_of(length: int) -> int:
    """Return the number of cells to which a length is rounded up."""
    return -(-length // BLOCK) * BLOCK


@dataclass(slots=True)
class _Pass:
    inputs: dict[str, Tensor]
    output: Tensor
    graph: torch.cuda.CUDAGraph | None


class StaticPasses:
    """Runs a function in fixed shapes: captured once for each on a GPU and replayed, called elsewhere.

    Args:
        run: computes a pass from its inputs and its number of cells; all that changes from pass to pass must be in the
            inputs.
    """

    def __init__(self, run: Callable[[Inputs, int], Tensor]) -> None:
        self._run = run
        #: By (batch, width, cells).
        self._passes: dict[tuple[int, int, int], _Pass] = {}

    def __call__(self, inputs: Inputs, length: int) -> Tensor:
        """Return what the function returns; another pass of the shape overwrites it.

        Args:
            inputs: tensors by name; ``ids``, (batch, width), is among them.
            length: number of cells, as in `shape_of`.
        """
        batch, width = inputs["ids"].shape
        key = batch, width, length
        if (found := self._passes.get(key)) is None:
            found = self._passes[key] = self._captured(inputs, length)
        for name, tensor in inputs.items():
            found.inputs[name].copy_(tensor)
        if found.graph is None:
            found.output = self._run(found.inputs, length)
        else:
            found.graph.replay()
        return found.output

    def _captured(self, inputs: Inputs, length: int) -> _Pass:
        held = {name: tensor.clone() for name, tensor in inputs.items()}
        if not held["ids"].is_cuda:
            return _Pass(held, held["ids"], None)
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # libraries set themselves up, which cannot be captured
            self._run(held, length)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = self._run(held, length)
        return _Pass(held, output, graph)
