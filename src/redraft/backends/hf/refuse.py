"""Which models of transformers this backend runs, told from their configuration before any weights are read."""

from __future__ import annotations

import inspect
from typing import Any

from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from redraft.errors import CapabilityError

#: Encoder-decoders whose decoders take embeddings and a cache, and whose prompts are known.
ENCODER_DECODERS = ("m2m_100", "marian", "mbart", "mt5", "t5", "umt5")
#: Layers whose cache holds every position.
_CROPPABLE = {"full_attention", "sliding_attention"}
#: What a decoder must take: rows of different lengths, a cache made elsewhere, and a choice of positions.
_NEEDED = {"attention_mask", "position_ids", "past_key_values", "logits_to_keep"}


def check_model(config: Any, name: str) -> None:
    """Refuse a model that cannot be rolled back or masked as drafts need it.

    Args:
        config: of transformers.
        name: what the messages call it.

    Raises:
        CapabilityError: the model is refused; the message says why.
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


def _unfit(config: Any, text: Any) -> str:
    """What is wrong with a model that is no encoder-decoder; empty if nothing is."""
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
    return f"takes no {' nor '.join(sorted(missing))}, which rolling back and batches need" if missing else ""
