"""llama-cpp-python's high-level API, `Llama.generate`, with its prefix cache and its prompt lookup.

The `Llama` object keeps the ids of its last call and processes only what follows the longest common prefix. `generate`
works on ids; `create_completion` calls it and adds text handling, so it can only be slower.  Context length, threads
and GPU layers are the same as for Redraft.  Flash attention is on, as llama.cpp chooses for Redraft: without it,
rounding differs, and so do near ties.  Other settings keep the library's defaults.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from redraft.backends.engine import have_amx
from redraft.backends.options import LlamaOptions
from redraft.cores import usable_cores
from redraft.errors import ModelError
from redraft.models.disk import check_gguf
from redraft_bench.bench.peers.engine import Generated, PassLog


class LlamaCppPython:
    """A `Llama` object.

    Args:
        path: the GGUF file.
        options: supplies context length, threads and GPU layers.
        ends: ids that end an output.
        lookup: whether to draft with `LlamaPromptLookupDecoding` and its defaults (n-grams of 2, drafts of 10).

    Raises:
        ModelError: the file is missing or broken, or llama.cpp would use AMX.
    """

    def __init__(self, path: Path, options: LlamaOptions, ends: frozenset[int], *, lookup: bool) -> None:
        from llama_cpp import Llama
        from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

        check_gguf(path)
        if have_amx():
            raise ModelError("llama-cpp-python's own class cannot leave out AMX; compile llama.cpp with `make`")
        threads = options.threads or usable_cores()
        try:
            self._llama = Llama(
                str(path),
                # llama.cpp rounds up to this multiple, but the object's own buffers are not rounded.
                n_ctx=-(-options.context_length // 256) * 256,
                n_threads=threads,
                n_threads_batch=threads,
                n_gpu_layers=options.gpu_layers,
                flash_attn=True,
                draft_model=LlamaPromptLookupDecoding() if lookup else None,
                # Drafts need the logits of all positions; without this option the logits buffer is too short for long
                # prompts.
                logits_all=lookup,
                verbose=False,
            )
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"model file {str(path)!r} cannot be loaded by llama-cpp-python: {error}") from error
        self._ends, self._log = ends, PassLog()
        self._evaluate = self._llama.eval
        self._llama.eval = self._counted  # type: ignore[method-assign]  # one call is one pass

    def _counted(self, tokens: Sequence[int]) -> None:
        if tokens:  # empty if the whole prompt and its logits are cached
            with self._log.target(self._llama.n_tokens, len(tokens)):
                self._evaluate(tokens)

    def generate(self, prompt: tuple[int, ...], limit: int) -> Generated:
        """Decode greedily after ``prompt``, up to ``limit`` tokens."""
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
