"""The training loop: Muon for matrices, AdamW for the rest, warm-up / constant / linear decay, resumable."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset
from tqdm import tqdm

from redraft_train.recipe.corpus import Pair
from redraft_train.recipe.examples import BATCH, Alternating, Batch, Example, ExampleStream, Mixture
from redraft_train.recipe.loss import batch_loss, divergence_slope, softmax_slope
from redraft_train.recipe.model import Decoder, Shape
from redraft_train.recipe.muon import Muon
from redraft_train.recipe.rounding import rounded

#: Minimum number of steps of a short training, as far as batches between these sizes in ids allow.
STEPS, SMALLEST_BATCH, LARGEST_BATCH = 300, 256, BATCH


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of training.

    Attributes:
        tokens: its length in tokens, including padding.
        prefix: share of prefix pairs, 0-1.
        spoken: share of sources in the style of a recogniser, 0-1.
        unfinished: share of prefix pairs whose source ends as a recogniser's unfinished text does, 0-1.
        decay: final share of the phase in which the rates fall linearly to zero, 0-1; 0 keeps them constant.
        batch: ids per step and process.
        dropout: share of each block's output that is dropped, 0-1; everyday sentences are repeated many times.
        rate: peak learning rate of the matrices (Muon).
        embedding_rate: peak learning rate of embeddings and norms (AdamW).
        warmup_steps: steps of linear warm-up.
        said: share of batches of whole utterances of people, 0-1, see `recipe.examples.Mixture`.  The model learns
            their translations; on all other batches, it learns to predict what it predicted before the phase.
        every_s: seconds between two checkpoints.
        smoothed: steps over which the weights are averaged, exponentially; the average is the result.  0 takes the last
            weights.
        distilled: share of examples made of a model's own translations, 0-1.
        rounded: whether the matrices are rounded as in Q4_0 for the loss, see `recipe.rounding`.
        seed: random seed of the weights and of the order of the data.
    """

    tokens: int
    prefix: float
    decay: float
    spoken: float = 0.0
    unfinished: float = 0.0
    batch: int = BATCH
    dropout: float = 0.0
    rate: float = 4e-3
    embedding_rate: float = 2.5e-3
    warmup_steps: int = 100
    said: float = 0.0
    every_s: float = 300
    smoothed: int = 0
    distilled: float = 0.0
    rounded: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Hardware:
    """Hardware of a training; the result differs only by rounding and the order of examples.

    Attributes:
        device: ``cpu`` or ``cuda``.
        processes: number of parallel training processes, one thread each on a CPU; 1 on a GPU.
        compiled: whether to fuse operations between matrix products with torch.compile; needs a C++ compiler.
        scale: multiplies the batch size; learning rates grow with its square root.
        workers: processes that make examples in parallel; 0 makes them in the training process.
        minutes: stop with a checkpoint after this time; None trains to the end.
        within: length of every phase in minutes of training, over all its runs, instead of its tokens; the rates decay
            accordingly.  None counts tokens.
    """

    device: str = "cpu"
    processes: int = 1
    compiled: bool = False
    scale: int = 1
    workers: int = 0
    minutes: float | None = None
    within: float | None = None


def batch_size(tokens: int, processes: int) -> int:
    """Return ids per step and process for a training of ``tokens``, small enough for `STEPS` steps."""
    return max(SMALLEST_BATCH, min(LARGEST_BATCH, tokens // (STEPS * processes)))


class Trainer:
    """A model, its optimizers and its progress, which can be saved and restored."""

    def __init__(self, shape: Shape, phase: Phase, hardware: Hardware = Hardware()) -> None:
        torch.manual_seed(phase.seed)
        self._slope: Callable[..., tuple[Tensor, Tensor]] = softmax_slope
        self._divergence: Callable[..., tuple[Tensor, Tensor]] = divergence_slope
        self.model = Decoder(shape, phase.dropout).to(hardware.device)
        if hardware.compiled:
            self.model.compile_blocks()
            self._slope = torch.compile(softmax_slope, dynamic=False)
            self._divergence = torch.compile(divergence_slope, dynamic=False)
        self.phase, self.hardware = phase, hardware
        self.tokens, self.step, self.seconds = 0, 0, 0.0
        self._since = time.monotonic()
        self._original: Decoder | None = None
        self.smooth = [p.detach().clone() for p in self.model.parameters()] if phase.smoothed else []
        self._matrices = [
            p for name, p in self.model.named_parameters() if p.ndim == 2 and not name.startswith("embedding")
        ]
        others = [p for name, p in self.model.named_parameters() if p.ndim != 2 or name.startswith("embedding")]
        self.optimizers = [
            Muon(self._matrices, lr=phase.rate),
            torch.optim.AdamW(others, lr=phase.embedding_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
        ]
        self.base_rates = [rate * hardware.scale**0.5 for rate in (phase.rate, phase.embedding_rate)]

    def run(
        self,
        pairs: Mapping[str, Sequence[Pair]],
        tokenizer: Tokenizer,
        folder: Path,
        every_s: float = 300,
        distilled: Sequence[Example] = (),
        watch: Callable[[Decoder], Mapping[str, object]] | None = None,
    ) -> bool:
        """Train to the end of the phase or of the time; return whether the phase is complete.

        ``last.pt`` is written to ``folder`` every ``every_s`` seconds and at the end.

        Args:
            pairs: training pairs by target language.
            tokenizer: the tokenizer.
            folder: folder of the checkpoints.
            every_s: seconds between two checkpoints.
            distilled: examples made of a model's translations.
            watch: measures the result so far, for the log, with every checkpoint.
        """
        folder.mkdir(parents=True, exist_ok=True)
        stream = self._examples(pairs, tokenizer, distilled)
        self._since = saved = shown = time.monotonic()
        limit = float("inf") if self.hardware.minutes is None else self.seconds + 60 * self.hardware.minutes
        losses: list[Tensor] = []
        with tqdm(
            total=None if self.hardware.within else self.phase.tokens,
            initial=self.tokens,
            unit="tok",
            unit_scale=True,
            mininterval=5,
            disable=rank() > 0,
        ) as bar:
            for batch in takewhile(lambda _: self.progress() < 1, stream):
                losses.append(self.train_step(batch))
                bar.update(self.tokens - bar.n)
                now = time.monotonic()
                if now - shown > 20:
                    mean = float(torch.stack(losses).mean())
                    bar.set_postfix(loss=f"{mean:.3f}", step=self.step)
                    if rank() == 0:
                        self._log(folder / "log.jsonl", {"loss": mean})
                    losses, shown = [], now
                if self.seconds > limit:
                    break
                if now - saved > every_s:
                    self.save(folder / "last.pt")
                    if watch and rank() == 0:
                        self._log(folder / "log.jsonl", watch(self.result()))
                    saved = now
        self.save(folder / "last.pt")
        return self.progress() >= 1

    def _examples(
        self, pairs: Mapping[str, Sequence[Pair]], tokenizer: Tokenizer, distilled: Sequence[Example]
    ) -> Iterable[Batch]:
        """Return the stream of batches, made in this process or by workers."""
        phase, hardware = self.phase, self.hardware
        mixture = Mixture(phase.prefix, phase.spoken, given=phase.distilled, unfinished=phase.unfinished)
        seed = phase.seed + self.tokens + rank()
        stream: IterableDataset[Batch]
        stream = ExampleStream(pairs, tokenizer, mixture, phase.batch * hardware.scale, seed, distilled)
        if phase.said:
            whole = Mixture(0.0, phase.spoken, said=1.0)
            utterances = ExampleStream(pairs, tokenizer, whole, phase.batch * hardware.scale, seed)
            stream = Alternating(utterances, stream, phase.said)
        if hardware.workers == 0:
            return stream
        return DataLoader(stream, batch_size=None, num_workers=hardware.workers, multiprocessing_context="fork")

    def _log(self, path: Path, measured: Mapping[str, object]) -> None:
        line = {"tokens": self.tokens, "step": self.step, "seconds": round(self.seconds), **measured}
        with path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    def train_step(self, batch: Batch) -> Tensor:
        """Do one optimizer step; return the mean loss per target token in nats."""
        scale = self.rate_scale()
        for optimizer, base in zip(self.optimizers, self.base_rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = base * scale
        with rounded(self._matrices if self.phase.rounded else []):
            original = self._original if batch.anchored else None
            slope = self._slope if original is None else self._divergence
            loss = batch_loss(self.model, batch, self.hardware.device, slope, original)
            loss.backward()  # type: ignore[no-untyped-call]
        now = time.monotonic()
        tokens, seconds = average_gradients(self.model, batch.ids.size, now - self._since)
        self._since = now
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if self.smooth:
            share = 1 / min(self.step + 1, self.phase.smoothed)
            torch._foreach_lerp_(self.smooth, [p.detach() for p in self.model.parameters()], share)
        self.tokens += tokens
        self.seconds += seconds
        self.step += 1
        return loss.detach()

    def progress(self) -> float:
        """Return the completed share of the phase, the same in all processes; 1 or more at its end."""
        if self.hardware.within is None:
            return self.tokens / self.phase.tokens
        return self.seconds / (60 * self.hardware.within)

    def rate_scale(self) -> float:
        """Return the learning rate's scale: linear warm-up, constant, then linear decay to zero."""
        left = 1 - self.progress()
        decay = 1.0 if self.phase.decay == 0 else max(0.0, min(1.0, left / self.phase.decay))
        return min(1.0, (self.step + 1) / self.phase.warmup_steps, decay)

    def save(self, path: Path) -> None:
        """Write the state for resuming, atomically."""
        if rank() > 0:
            return
        state = {
            "shape": asdict(self.model.shape),
            "phase": asdict(self.phase),
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "smooth": self.smooth,
            "tokens": self.tokens,
            "step": self.step,
            "seconds": self.seconds,
        }
        part = path.with_suffix(".part")
        torch.save(state, part)
        part.replace(path)

    def anchor(self, original: Decoder) -> None:
        """Keep to what ``original`` predicts, in batches that are anchored."""
        self._original = original.to(self.hardware.device).eval().requires_grad_(False)

    def result(self) -> Decoder:
        """Return a copy of the model with the averaged weights, if they are averaged, for evaluation."""
        copy = Decoder(self.model.shape).to(self.hardware.device).eval().requires_grad_(False)
        for target, value in zip(copy.parameters(), self.smooth or self.model.parameters(), strict=True):
            target.copy_(value)
        return copy

    def restore(self, path: Path) -> None:
        """Resume from a checkpoint written by `save`."""
        state = torch.load(path, map_location=self.hardware.device)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.smooth = state["smooth"]
        self.tokens, self.step, self.seconds = state["tokens"], state["step"], state["seconds"]


def spawn(work: Callable[..., None], arguments: Sequence[Any], processes: int) -> None:
    """Run ``work(rank, *arguments, meet)`` in new processes, which use `together` with the path ``meet``."""
    # Of its own for every run: what a killed run has left there would keep the processes from finding each other.
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (*arguments, Path(folder) / "meet"), nprocs=processes)


@contextmanager
def together(rank: int, processes: int, meet: Path) -> Iterator[None]:
    """Connect the processes of a training while the block runs.

    Args:
        rank: rank of this process.
        processes: number of processes.
        meet: a file that does not exist yet, by which they find each other.
    """
    if processes > 1:
        dist.init_process_group("gloo", init_method=f"file://{meet.resolve()}", rank=rank, world_size=processes)
    try:
        yield
    finally:
        if processes > 1:
            dist.destroy_process_group()


def world_size() -> int:
    """Return the number of training processes; 1 without torch.distributed."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Return the rank of this process."""
    return dist.get_rank() if dist.is_initialized() else 0


def average_gradients(model: nn.Module, tokens: int, seconds: float) -> tuple[int, float]:
    """Average gradients over processes; return the sum of their ``tokens`` and the mean of their ``seconds``.

    On two CPU cores, two processes of one thread train 1.4 times as fast as one process of two threads, whose many
    small parallel regions wait for each other.
    """
    if world_size() == 1:
        return tokens, seconds
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    flat = torch._utils._flatten_dense_tensors([*gradients, torch.tensor([float(tokens), seconds])])
    dist.all_reduce(flat)
    total, mean_seconds = int(flat[-2]), float(flat[-1]) / world_size()
    flat = flat[:-2] / world_size()
    for gradient, averaged in zip(gradients, torch._utils._unflatten_dense_tensors(flat, gradients), strict=True):
        gradient.copy_(averaged)
    return total, mean_seconds
