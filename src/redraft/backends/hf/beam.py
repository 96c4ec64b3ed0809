"""Beam search, by transformers' own ``generate``: the quality that greedy decoding is compared with.

It is no method of the engine: it keeps several outputs at once, so there is no one draft to verify.
"""

from __future__ import annotations

import torch

from redraft.backends.hf.base import HfBackend
from redraft.decoding.types import Prompt
from redraft.errors import OptionError


@torch.inference_mode()
def beam_search(backend: HfBackend, prompt: Prompt, beams: int = 5, limit: int = 256) -> tuple[int, ...]:  # type: ignore[type-arg]
    """Output ids of the best of ``beams`` hypotheses, without the end token; at most ``limit`` of them.

    Raises:
        OptionError: ``beams`` or ``limit`` is below 1.
    """
    for name, value in (("beams", beams), ("limit", limit)):
        if value < 1:
            raise OptionError(f"{name} must be a whole number of 1 or more, not {value!r}")
    read = torch.tensor([prompt.ids], device=backend.device)
    inputs = {"input_ids": read, "attention_mask": torch.ones_like(read)}
    if prompt.encoder:
        source = torch.tensor([prompt.encoder], device=backend.device)
        inputs = {"input_ids": source, "attention_mask": torch.ones_like(source), "decoder_input_ids": read}
        # The prompt has the start token and the target's code already; ``generate`` would add its own to them.
        inputs |= {"decoder_start_token_id": prompt.ids[0], "forced_bos_token_id": None}
    found = backend.model.generate(
        **inputs,
        num_beams=beams,
        do_sample=False,
        max_new_tokens=limit,
        eos_token_id=sorted(backend.end_tokens),
        pad_token_id=backend.pad_token,
    )[0, len(prompt.ids) :].tolist()
    end = next((place for place, token in enumerate(found) if token in backend.end_tokens), len(found))
    return tuple(found[:end])
