"""A transformers model as its own teacher: prompts as in live decoding, outputs, and their probabilities."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder
from redraft.captions.answer import OutputReader
from redraft.captions.languages import parse_language
from redraft.captions.style import Style
from redraft.captions.translation import as_output
from redraft.decoding.types import Prompt
from redraft.translator import line_breaks, prompt_encoder
from redraft_train.batch import TOKENS, Example, collate, grouped, length, logits, padded
from redraft_train.prefixes import Ids

#: Temperature of sampled outputs: they differ from the greedy one but are still good.
TEMPERATURE = 0.5


class HfTeacher:
    """A `redraft_train.prefixes.Teacher`.

    Attributes:
        end: id with which targets end.

    Raises:
        OptionError: the model does not support a language.
        ModelError: the model has no usable prompt template.
    """

    def __init__(self, backend: HfDecoder | HfEncoderDecoder, languages: Sequence[str], style: Style) -> None:
        self.backend, self.style = backend, style
        self._breaks = line_breaks(backend)
        end = backend.tokenizer.end_token
        self.end = min(backend.end_tokens) if end is None else end
        self._encoders = {tag: prompt_encoder(backend, style, parse_language(tag)) for tag in languages}

    def prompt(self, source: str, language: str) -> Prompt:
        """Return the prompt ids of live decoding for this much source text."""
        return self._encoders[language](source, (), None)

    def text(self, ids: Sequence[int]) -> str:
        """Decode ids without control tokens."""
        return b"".join(map(self.backend.token_bytes, ids)).decode(errors="replace")

    def written(self, translation: str, own: Ids) -> Ids:
        """Return the ids of a given translation, with a space before it as in an output of the model's own."""
        return as_output(translation, own, self.backend)

    @torch.inference_mode()
    def score(self, pairs: Sequence[Example]) -> list[NDArray[np.float32]]:
        """For each pair, return the (length,) log-probabilities of the output's tokens, with end tokens excluded.

        A line break is one of them, unless it belongs to a token with text.
        """
        ends = sorted(self.backend.end_tokens | self._breaks.before)
        found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(pairs)
        for group in grouped([length(pair) for pair in pairs], TOKENS):
            batch = collate([pairs[place] for place in group], self.backend.pad_token, self.backend.device)
            rows = self.backend.allowed(logits(self.backend.model, batch))
            rows[:, ends] = float("-inf")
            logs = torch.log_softmax(rows, -1).gather(1, batch.targets[:, None]).squeeze(1)
            lengths = [len(pairs[place][1]) for place in group]
            for place, part in zip(group, logs.split(lengths), strict=True):
                found[place] = part.cpu().numpy()
        return found

    @torch.inference_mode()
    def outputs(self, prompts: Sequence[Prompt], temperature: float = 0.0, seed: int = 0) -> list[Ids | None]:
        """Generate outputs for prompts into one language: greedy as in live decoding, or sampled.

        Args:
            prompts: the prompts.
            temperature: sampling temperature; 0 is greedy.
            seed: random seed.

        Returns:
            For each prompt, the ids with the end token, also where a line break ended them; None if the model did not
            end its output, or announced it ("Here is the translation:").
        """
        torch.manual_seed(seed)
        inputs = self._inputs(prompts)
        begun = len(prompts[0].ids) if prompts[0].encoder else inputs["input_ids"].shape[1]

        def after_line(ids: Tensor, _scores: object) -> Tensor:
            found = [self._breaks.end(row) is not None for row in ids[:, begun:].tolist()]
            return torch.tensor(found, device=ids.device)

        # Live decoding does not use the model's own generation settings (penalties, sampling).
        own, self.backend.model.generation_config = self.backend.model.generation_config, self._generation(prompts[0])
        drawn = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
        try:
            written = self.backend.model.generate(
                **inputs,
                **drawn,
                num_beams=1,
                max_new_tokens=self._limit(prompts),
                logits_processor=LogitsProcessorList([lambda _ids, scores: self.backend.allowed(scores)]),
                stopping_criteria=StoppingCriteriaList([after_line]),
            )
        finally:
            self.backend.model.generation_config = own
        return [self._ended(ids, prompt) for ids, prompt in zip(written[:, begun:].tolist(), prompts, strict=True)]

    def _inputs(self, prompts: Sequence[Prompt]) -> dict[str, Tensor]:
        """Return the input of ``generate``: prompts padded on the left, so that outputs start in one column."""
        ids, seen = padded([prompt.ids for prompt in prompts], self.backend.pad_token, left=True)
        inputs = {"input_ids": ids, "attention_mask": seen}
        # encoder positions count from the left; decoders start with the same number of ids for every source
        if prompts[0].encoder:
            source, seen = padded([prompt.encoder for prompt in prompts], self.backend.pad_token)
            inputs = {"input_ids": source, "attention_mask": seen, "decoder_input_ids": ids}
        return {name: tensor.to(self.backend.device) for name, tensor in inputs.items()}

    def _generation(self, prompt: Prompt) -> GenerationConfig:
        return GenerationConfig(
            eos_token_id=sorted(self.backend.end_tokens),
            pad_token_id=self.backend.pad_token,
            decoder_start_token_id=prompt.ids[0],
        )

    def _limit(self, prompts: Sequence[Prompt]) -> int:
        """Return the maximum number of new ids; translations are rarely twice as long as their sources."""
        room = self.backend.context_length - max(len(prompt.ids) for prompt in prompts)
        return max(1, min(room, 2 * max(len(prompt.source_ids) for prompt in prompts) + 16))

    def _ended(self, ids: Sequence[int], prompt: Prompt) -> Ids | None:
        ends = self.backend.end_tokens
        end = next((place for place, token in enumerate(ids) if token in ends), None)
        ids, token = (ids, self.end) if end is None else (ids[:end], ids[end])
        line = self._breaks.end(ids)
        if line is None:
            return None if end is None else (*ids, token)
        answer = OutputReader(self.text(prompt.source_ids), self._breaks, self.backend.token_bytes)
        return (*ids[:line], token) if answer.end(ids) == line else None

    def fingerprint(self) -> str:
        """Return 12 hex digits of a hash of the model's weights."""
        digest = hashlib.sha256()
        for weights in self.backend.model.state_dict().values():
            digest.update(weights.detach().cpu().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()[:12]
