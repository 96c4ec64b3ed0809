"""Compare the ids that methods decode on a GPU with those on the CPU, by a small random model in 32-bit floats."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from redraft.backends.hf.decoder_only import HfDecoder
from redraft.decoding.backend import Capability
from redraft.decoding.decode import decode
from redraft.decoding.drive import open_slots, run_together
from redraft.decoding.method import Method, Setup, Value
from redraft.decoding.methods import all_methods
from redraft.decoding.types import DRAFT_MODEL, ROOT, TARGET, Output, Prompt, Score, common_prefix

Ids: TypeAlias = tuple[int, ...]

#: Tokens of an output, updates of an utterance, tokens that each adds to the source, tokens before and after it.
LIMIT, UPDATES, NEWS, HEAD, TAIL = 16, 4, 3, 20, 6
#: What is compared before other methods.
FIRST = ("ar", "ssbd", "redraft")
#: Layers of the small model, for methods with one: the first of the target.
LAYERS = 2


@dataclass(slots=True)
class Side:
    """A device with a stream of its own for each method."""

    backends: Mapping[str, HfDecoder]
    memory: dict[type, object] = field(default_factory=dict)

    @classmethod
    def of(cls, backend: HfDecoder) -> Side:
        """Return the side of a backend."""
        return cls({TARGET: backend, DRAFT_MODEL: backend.early_exit(LAYERS)})

    def decoded(self, method: Method, options: Mapping[str, Value], prompt: Ids, previous: Ids) -> Output:
        """Return the output of a method for one update."""
        target = self.backends[TARGET]
        drafter, rule = method.build(Setup(options, target.end_tokens, target.pad_token, self.memory))
        names = (TARGET, DRAFT_MODEL) if method.small_model or Capability.EARLY_EXIT in method.needs else (TARGET,)
        used = {name: self.backends[name] for name in names}
        with ExitStack() as stack:
            (slots,) = open_slots(used, 1, stack)
            asking = decode(
                Prompt(prompt, source_ids=prompt[HEAD:-TAIL]),
                drafter,
                rule,
                previous=previous,
                shown=len(previous) // 2,
                end_tokens=target.end_tokens,
                limit=LIMIT,
            )
            return run_together([(asking, slots)], used)[0]


@dataclass(slots=True)
class Found:
    """The counts of a method."""

    updates: int = 0
    tokens: int = 0
    passes: int = 0
    mismatches: int = 0
    gap: float = 0.0
    rounding: float = 0.0


def chosen_methods() -> Iterator[tuple[Method, dict[str, Value]]]:
    """Yield the methods with options by which their output is certain, the most important first."""
    for method in sorted(all_methods().values(), key=lambda each: each.name not in FIRST):
        temperature = next((each for each in method.options if each.name == "temperature"), None)
        try:
            yield method, method.check({} if temperature is None else {"temperature": 0.0})
        except ValueError:  # it cannot but sample
            continue


def parity(cpu: HfDecoder, gpu: HfDecoder, until: float) -> Iterator[dict[str, Any]]:
    """Yield mismatches by method, over as many utterances as there is time for.

    After a mismatch, the rest of the utterance is left out.  The gap is that of the two best logits there on the CPU,
    in nats; the rounding is the largest difference of their log-probabilities between the devices.
    """
    draw, methods, found = random.Random(0), list(chosen_methods()), dict[str, Found]()
    here, there = Side.of(cpu), Side.of(gpu)
    while not found or time.monotonic() < until:
        ids = tuple(draw.choices(range(250), k=HEAD + TAIL + UPDATES * NEWS))
        for method, options in methods:
            if found and time.monotonic() > until:
                break
            previous: Ids = ()
            here.memory, there.memory = {}, {}
            counts = found.setdefault(method.name, Found())
            for number in range(1, UPDATES + 1):
                prompt = ids[: HEAD + NEWS * number] + ids[-TAIL:]
                one, other = (side.decoded(method, options, prompt, previous) for side in (here, there))
                counts.updates += 1
                counts.tokens += len(one.tokens)
                counts.passes += one.passes
                previous = one.tokens
                if one.tokens != other.tokens:
                    counts.mismatches += 1
                    at = prompt + one.tokens[: common_prefix(one.tokens, other.tokens)]
                    gap, rounding = _gap(cpu, gpu, at)
                    counts.gap, counts.rounding = max(counts.gap, gap), max(counts.rounding, rounding)
                    break
    for name, each in found.items():
        counted = {"updates": each.updates, "tokens": each.tokens, "passes": each.passes, "mismatches": each.mismatches}
        yield {"method": name, **counted, "largest_gap": each.gap, "largest_rounding": each.rounding}


def _gap(cpu: HfDecoder, gpu: HfDecoder, ids: Ids) -> tuple[float, float]:
    logs: list[list[float]] = []
    best: list[int] = []
    for backend in (cpu, gpu):
        slot = backend.open_slot()
        rows = backend.score([(slot, Score(ids))])[0]
        best = best or rows.best(ROOT, 2)
        logs.append([rows.logprob(ROOT, token) for token in best])
        backend.close_slot(slot)
    return logs[0][0] - logs[0][1], max(abs(one - other) for one, other in zip(*logs, strict=True))
