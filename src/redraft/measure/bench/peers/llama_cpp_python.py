"""llama-cpp-python's high level: `Llama.generate`, with its own prefix cache and its own prompt lookup.

The `Llama` object keeps the ids of its last call, prompt and output, and reads of the next prompt only what comes after
the longest common prefix.  `generate` takes and gives ids; `create_completion` calls it and adds the text, so it can
only be slower.  Context, threads and GPU layers are those of Redraft, and flash attention is on, as llama.cpp itself
chooses for Redraft: without it rounding differs, and with it near ties.  All else is the library's default.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from redraft.backends import kernels
from redraft.backends.llama_model import check_gguf, usable_cores
from redraft.backends.llamacpp import LlamaOptions
from redraft.errors import ModelError
from redraft.measure.bench.peers.engine import Generated, PassLog


class LlamaCppPython:
    """A `Llama` object of its own.

    Args:
        path: the GGUF file.
        options: context length, threads and GPU layers of it are used.
        ends: ids that end an output.
        lookup: whether it drafts with its `LlamaPromptLookupDecoding`, by its defaults: n-grams of 2, drafts of 10.

    Raises:
        ModelError: the file is missing or broken, or llama.cpp's kernels are.
    """

    def __init__(self, path: Path, options: LlamaOptions, ends: frozenset[int], *, lookup: bool) -> None:
        from llama_cpp import Llama
        from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

        check_gguf(path)
        if not kernels.trusted():
            raise ModelError("llama-cpp-python's own class cannot do without the kernels that this build has wrong")
        threads = options.threads or usable_cores()
        try:
            self._llama = Llama(
                str(path),
                # The engine rounds up to this multiple, but the object's own buffers do not grow with it.
                n_ctx=-(-options.context_length // 256) * 256,
                n_threads=threads,
                n_threads_batch=threads,
                n_gpu_layers=options.gpu_layers,
                flash_attn=True,
                draft_model=LlamaPromptLookupDecoding() if lookup else None,
                # Drafts need the rows of all positions; without this the buffer of rows is too short for long prompts.
                logits_all=lookup,
                verbose=False,
            )
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"model file {str(path)!r} cannot be loaded by llama-cpp-python: {error}") from error
        self._ends, self._log = ends, PassLog()
        self._evaluate = self._llama.eval
        self._llama.eval = self._counted  # type: ignore[method-assign]  # one call is one pass

    def _counted(self, tokens: Sequence[int]) -> None:
        if tokens:  # none where the object holds the whole prompt with its row
            with self._log.target(self._llama.n_tokens, len(tokens)):
                self._evaluate(tokens)

    def generate(self, prompt: tuple[int, ...], limit: int) -> Generated:
        """Decode greedily at most ``limit`` tokens after ``prompt``."""
        log = self._log = PassLog()
        output: list[int] = []
        finished = False
        started = time.perf_counter()
        for token in self._llama.generate(prompt, temp=0.0):
            finished = token in self._ends
            if finished:
                break
            output.append(token)
            if len(output) == limit:
                break
        seconds = time.perf_counter() - started
        return Generated(tuple(output), finished, seconds, log.seconds, log.passes(len(prompt), len(output), finished))

    def close(self) -> None:
        """Free the model."""
        self._llama.close()
