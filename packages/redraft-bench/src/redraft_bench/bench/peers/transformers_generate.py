"""transformers' `generate`: greedy, with prompt lookup, or with an assistant model.

Each call starts with an empty cache, the default of `generate`: a cache passed in must hold a prefix of the prompt, so
the caller would have to compare ids and crop it between updates.  Draft settings are the library's defaults; the
assistant drafts up to 20 tokens, fewer when its confidence is low.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from redraft.backends.options import HfOptions
from redraft_bench.bench.peers.engine import Generated, PassLog

#: `prompt_lookup_num_tokens` has no default; 10, as in prompt lookup decoding and llama-cpp-python.
LOOKUP = {"prompt_lookup_num_tokens": 10}


class Transformers:
    """A transformers model in 32-bit floats.

    Args:
        path: model folder, or GGUF file, which transformers dequantizes.
        options: context length, threads and device.
        ends: ids that end an output.
        small: the assistant model, as ``path``.
        more: further arguments of `generate`.

    Raises:
        ModuleNotFoundError: the ``hf`` extra is not installed or, for a GGUF file, the ``gguf`` extra.
        ModelError: a model cannot be loaded.
    """

    def __init__(
        self,
        path: Path,
        options: HfOptions,
        ends: frozenset[int],
        *,
        small: Path | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        with _quiet():
            self._model: Any = open_model(path, options)
            self._more = {"eos_token_id": sorted(ends), "pad_token_id": min(ends), **(more or {})}
            self._ends, self._log = ends, PassLog()
            self._watch(self._model, self._target_pass)
            if small is not None:
                assistant = open_model(small, options)
                self._watch(assistant, lambda _inputs: self._log.small())
                self._more["assistant_model"] = assistant

    def _target_pass(self, inputs: dict[str, Any]) -> AbstractContextManager[None]:
        cache = inputs.get("cache", inputs.get("past_key_values"))  # since transformers 5.24, and before
        return self._log.target(0 if cache is None else cache.get_seq_length(), inputs["input_ids"].shape[1])

    @staticmethod
    def _watch(model: Any, timed: Callable[[dict[str, Any]], AbstractContextManager[None]]) -> None:
        """Time every pass of a model."""
        running = ExitStack()

        def before(_module: Any, _args: Any, inputs: dict[str, Any]) -> None:
            running.enter_context(timed(inputs))

        model.register_forward_pre_hook(before, with_kwargs=True)
        model.register_forward_hook(lambda *_: running.close())

    def generate(self, prompt: tuple[int, ...], limit: int) -> Generated:
        """Decode greedily after ``prompt``, up to ``limit`` tokens."""
        import torch

        log = self._log = PassLog()
        with _quiet():
            started = time.perf_counter()
            read = torch.tensor([prompt], device=self._model.device)
            given = self._model.generate(
                input_ids=read,
                attention_mask=torch.ones_like(read),
                do_sample=False,
                max_new_tokens=limit,
                **self._more,
            )
            tokens = given[0, len(prompt) :].tolist()
            seconds = time.perf_counter() - started
        end = next((place for place, token in enumerate(tokens) if token in self._ends), None)
        output, finished = tuple(tokens[:end]), end is not None
        # On a GPU a pass returns before it completes, so timing it would need a synchronisation that slows down the
        # call.
        model_seconds = log.seconds if self._model.device.type == "cpu" else seconds
        passes = log.passes(len(prompt), len(output), finished)
        return Generated(output, finished, seconds, model_seconds, passes, log.draft_passes)

    def close(self) -> None:
        """Free the models."""
        self._model, self._more = None, {}


def open_model(path: Path, options: HfOptions) -> Any:
    """Load a model folder or a GGUF file.

    Raises:
        ModelError: it cannot be loaded.
    """
    from redraft.backends.hf.model import open_hf

    return open_hf(str(path), options).model


@contextmanager
def _quiet() -> Iterator[None]:
    """Disable progress bars and warnings about the assistant's settings."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
