"""A GGUF file opened with llama.cpp: its metadata, its tokenizer, and checks whether it is supported."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from itertools import count, repeat
from pathlib import Path
from typing import Any

from redraft.backends.costs import LearnedCosts
from redraft.backends.engine import have_amx, lib
from redraft.backends.options import LlamaOptions
from redraft.backends.probe import check_anchors
from redraft.backends.slots import Facts
from redraft.decoding.segments import FunctionalToken, PromptSegment, PromptTokenizer, is_markup
from redraft.errors import CapabilityError, ModelError, OptionError
from redraft.models.disk import check_gguf, size_of

#: F32, F16, BF16.
_FLOAT_FILE_TYPES = {"0", "1", "32"}
#: File types whose kernels do not depend on the setting: F32, F16, Q8_0, BF16.
_PLAIN_FILE_TYPES = {*_FLOAT_FILE_TYPES, "7"}
#: Level of errors in llama.cpp's log.
_ERROR = 4
#: Names of functions at the beginnings of messages.
_WHERE = re.compile(r"^\w+: (?:error loading model: )?")
_messages: list[str] = []


@lib.llama_log_callback  # type: ignore[untyped-decorator]
def _keep_message(level: int, text: bytes, _data: Any) -> None:
    """Keep llama.cpp's error messages, instead of letting it write to the terminal."""
    if level == _ERROR:
        _messages.append(_WHERE.sub("", text.decode(errors="replace").strip()))
        del _messages[:-50]


lib.llama_log_set(_keep_message, ctypes.c_void_p(0))


def complaints() -> list[str]:
    """Return llama.cpp's error messages since the last call, the reason first and what followed from it after."""
    found = _messages[:]
    _messages.clear()
    return found


def has_gpus() -> bool:
    """Whether llama.cpp was built with support for GPUs."""
    return bool(lib.llama_supports_gpu_offload())


def on_gpu(layers: int) -> bool:
    """Whether a model with this number of layers on the GPU (-1 for all) uses a GPU here."""
    return layers != 0 and has_gpus()


_kernels: list[bool] = []


def _choose_kernels(path: Path, exact: bool, file_type: str) -> None:
    """Select exact kernels in llama.cpp while that is still possible.

    llama.cpp reads this setting once per process, so the first model determines it; float and 8-bit weights do not
    depend on it.

    Raises:
        CapabilityError: an earlier model was opened with another setting.
    """
    if not _kernels:
        _kernels.append(exact)
        if exact:
            os.environ["GGML_CPU_TILED_MM"] = "0"
    if exact and not _kernels[0] and file_type not in _PLAIN_FILE_TYPES:
        raise CapabilityError(
            f"model {path.name!r} cannot be opened with exact kernels, since this process has run a model without "
            "them; open it first, or in a process of its own"
        )


class LlamaModel:
    """Weights and vocabulary of one GGUF model.

    Args:
        path: its file, or the first of its parts.
        options: how it is loaded; with ``exact``, kernels are selected whose batched and single passes are
            bit-identical.
        anchored: whether a slot goes back to copies of its sequence, as models with recurrent layers must; None finds
            out, and tries whether such a model can.

    Attributes:
        size: bytes of all its files.
        costs: what its passes cost, in all contexts.
        anchored: whether its slots go back to copies of their sequences.

    Raises:
        ModelError: the file is missing or broken.
        CapabilityError: the model does not go back to an earlier token correctly, or it is not decoder-only.
    """

    def __init__(self, path: Path, options: LlamaOptions, *, anchored: bool | None = None) -> None:
        check_gguf(path)
        self.path, self.size = path, size_of(path)
        self.handle = self._load(options)
        key, value = lib.llama_model_meta_key_by_index, lib.llama_model_meta_val_str_by_index
        every = range(lib.llama_model_meta_count(self.handle))
        self.metadata = {self._read(key, index): self._read(value, index) for index in every}
        try:
            self._refuse_unfit()
            _choose_kernels(path, options.exact, self.metadata.get("general.file_type", ""))
            recurrent = lib.llama_model_is_recurrent(self.handle) or lib.llama_model_is_hybrid(self.handle)
            self.anchored = bool(recurrent) if anchored is None else anchored
            if anchored is None and recurrent:
                self.close()  # the probe loads it too
                check_anchors(path, self.metadata, options.gpu_layers)
                self.handle = self._load(options)
        except CapabilityError:
            self.close()
            raise
        self.vocab = lib.llama_model_get_vocab(self.handle)
        self.vocabulary_size: int = lib.llama_vocab_n_tokens(self.vocab)
        self.end_tokens = frozenset(
            token for token in range(self.vocabulary_size) if lib.llama_vocab_is_eog(self.vocab, token)
        )
        pad, end = int(lib.llama_vocab_pad(self.vocab)), int(lib.llama_vocab_eos(self.vocab))
        self.pad_token = pad if pad >= 0 else max(end, 0)
        self.costs = LearnedCosts()
        # The template's parts are repeated in every update, and the source is tokenized twice.
        self._ids = lru_cache(maxsize=64)(self._tokenized)
        self.token_bytes = cache(self._token_bytes)

    def _load(self, options: LlamaOptions) -> Any:
        params = lib.llama_model_default_params()
        params.n_gpu_layers, params.main_gpu = options.gpu_layers, options.main_gpu
        params.split_mode = getattr(lib, f"LLAMA_SPLIT_MODE_{options.split_mode.upper()}")
        params.load_mode = getattr(lib, f"LLAMA_LOAD_MODE_{options.load_mode.upper()}")
        most = int(lib.llama_max_devices())
        shares = [float(each) for each in options.tensor_split.split(",") if each]
        if len(shares) > most:
            raise OptionError(f"tensor_split must be at most {most} numbers, not {len(shares)}", "engine")
        params.tensor_split = (ctypes.c_float * most)(*shares)  # zeros are what fits
        if options.exact or have_amx():
            params.use_extra_bufts = False
        complaints()  # earlier ones
        handle = lib.llama_model_load_from_file(os.fsencode(self.path), params)
        if not handle:
            reason = next(iter(complaints()), "broken file")
            raise ModelError(f"model file {str(self.path)!r} cannot be loaded: {reason}")
        return handle

    def _refuse_unfit(self) -> None:
        # llama.cpp would run an embedding model like a language model.
        usual = {".attention.causal": "true", ".pooling_type": "0"}
        embeds = any(key.endswith(end) and value != usual[end] for key, value in self.metadata.items() for end in usual)
        reasons = {
            "is a diffusion model": lib.llama_model_is_diffusion(self.handle),
            "is an encoder-decoder, which this backend does not run": lib.llama_model_has_encoder(self.handle),
            "is made for embeddings, and says nothing": embeds,
        }
        for reason, there in reasons.items():
            if there:
                raise CapabilityError(f"model {self.path.name!r} {reason}; a decoder-only model is needed")

    def _read(self, function: Any, index: int) -> str:
        size = function(self.handle, index, None, 0) + 1
        buffer = ctypes.create_string_buffer(size)
        function(self.handle, index, buffer, size)
        return buffer.value.decode(errors="replace")

    def facts(self, context_length: int) -> Facts:
        """Return what the model is with so many ids in a slot."""
        known = self.end_tokens, self.pad_token, self.vocabulary_size, self.metadata
        return Facts(self.path.name, self, context_length, *known)

    @property
    def in_floats(self) -> bool:
        """Whether the weights are not quantised."""
        return self.metadata.get("general.file_type") in _FLOAT_FILE_TYPES

    def tokenize(self, text: str, *, special: bool = False, start: bool = False) -> list[int]:
        """Return the ids of a text.

        ``special`` recognises control tokens in it, ``start`` adds the start token if there is one.

        Raises:
            ModelError: the model is closed.
        """
        if not self.handle:
            raise ModelError(f"model {self.path.name!r} is closed")
        begin = [lib.llama_vocab_bos(self.vocab)] if start and lib.llama_vocab_get_add_bos(self.vocab) else []
        return [*begin, *self._ids(text, special)]

    def encode(self, segments: Sequence[PromptSegment]) -> list[int]:
        """Return the ids of a prompt; see `redraft.decoding.backend.Backend.encode`."""
        return self.tokenize("", start=True) + self._prompt_tokenizer(segments)

    @cached_property
    def _prompt_tokenizer(self) -> PromptTokenizer:
        tokens = dict(self._functional_tokens())
        kinds = ((each.token, lib.llama_vocab_get_attr(self.vocab, each.token)) for each in tokens.values())
        unknown = next((token for token, kind in kinds if kind & lib.LLAMA_TOKEN_ATTR_UNKNOWN), None)
        return PromptTokenizer(self._ids, tokens, unknown=unknown)

    def _functional_tokens(self) -> Iterator[tuple[str, FunctionalToken]]:
        """Yield the functional tokens by text: llama.cpp recognises control tokens, and markup in any text."""
        vocab = self.vocab
        control = lib.LLAMA_TOKEN_ATTR_CONTROL | lib.LLAMA_TOKEN_ATTR_UNKNOWN
        byte, listed = lib.LLAMA_TOKEN_ATTR_BYTE, lib.LLAMA_TOKEN_ATTR_USER_DEFINED
        for token, attributes in enumerate(map(lib.llama_vocab_get_attr, repeat(vocab, self.vocabulary_size), count())):
            if attributes & (control | byte | listed):
                text = (lib.llama_vocab_get_text(vocab, token) or b"").decode(errors="replace")
                left, right = attributes & lib.LLAMA_TOKEN_ATTR_LSTRIP, attributes & lib.LLAMA_TOKEN_ATTR_RSTRIP
                if attributes & (control | byte) or is_markup(text):
                    yield text, FunctionalToken(token, bool(left), bool(right), not attributes & byte)

    def _tokenized(self, text: str, special: bool) -> tuple[int, ...]:
        data = text.encode()
        size = len(data) + 8
        while True:
            buffer = (lib.llama_token * size)()
            count = lib.llama_tokenize(self.vocab, data, len(data), buffer, size, False, special)
            if count >= 0:
                break
            size = -count
        return tuple(buffer[:count])

    def _token_bytes(self, token: int) -> bytes:
        if not 0 <= token < self.vocabulary_size or not self.handle:
            return b""
        buffer = ctypes.create_string_buffer(64)
        count = lib.llama_token_to_piece(self.vocab, token, buffer, len(buffer), 0, False)
        if count < 0:
            buffer = ctypes.create_string_buffer(-count)
            count = lib.llama_token_to_piece(self.vocab, token, buffer, len(buffer), 0, False)
        return buffer.raw[: max(0, count)]

    def close(self) -> None:
        """Free the weights."""
        if self.handle:
            lib.llama_model_free(self.handle)
            self.handle = None
