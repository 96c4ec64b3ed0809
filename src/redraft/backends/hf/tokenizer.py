"""A transformers tokenizer with the engine's interface: ids of prompt segments, and bytes of single tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any

from transformers.convert_slow_tokenizer import bytes_to_unicode

from redraft.decoding.segments import FunctionalToken, PromptSegment, PromptTokenizer, is_markup

_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


class HfTokenizer:
    """Tokenizes prompts and returns the bytes of tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self.base = tokenizer
        added = tokenizer.added_tokens_decoder
        self._control = {token for token, text in added.items() if text.special} | set(tokenizer.all_special_ids)
        self._plain = {token: str(text).encode() for token, text in added.items() if token not in self._control}
        backend = getattr(tokenizer, "backend_tokenizer", None)
        bytewise = "ByteLevel" in repr(getattr(backend, "decoder", None))
        self._byte_of = {character: byte for byte, character in bytes_to_unicode().items()} if bytewise else {}
        #: Id -> piece in Marian's second vocabulary, for the target side; special tokens have other ids there.
        self._target = {number: piece for piece, number in getattr(tokenizer, "target_encoder", {}).items()}
        if self._target:
            self._control = {number for number, piece in self._target.items() if piece in tokenizer.all_special_tokens}
            self._plain = {}
        self.end_token, self.pad_token = self._special("eos"), self._special("pad")
        self._reads_tags = hasattr(tokenizer, "remove_language_code")
        self._size = len(tokenizer)  # takes up to a millisecond, and the whole vocabulary is read
        # The template's parts are repeated in every update, and the source is tokenized twice.
        self._ids = lru_cache(maxsize=64)(self._tokenized)
        self.token_bytes = cache(self._token_bytes)
        self.start_token: int | None = tokenizer.bos_token_id
        first = tokenizer.encode("a", add_special_tokens=True)[:1]
        self._begin: list[int] = first if first == [self.start_token] else []
        #: Whether the tokenizer adds a space before every text (SentencePiece).
        self.adds_space = not self._byte_of and self.token_bytes((self.tokenize("a") or [-1])[0])[:1] == b" "

    def _special(self, name: str) -> int | None:
        """Return the id of a special token, on the target side."""
        if not self._target:
            return getattr(self.base, f"{name}_token_id", None)
        text = getattr(self.base, f"{name}_token", None)
        return next((number for number, piece in self._target.items() if piece == text), None)

    def tokenize(self, text: str, *, special: bool = False, start: bool = False) -> list[int]:
        """Return the ids of a text.

        ``special`` recognises control tokens in it, ``start`` adds the start token if there is one.

        For an encoder-decoder model with two vocabularies, the ids are those of the target side.
        """
        return [*(self._begin if start else ()), *self._ids(text, special)]

    def encode(self, segments: Sequence[PromptSegment]) -> list[int]:
        """Return the ids of a prompt; see `redraft.decoding.backend.Backend.encode`."""
        return self.tokenize("", start=True) + self._prompt_tokenizer(segments)

    @cached_property
    def _prompt_tokenizer(self) -> PromptTokenizer:
        tokens = dict(self._functional_tokens())
        before = next((text for text, token in tokens.items() if not token.strips_right), "")
        return PromptTokenizer(self._ids, tokens, before, self.base.unk_token_id)

    def _functional_tokens(self) -> Iterator[tuple[str, FunctionalToken]]:
        for token, added in self.base.added_tokens_decoder.items():
            if added.special or token in self._control or is_markup(added.content):
                yield added.content, FunctionalToken(token, added.lstrip, added.rstrip)

    def _tokenized(self, text: str, special: bool) -> tuple[int, ...]:
        text = self._guarded(text)
        ids = self.base(text_target=text, add_special_tokens=False, split_special_tokens=not special, verbose=False)
        return tuple(ids["input_ids"])

    def encoder_ids(self, text: str) -> list[int]:
        """Return the encoder's ids for a text, with the tokens that the tokenizer adds around it."""
        text = self._guarded(text)
        return list(self.base.encode(text, add_special_tokens=True, split_special_tokens=True, verbose=False))

    def _guarded(self, text: str) -> str:
        """Escape language tags at the start of a text, which Marian's tokenizer would recognise in a transcript."""
        return f" {text}" if self._reads_tags and text.startswith(">>") else text

    def is_control(self, token: int) -> bool:
        """Whether a token is a special token without text."""
        return token in self._control

    def _token_bytes(self, token: int) -> bytes:
        if plain := self._plain.get(token):
            return plain
        if token < 0 or token in self._control or (not self._target and token >= self._size):
            return b""
        piece = self._target.get(token) if self._target else self.base.convert_ids_to_tokens(token)
        if piece is None:
            return b""
        if self._byte_of:
            return bytes(self._byte_of[character] for character in piece if character in self._byte_of)
        byte = _BYTE.fullmatch(piece)
        return bytes([int(byte[1], 16)]) if byte else piece.replace("\u2581", " ").encode()
