"""The training loop: Muon for the matrices, AdamW for the rest, warm-up / constant / linear decay, resumable."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from redraft.train.corpus import LANGUAGE_SHARES, Pair
from redraft.train.examples import Batch, Example, ExampleStream, Mixture
from redraft.train.model import Decoder, Shape

#: Steps that a short training is to have at least, as far as batches of this many ids allow.
STEPS, SMALLEST_BATCH, LARGEST_BATCH = 300, 256, 3072


@dataclass(frozen=True, slots=True)
class Phase:
    """One stretch of training.

    Attributes:
        tokens: its length, padding included.
        prefix: share of prefix pairs, 0-1.
        spoken: share of sources written as a recogniser does, 0-1.
        decay: share of the phase at whose end the rates fall linearly to zero, 0-1; 0 keeps them constant.
        batch: ids a step and process.
        dropout: share of what every block adds that is left out, 0-1; the everyday language is seen many times over.
        rate, embedding_rate: peak learning rates of the matrices (Muon) and of embeddings and norms (AdamW).
        warmup_steps: steps of linear warm-up.
        languages: shares of the target languages.
        distilled: share of examples that a model has made of its own translations, 0-1.
        seed: of the weights and of the order of the data.
    """

    tokens: int
    prefix: float
    decay: float
    spoken: float = 0.0
    batch: int = 3072
    dropout: float = 0.0
    rate: float = 4e-3
    embedding_rate: float = 2.5e-3
    warmup_steps: int = 100
    languages: Mapping[str, float] = field(default_factory=lambda: LANGUAGE_SHARES)
    distilled: float = 0.0
    seed: int = 0


def batch_size(tokens: int, processes: int) -> int:
    """Ids a step and process for a training of ``tokens``: few enough for `STEPS` steps."""
    return max(SMALLEST_BATCH, min(LARGEST_BATCH, tokens // (STEPS * processes)))


class Trainer:
    """Holds a model, its optimizers and how far it has come; saves and restores all of it."""

    def __init__(self, shape: Shape, phase: Phase, device: str = "cpu") -> None:
        torch.manual_seed(phase.seed)
        self.model = Decoder(shape, phase.dropout).to(device)
        self.phase, self.device = phase, device
        self.tokens, self.step = 0, 0
        matrices = [p for name, p in self.model.named_parameters() if p.ndim == 2 and not name.startswith("embedding")]
        others = [p for name, p in self.model.named_parameters() if p.ndim != 2 or name.startswith("embedding")]
        self.optimizers = [
            torch.optim.Muon(matrices, lr=phase.rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=phase.embedding_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
        ]
        self.base_rates = [phase.rate, phase.embedding_rate]

    def run(
        self,
        pairs: Mapping[str, Sequence[Pair]],
        tokenizer: Tokenizer,
        folder: Path,
        every_s: float = 300,
        distilled: Sequence[Example] = (),
    ) -> None:
        """Train to the end of the phase, writing ``last.pt`` to ``folder`` every ``every_s`` seconds and at the end."""
        folder.mkdir(parents=True, exist_ok=True)
        phase = self.phase
        mixture = Mixture(phase.prefix, phase.spoken, languages=phase.languages, given=phase.distilled)
        seed = phase.seed + self.tokens + rank()
        stream = ExampleStream(pairs, tokenizer, mixture, phase.batch, seed, distilled)
        saved = shown = time.monotonic()
        losses: list[Tensor] = []
        with tqdm(
            total=self.phase.tokens, initial=self.tokens, unit="tok", unit_scale=True, mininterval=5, disable=rank() > 0
        ) as bar:
            for batch in takewhile(lambda _: self.tokens < self.phase.tokens, stream):
                losses.append(self.train_step(batch))
                bar.update(self.tokens - bar.n)
                now = time.monotonic()
                if now - shown > 20:
                    mean = float(torch.stack(losses).mean())
                    bar.set_postfix(loss=f"{mean:.3f}", step=self.step)
                    if rank() == 0:
                        self._log(folder / "log.jsonl", mean)
                    losses, shown = [], now
                if now - saved > every_s:
                    self.save(folder / "last.pt")
                    saved = now
        self.save(folder / "last.pt")

    def _log(self, path: Path, loss: float) -> None:
        with path.open("a", encoding="utf-8") as log:
            log.write(json.dumps({"tokens": self.tokens, "step": self.step, "loss": loss}) + "\n")

    def train_step(self, batch: Batch) -> Tensor:
        """One update; returns the mean loss per target token, in nats."""
        scale = self.rate_scale()
        for optimizer, base in zip(self.optimizers, self.base_rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = base * scale
        loss = batch_loss(self.model, batch, self.device)
        loss.backward()  # type: ignore[no-untyped-call]
        tokens = average_gradients(self.model, batch.ids.size)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.tokens += tokens
        self.step += 1
        return loss.detach()

    def rate_scale(self) -> float:
        """The schedule: linear warm-up, constant, then linear to zero over the last ``decay`` of the phase."""
        left = (self.phase.tokens - self.tokens) / self.phase.tokens
        decay = 1.0 if self.phase.decay == 0 else max(0.0, min(1.0, left / self.phase.decay))
        return min(1.0, (self.step + 1) / self.phase.warmup_steps, decay)

    def save(self, path: Path) -> None:
        """Write everything needed to go on, whole or not at all."""
        if rank() > 0:
            return
        state = {
            "shape": asdict(self.model.shape),
            "phase": asdict(self.phase),
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "tokens": self.tokens,
            "step": self.step,
        }
        part = path.with_suffix(".part")
        torch.save(state, part)
        part.replace(path)

    def restore(self, path: Path, *, new_phase: bool) -> None:
        """Go on from a checkpoint; with ``new_phase`` its weights and moments start this trainer's own phase."""
        state = torch.load(path, map_location=self.device)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        if not new_phase:
            self.tokens, self.step = state["tokens"], state["step"]


def batch_loss(model: Decoder, batch: Batch, device: str) -> Tensor:
    """Mean cross-entropy over the learnt positions; no label smoothing, which would flatten what the bias compares."""
    ids = torch.from_numpy(batch.ids).to(device)
    with torch.autocast(device, torch.bfloat16):
        hidden = model.hidden(ids)[torch.from_numpy(batch.rows).to(device), torch.from_numpy(batch.columns).to(device)]
    loss: Tensor = TiedCrossEntropy.apply(hidden, model.embedding.weight, torch.from_numpy(batch.targets).to(device))
    return loss


class TiedCrossEntropy(torch.autograd.Function):
    """Mean cross-entropy of ``hidden @ weight.T`` in chunks of rows whose logits stay in the processor's cache.

    The gradients are made on the way forward, so the (n, vocabulary) logits are never stored; on a CPU that is twice
    as fast as the plain way, which is bound by memory.
    """

    CHUNK = 256

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        """``hidden`` (n, hidden), ``weight`` (vocabulary, hidden), ``targets`` (n,) -> a scalar."""
        n = len(hidden)
        padding = -n % TiedCrossEntropy.CHUNK
        rows = F.pad(hidden.detach(), (0, 0, 0, padding)).to(torch.bfloat16)
        wanted = F.pad(targets, (0, padding))
        low = weight.detach().to(torch.bfloat16)
        grad_rows, grad_weight = torch.empty_like(rows), torch.zeros_like(weight)
        total = torch.zeros((), device=hidden.device)
        for start in range(0, len(rows), TiedCrossEntropy.CHUNK):
            here = slice(start, start + TiedCrossEntropy.CHUNK)
            real = min(TiedCrossEntropy.CHUNK, n - start)
            logits = (rows[here] @ low.T).float()
            total += F.cross_entropy(logits[:real], wanted[here][:real], reduction="sum")
            slope = torch.softmax(logits, dim=-1)
            slope[torch.arange(len(slope)), wanted[here]] -= 1.0
            slope[real:] = 0.0
            slope16 = (slope / n).to(torch.bfloat16)
            grad_rows[here] = slope16 @ low
            grad_weight += slope16.T @ rows[here]
        ctx.save_for_backward(grad_rows[:n].to(hidden.dtype), grad_weight)
        return total / n

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, None]:
        """Scale what `forward` has kept."""
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grad_outputs[0], grad_weight * grad_outputs[0], None


def world_size() -> int:
    """Processes that train together; 1 without torch.distributed."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """This process's number among them."""
    return dist.get_rank() if dist.is_initialized() else 0


def average_gradients(model: nn.Module, tokens: int) -> int:
    """Average gradients over processes; returns the sum of their ``tokens``, the same for all of them.

    On two CPU cores two processes of one thread train 1.4 times as fast as one process of two threads, whose many small
    parallel regions wait for each other.
    """
    if world_size() == 1:
        return tokens
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    flat = torch._utils._flatten_dense_tensors([*gradients, torch.tensor([float(tokens)])])
    dist.all_reduce(flat)
    total = int(flat[-1])
    flat = flat[:-1] / world_size()
    for gradient, averaged in zip(gradients, torch._utils._unflatten_dense_tensors(flat, gradients), strict=True):
        gradient.copy_(averaged)
    return total
