"""AlignAtt for texts and a decoder-only model.

Papi et al. 2023, "AlignAtt: Using Attention-based Audio-Translation Alignments as a Guide for Simultaneous Speech
Translation".

A token is emitted unless it looks at the end of a source that may still grow: the source token with the most attention,
averaged over heads and layers, is among the last ``frames``.  Then the update waits for more text.  What is emitted is
forced on the next update and never retracted; as in the paper's agent, only whole words are.  For decoder-only models,
AlignAtt4LLM does the same with the attention of a few heads that it finds with aligned data; here it is that of all.

It needs attention weights, which llama.cpp does not return.  So transformers runs the model, in 32-bit floats.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from redraft.backends.options import HfOptions
from redraft.captions.events import Failure, Update
from redraft.captions.stabilise import whole_words
from redraft.decoding.method import Option
from redraft.decoding.types import common_prefix
from redraft.translator import line_breaks
from redraft_bench.bench.peers.engine import Generated, PassLog
from redraft_bench.bench.peers.retranslate import Retranslation, Task
from redraft_bench.bench.peers.transformers_generate import open_model
from redraft_bench.eval.record import Step

FRAMES = Option("frames", 4, 1, 100, "how many tokens at the end of the source no emitted token looks at", whole=True)


class Attending:
    """Greedy decoding that stops at the first token that looks at some positions of the prompt.

    Args:
        path: model folder or GGUF file.
        options: context length, threads and device.
        ends: ids that end an output.

    Raises:
        ModuleNotFoundError: the ``hf`` extra is not installed or, for a GGUF file, the ``gguf`` extra.
        ModelError: the model cannot be loaded.
    """

    def __init__(self, path: Path, options: HfOptions, ends: frozenset[int]) -> None:
        from redraft.backends.hf.facts import cache_argument

        self._model: Any = open_model(path, options)
        self._model.set_attn_implementation("eager")  # no other one returns weights
        self._cache_argument = cache_argument(type(self._model)) or "past_key_values"
        self._ends = ends

    def generate(self, prompt: tuple[int, ...], limit: int, source: range = range(0), last: int = 0) -> Generated:
        """Decode after ``prompt``, up to ``limit`` tokens or one that looks at the ``last`` positions of ``source``."""
        import torch
        from transformers import DynamicCache

        log, started, tokens = PassLog(), time.perf_counter(), list[int]()
        cache, ids, waits = DynamicCache(), [*prompt], False
        while len(tokens) < limit:
            with log.target(len(prompt) + len(tokens) - len(ids), len(ids)), torch.inference_mode():
                read = torch.tensor([ids], device=self._model.device)
                inputs = {"input_ids": read, self._cache_argument: cache}
                found = self._model(**inputs, use_cache=True, output_attentions=bool(last))
            token = int(found.logits[0, -1].argmax())
            if last:
                weights = torch.stack(found.attentions)[:, 0, :, -1, source.start : source.stop].mean(dim=(0, 1))
                waits = int(weights.argmax()) >= len(source) - last
            if token in self._ends or waits:
                break
            tokens.append(token)
            ids = [token]
        passes = log.passes(len(prompt), len(tokens), ended := len(tokens) < limit)
        return Generated(tuple(tokens), ended, time.perf_counter() - started, log.seconds, passes)

    def close(self) -> None:
        """Free the model."""
        self._model = None


class AlignAtt(Retranslation):
    """Emits tokens that do not look at the end of the source; shows what is emitted.

    Args:
        frames: number of source tokens at the end, within `FRAMES`.

    Raises:
        OptionError: ``frames`` is out of range.
    """

    def __init__(self, task: Task, path: Path, options: HfOptions, frames: int = 4) -> None:
        self._frames = int(FRAMES.check(frames))
        self._attending = Attending(path, options, task.backend.end_tokens | line_breaks(task.backend).before)
        first, second = task.encode("A"), task.encode("z")
        self._before, self._after = common_prefix(first, second), common_prefix(first[::-1], second[::-1])
        super().__init__(task, self._attending)
        self._final = False

    def _forget(self) -> None:
        super()._forget()
        self._emitted: tuple[int, ...] = ()

    def _translate(self, update: Update) -> tuple[Step, list[Failure]]:
        self._final = update.final
        if update.final:  # an unchanged source is translated to its end, too
            self._latest = replace(self._latest, prompt=())
        return super()._translate(update)

    def _decode(self, prompt: tuple[int, ...], limit: int) -> Generated:
        if not prompt or len(self._emitted) >= limit:  # as in LocalAgreement
            return Generated(self._emitted, finished=not prompt)
        source, last = range(self._before, len(prompt) - self._after), 0 if self._final else self._frames
        answer = self._attending.generate(prompt + self._emitted, limit - len(self._emitted), source, last)
        tokens = self._emitted + answer.tokens
        if not self._final:
            pieces = [self.task.backend.token_bytes(token) for token in (*tokens, *self.task.backend.tokenize("a"))]
            tokens = tokens[: max(whole_words(pieces, len(tokens)), len(self._emitted))]
        self._emitted = tokens
        return replace(answer, tokens=tokens)
