"""The layers of a model's decoder, and the model without the later ones, for early exit."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from torch import nn

from redraft.errors import CapabilityError


def decoder_layers(model: Any) -> Sequence[nn.Module]:
    """Return the layers of a decoder; empty if they are not in one list."""
    return _layers(_stack(model))[1]


def shortened(model: Any, layers: int, name: str) -> Any:
    """Return the model with the first ``layers`` layers of its decoder; parameters are shared.

    Raises:
        CapabilityError: ``layers`` is not below the number of layers.
    """
    stack = _stack(model)
    field, every = _layers(stack)
    if not 1 <= layers < len(every):
        raise CapabilityError(
            f"an early exit of model {name!r} must be after 1 to {len(every) - 1} of its {len(every)} layers, "
            f"not after {layers}"
        )
    path = next(place for place, module in model.named_modules() if module is stack)
    short = inner = _shallow(model)
    for step in filter(None, path.split(".")):
        outer, inner = inner, _shallow(inner._modules[step])
        outer._modules[step] = inner
    inner._modules[field] = nn.ModuleList(every[:layers])
    return short


def _stack(model: Any) -> nn.Module:
    stack: nn.Module = model.get_decoder() if model.config.is_encoder_decoder else model.base_model
    return stack


def _layers(stack: nn.Module) -> tuple[str, Sequence[nn.Module]]:
    """Return name and content of a decoder's longest list of modules."""
    found = [(name, list(part)) for name, part in stack.named_children() if isinstance(part, nn.ModuleList)]
    return max(found, key=lambda each: len(each[1]), default=("", []))


def _shallow(module: Any) -> Any:
    twin = copy(module)
    twin._modules = dict(module._modules)
    return twin
