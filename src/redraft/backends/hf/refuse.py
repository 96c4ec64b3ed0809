"""Check from its configuration whether this backend can run a transformers model, before loading weights."""

from __future__ import annotations

import inspect
from typing import Any

from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from redraft.errors import CapabilityError

#: Supported encoder-decoders: their decoders take embeddings and a cache, and their prompt formats are known.
ENCODER_DECODERS = ("m2m_100", "marian", "mbart", "mt5", "t5", "umt5")
#: Layer types whose cache keeps every position.
_CROPPABLE = {"full_attention", "sliding_attention"}
#: Required arguments of a decoder besides an external cache: for rows of different lengths, and a choice of positions.
_NEEDED = {"attention_mask", "position_ids", "logits_to_keep"}
#: Names of the argument for the cache: since transformers 5.24, and before.
_CACHE_NAMES = ("cache", "past_key_values")


def check_model(config: Any, name: str) -> None:
    """Check that a model supports rolling back and the masks that drafts need.

    Args:
        config: its configuration in transformers.
        name: its name in error messages.

    Raises:
        CapabilityError: the model is not supported; the message says why.
    """
    if config.is_encoder_decoder:
        if config.model_type not in ENCODER_DECODERS:
            raise CapabilityError(
                f"model {name!r} is an encoder-decoder of type {config.model_type!r}, which this backend does not run; "
                f"it runs {', '.join(ENCODER_DECODERS[:-1])} and {ENCODER_DECODERS[-1]}"
            )
        return
    text = config.get_text_config()
    reason = _unfit(config, text)
    if reason:
        raise CapabilityError(f"model {name!r} ({config.model_type}) {reason}; a decoder-only transformer is needed")


def cache_argument(model_class: type) -> str | None:
    """Return the name of the argument by which a model takes its cache; None if it takes none."""
    parameters = inspect.signature(model_class.forward).parameters  # type: ignore[attr-defined]
    return next((name for name in _CACHE_NAMES if name in parameters), None)


def _unfit(config: Any, text: Any) -> str:
    """Return why a decoder-only model is not supported; empty if it is."""
    model_class = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    if isinstance(model_class, list | tuple):
        model_class = model_class[0]
    if model_class is None:
        return "is no language model with a decoder"
    if getattr(model_class, "_is_stateful", False):
        return "has recurrent layers, so its memory cannot be rolled back"
    foreign = set(getattr(text, "layer_types", None) or ()) - _CROPPABLE
    if foreign:
        return f"has layers of type {', '.join(sorted(foreign))}, whose memory cannot be rolled back"
    if config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return "is an encoder"
    if getattr(text, "use_bidirectional_attention", False):
        return "attends to what comes after"
    if getattr(text, "num_kv_shared_layers", 0):
        return "shares caches between layers, which this backend does not"
    missing = _NEEDED - set(inspect.signature(model_class.forward).parameters)
    if cache_argument(model_class) is None:
        missing.add("past_key_values")
    return f"takes no {' nor '.join(sorted(missing))}, which rolling back and batches need" if missing else ""
