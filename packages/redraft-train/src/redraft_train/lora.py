"""LoRA (Hu et al. 2022, "LoRA: Low-rank adaptation of large language models") on prompts and outputs.

The loss covers only the outputs and their end tokens.  For early exit it is the mean of two losses, that of the first
layers and that of the whole model, with the same head (Kim et al. 2023, BiLD, section 4.4).
"""

from __future__ import annotations

import hashlib
import json
import random
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from redraft.backends.hf.base import shortened
from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder
from redraft.errors import CapabilityError
from redraft_train.batch import Example, TrainingBatch, collate, length, logits

#: Share of the steps in which the learning rate rises; it then falls to zero.
WARMUP = 0.05
#: Seconds between two checkpoints.
EVERY_S = 300.0
#: Number of batches within which examples are sorted by length.
POOL = 50


@dataclass(frozen=True, slots=True)
class Lora:
    """Training settings.

    Attributes:
        rank: rank of the matrices added to every linear layer except the output.
        alpha: scale of the adapters, alpha / rank.
        rate: peak learning rate of AdamW.
        epochs: number of epochs.
        batch: examples per step.
        seed: random seed of the added weights and of the order of the examples.
        early_exit: number of first layers that learn to draft; 0 for none.
    """

    rank: int = 16
    alpha: float = 32.0
    rate: float = 5e-4
    epochs: int = 3
    batch: int = 16
    seed: int = 0
    early_exit: int = 0


def fine_tune(
    backend: HfDecoder | HfEncoderDecoder, examples: Sequence[Example], how: Lora, checkpoint: Path
) -> PeftModel:
    """Train adapters for the model of ``backend`` on ``examples``; the model's own weights do not change.

    Args:
        backend: the model.
        examples: the training examples.
        how: training settings.
        checkpoint: file written every few minutes and at the end; a run with the same examples and settings resumes
            from it.

    Raises:
        CapabilityError: LoRA cannot be applied to this model, or it has no such early exit.
    """
    torch.manual_seed(how.seed)
    adapted = _adapted(backend, how)
    run = _Run(adapted, len(examples), how, checkpoint, _fingerprint(examples, how))
    adapted.eval()  # no dropout, so that a resumed run gives the same result
    saved = time.monotonic()
    with tqdm(total=run.steps, initial=run.step, unit="step", desc="LoRA", mininterval=2) as bar:
        for group in islice(_groups(examples, how), run.step, run.steps):
            loss = run.train_step(collate(group, backend.pad_token, backend.device))
            if run.step % 10 == 0:
                bar.set_postfix(loss=f"{float(loss):.3f}", refresh=False)
            bar.update()
            if time.monotonic() - saved > EVERY_S:
                run.save()
                saved = time.monotonic()
    run.save()
    return adapted


def _adapted(backend: HfDecoder | HfEncoderDecoder, how: Lora) -> PeftModel:
    config = LoraConfig(
        r=how.rank,
        lora_alpha=how.alpha,
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="SEQ_2_SEQ_LM" if backend.model.config.is_encoder_decoder else "CAUSAL_LM",
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft uses a deprecated name of transformers
            return get_peft_model(backend.model, config)
    except ValueError as error:
        reason = str(error).split(". ")[0].rstrip(".")
        raise CapabilityError(f"model {backend.name!r} cannot be adapted with LoRA: {reason}") from error


def merge(adapted: PeftModel) -> Any:
    """Return the transformers model with the adapters merged into its weights."""
    with warnings.catch_warnings():
        # peft warns when embeddings are not tied although the configuration says so (T5 v1.1).
        warnings.filterwarnings("ignore", "Input and output embeddings are no longer tied")
        return adapted.merge_and_unload()


class _Run:
    """Adapters with their optimizer and progress."""

    def __init__(self, adapted: PeftModel, examples: int, how: Lora, checkpoint: Path, fingerprint: str) -> None:
        self._adapted, self._how = adapted, how
        self._checkpoint, self._fingerprint = checkpoint, fingerprint
        self._model: Any = adapted.get_base_model()
        exits = [shortened(self._model, how.early_exit, "to train")] if how.early_exit else []
        self._trained = [self._model, *exits]
        self._learnt = [weights for weights in adapted.parameters() if weights.requires_grad]
        self._optimizer = torch.optim.AdamW(self._learnt, lr=how.rate, weight_decay=0.0)
        self.step, self.steps = 0, how.epochs * -(-examples // how.batch)
        if checkpoint.exists():
            self._restore()

    def train_step(self, batch: TrainingBatch) -> Tensor:
        """Do one optimizer step; return the mean loss per target id in nats."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._how.rate * _rate_scale(self.step, self.steps)
        losses = [F.cross_entropy(logits(model, batch), batch.targets) for model in self._trained]
        loss = torch.stack(losses).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._learnt, 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return loss.detach()

    def save(self) -> None:
        """Write the state for resuming, atomically."""
        state = {
            "fingerprint": self._fingerprint,
            "step": self.step,
            "adapters": get_peft_model_state_dict(self._adapted, save_embedding_layers=False),
            "optimizer": self._optimizer.state_dict(),
        }
        part = self._checkpoint.with_suffix(".part")
        torch.save(state, part)
        part.replace(self._checkpoint)

    def _restore(self) -> None:
        state = torch.load(self._checkpoint, map_location="cpu")
        if state["fingerprint"] == self._fingerprint:
            set_peft_model_state_dict(self._adapted, state["adapters"])
            self._optimizer.load_state_dict(state["optimizer"])
            self.step = state["step"]


def _fingerprint(examples: Sequence[Example], how: Lora) -> str:
    """Return a hash of examples and settings."""
    ids = [(prompt.ids, prompt.encoder, learnt) for prompt, learnt in examples]
    return hashlib.sha256(json.dumps([ids, asdict(how)]).encode()).hexdigest()


def _rate_scale(step: int, steps: int) -> float:
    """Return the learning rate's scale: linear warm-up, then linear decay to zero."""
    return min((step + 1) / max(1.0, WARMUP * steps), (steps - step) / steps)


def _groups(examples: Sequence[Example], how: Lora) -> Iterator[list[Example]]:
    """Yield batches of examples of similar length, each example once per epoch."""
    for epoch in range(how.epochs):
        generator = random.Random(how.seed * 1_000_003 + epoch)
        order = generator.sample(range(len(examples)), len(examples))
        # Pools are multiples of the batch size, so that only an epoch's last batch can be short.
        pools = (order[start : start + POOL * how.batch] for start in range(0, len(order), POOL * how.batch))
        ordered = [place for pool in pools for place in sorted(pool, key=lambda place: length(examples[place]))]
        groups = [ordered[start : start + how.batch] for start in range(0, len(ordered), how.batch)]
        generator.shuffle(groups)
        for group in groups:
            yield [examples[place] for place in group]
