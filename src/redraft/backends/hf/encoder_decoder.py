"""Encoder-decoder models: encoded once per source, with the ways in which they are told languages.

| family | source | decoder starts with |
|---|---|---|
| Marian (Opus-MT) | ``>>deu<<`` before the text, if the vocabulary has such tags | start token |
| MADLAD-400 (T5) | ``<2de>`` before the text | start token |
| mBART-50, M2M-100, NLLB | code of the source language, put there by the tokenizer | start token, code of the target |
| mBART (25 languages) | code of the source language | code of the target |
| T5, mT5 | "translate English to German: ", or what the configuration has | start token |

One request per pass, chains only: relative positions (T5) and positions counted by the cache (Marian) support neither
trees nor rows of different lengths.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from redraft.backends.hf.base import HfBackend, TorchRows
from redraft.backends.hf.cache import CellPlan
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.backends.options import HfOptions
from redraft.captions.languages import Language, closest, parse_language, same_language
from redraft.captions.prompt import clean
from redraft.decoding.types import Prompt, Rows, Score, common_prefix
from redraft.errors import CapabilityError, ModelError, OptionError

_CODE = re.compile("__([a-z]{2,3})__|([a-z]{2,3}_[A-Z][A-Za-z]{1,3})")
_TAG = re.compile(">>([^<>]+)<<|<2([A-Za-z_]+)>")

#: Non-standard language codes in vocabularies: M2M-100's code of Northern Sotho.
_OWN_CODES = {"ns": "nso"}


class SourcePrompts:
    """Makes the prompts of an encoder-decoder model.

    Raises:
        CapabilityError: the model does not define the decoder's start token.
    """

    def __init__(self, model: Any, tokenizer: HfTokenizer, name: str) -> None:
        self._tokenizer, self._name = tokenizer, name
        config, generation = model.config, model.generation_config
        start = generation.decoder_start_token_id
        start = getattr(config, "decoder_start_token_id", None) if start is None else start
        if start is None:
            raise CapabilityError(f"model {name!r} has no decoder_start_token_id")
        self._start, forced = int(start), generation.forced_bos_token_id
        self._begin = (self._start,) if forced is None else (self._start, int(forced))
        base = tokenizer.base
        known = getattr(base, "lang_code_to_id", None) or _matching(_CODE, base.get_added_vocab())
        self._codes = LanguageCodes(known)
        self._tags = LanguageCodes(_matching(_TAG, base.get_vocab()))
        self._sentences = getattr(config, "task_specific_params", None) or {}
        self._takes_sentence = config.model_type in {"t5", "mt5", "umt5"}

    def encode(self, text: str, source: Language, target: Language) -> Prompt:
        """Return the ids for encoder and decoder, and those of the text alone.

        Raises:
            OptionError: the model does not support a language.
        """
        text = asked = clean(text)
        before: tuple[int, ...] = ()
        if self._tags:
            before = (self._tags.of(target, "target language"),)
        elif self._takes_sentence:
            asked = self._sentence(source, target) + text
        decoder = self._begun(source, target)
        ids = self._tokenizer.tokenize(text)
        return Prompt(decoder, tuple(ids), (*before, *self._tokenizer.encoder_ids(asked)))

    def plain(self, text: str) -> Prompt:
        """Return the ids for a text as it is, such as a task for T5 or a sentence for a model of one language pair.

        Raises:
            CapabilityError: the model needs the target language.
        """
        if self._tags or self._codes:
            raise CapabilityError(f"model {self._name!r} needs a target language, so it can only translate")
        return Prompt(self._begin, tuple(self._tokenizer.tokenize(text)), tuple(self._tokenizer.encoder_ids(text)))

    def _begun(self, source: Language, target: Language) -> tuple[int, ...]:
        """Return the decoder's first ids; sets the tokenizer's source language if it has one."""
        base = self._tokenizer.base
        if self._codes:
            code = self._codes.of(target, "target language")
            if hasattr(base, "src_lang"):
                base.src_lang = self._codes.name_of(source, "source language")
            return (code,) if self._start in self._codes.ids else (self._start, code)
        self._check_pair(source, target)
        return self._begin

    def _sentence(self, source: Language, target: Language) -> str:
        """Return the sentence that T5 expects before a text to translate."""
        pairs = [key.removeprefix("translation_") for key in self._sentences if key.startswith("translation_")]
        for pair in pairs:
            known = [_parsed(code) for code in pair.split("_to_")]
            if all(code and closest(wanted, [code]) for wanted, code in zip((source, target), known, strict=True)):
                return str(self._sentences[f"translation_{pair}"]["prefix"])
        if pairs:
            pair = f"{source.tag}_to_{target.tag}"
            raise OptionError(f"model {self._name!r} does not translate {pair}; allowed: {', '.join(pairs)}")
        return f"translate {source.name} to {target.name}: "

    def _check_pair(self, source: Language, target: Language) -> None:
        for field, wanted in (("source", source), ("target", target)):
            named = getattr(self._tokenizer.base, f"{field}_lang", None)
            known = _parsed(named) if named and not self._tags else None
            if known is not None and closest(wanted, [known]) is None:
                raise OptionError(
                    f"{wanted.tag!r} is not that of model {self._name!r}: use {named}", f"{field} language"
                )


class LanguageCodes:
    """The languages with tokens in a vocabulary; false if there are none.

    Args:
        tokens: language as written in the vocabulary -> id.
    """

    def __init__(self, tokens: dict[str, int]) -> None:
        self.ids = set(tokens.values())
        self._tokens = tokens
        self._languages = [(language, code) for code in tokens if (language := _parsed(code)) is not None]
        self.name_of = cache(self._name_of)

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def of(self, wanted: Language, field: str) -> int:
        """Return the id of a language.

        Raises:
            OptionError: the vocabulary does not have the language.
        """
        return self._tokens[self.name_of(wanted, field)]

    def _name_of(self, wanted: Language, field: str) -> str:
        languages = [language for language, _code in self._languages]
        found = closest(wanted, languages)
        if found is None:
            # If the model has the language only in other scripts, suggest those.
            known = sorted({each.canonical for each in same_language(wanted, languages) or languages})
            raise OptionError(f"{wanted.tag!r} is not supported by this model; allowed: {', '.join(known)}", field)
        return next(code for language, code in self._languages if language is found)


def _parsed(code: str) -> Language | None:
    """Return the language of a code such as ``de``, ``deu_Latn``, ``de_DE`` or ``en_XX``.

    None if it is not a language.
    """
    try:
        return parse_language(_OWN_CODES.get(code, code.removesuffix("_XX")))
    except OptionError:
        return None


def _matching(pattern: re.Pattern[str], vocabulary: Mapping[str, int]) -> dict[str, int]:
    found = ((pattern.fullmatch(token), number) for token, number in vocabulary.items())
    return {match[1] or match[2]: number for match, number in found if match}


@dataclass(slots=True)
class _Slot:
    """One sequence.

    Attributes:
        encoder: ids that the encoder has read.
        states: its output, (1, ids, hidden).
        cache: the decoder's self-attention keys and values, and those of ``states``.
        ids: ids that the decoder has read.
    """

    encoder: tuple[int, ...] = ()
    states: Tensor | None = None
    cache: Any = None
    ids: tuple[int, ...] = ()


class HfEncoderDecoder(HfBackend[_Slot]):
    """An encoder-decoder model; implements `redraft.decoding.backend.Backend`.  See `HfBackend` for the arguments."""

    def __init__(self, model: Any, tokenizer: HfTokenizer, name: str, options: HfOptions) -> None:
        super().__init__(model, tokenizer, name, options, lambda _slot: _Slot())
        prompts = SourcePrompts(model, tokenizer, name)
        self.encoder_prompt, self.plain_prompt = prompts.encode, prompts.plain
        self.encoder_passes = 0
        #: Source -> what the encoder made of it, as long as a slot has it; early exits have the same encoder.
        self._states = WeakValueDictionary[tuple[int, ...], Tensor]()

    def early_exit(self, layers: int) -> Self:
        """Return a model as `HfBackend.early_exit`; what the encoder makes of a source is computed once."""
        short = super().early_exit(layers)
        short._states = self._states
        return short

    @torch.inference_mode()
    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        """Answer requests one after the other.

        Raises:
            ContextOverflow: the source, or prefix and draft of a request, exceed the context length.
            CapabilityError: a draft is a tree.
            ModelError: a request has no encoder input.
        """
        self._check(requests)
        for _slot, score in requests:
            if not score.encoder:
                raise ModelError(f"model {self.name!r} is an encoder-decoder; its requests need ids for the encoder")
            if not score.draft.is_chain:
                raise CapabilityError(f"model {self.name!r} is an encoder-decoder, which scores no draft trees")
        return [self._answer(slot, score) for slot, score in requests]

    def _answer(self, slot: int, score: Score) -> Rows:
        state = self._slots[slot]
        self._slots[slot] = _Slot()  # drop a partial update of the cache
        if state.encoder != score.encoder:
            state = self._encode(score.encoder)
        started, ids = time.perf_counter(), score.prefix + score.draft.tokens
        kept = min(common_prefix(state.ids, ids), len(score.prefix) - score.prompt_rows)
        cells = torch.arange(kept, len(ids), device=self.device)[None]
        self._cache.follow(CellPlan.of([slot], cells, len(ids), kept))
        # Passed as embeddings, because M2M-100 assigns no position to padding ids, which drafts may contain.
        embedded = self.model.get_decoder().embed_tokens(torch.tensor([ids[kept:]], device=self.device))
        output = self.model(
            encoder_outputs=BaseModelOutput(last_hidden_state=state.states),
            decoder_inputs_embeds=embedded,
            **{self._cache_argument: state.cache},
            use_cache=True,
        )
        state.ids = ids
        self._slots[slot] = state
        wanted = score.prompt_rows + len(score.draft)
        logits = self.allowed(output.logits[0, -wanted:])
        float(logits[-1, 0])  # waits for a GPU
        self._took(len(ids) - kept, wanted, time.perf_counter() - started)
        return TorchRows(logits, score.prompt_rows - 1)

    def _encode(self, ids: tuple[int, ...]) -> _Slot:
        """Encode a source and reset the decoder, whose states depend on it."""
        states = self._states.get(ids)
        if states is None:
            source = torch.tensor([ids], device=self.device)
            found = self.model.get_encoder()(input_ids=source, attention_mask=torch.ones_like(source))
            self._states[ids] = states = found.last_hidden_state
            self.encoder_passes += 1
        return _Slot(ids, states, EncoderDecoderCache(self._cache, DynamicCache()))
