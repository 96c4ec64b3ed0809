"""What the tests of prompts share: small chat templates, and a tokenizer of words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from redraft.decoding.segments import FunctionalToken, PromptSegment, PromptTokenizer

# Templates of our own, each with one trait of the real ones.
WITH_SYSTEM = """{{ bos_token }}{% for m in messages %}
    {% if m.role not in ["system", "user", "assistant"] %}{{ raise_exception("role") }}{% endif %}
<|{{ m.role }}|>{{ m.content | trim }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""
RAISES_ON_SYSTEM = """{% for m in messages %}{% if m.role == "system" %}{{ raise_exception("no system") }}{% endif %}
{% if (m.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("roles must take turns") }}{% endif %}
[{{ "model" if m.role == "assistant" else m.role }}]
{{ m.content | trim }}[end]
{% endfor %}{% if add_generation_prompt %}[model]
{% endif %}"""
DROPS_SYSTEM = """{% for m in messages %}{% if m.role == "system" %}{% continue %}{% endif %}
{{ m.role | upper }}: {{ m.content }}{{ eos_token if m.role == "assistant" else " " }}{% endfor %}
{% if add_generation_prompt %}ASSISTANT:{% endif %}"""
THINKS = """{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>
{{- "<think></think>" if enable_thinking is defined and not enable_thinking else "<think>" }}{% endif %}"""


class ToyTokenizer:
    """Words with the space before them, as BPE; the control tokens where they are read; id 0 starts."""

    def __init__(self, control: str = r"<\|?\w+\|?>", adds_space: bool = False, starts: bool = True) -> None:
        self.control, self.adds_space, self.starts = control, adds_space, starts
        self.words = ["<s>"]

    def __call__(self, text: str, *, special: bool = False, start: bool = False) -> list[int]:
        assert text
        pieces = re.split(f"({self.control})", text) if special else [text]
        found = ["<s>"] if start and self.starts else []
        for index, piece in enumerate(pieces):
            if index % 2:
                found.append(piece)
            else:
                spaced = " " + piece if self.adds_space and piece else piece
                found += ["text:" + word for word in re.findall(r" ?[^\s<|>]+|[\s<|>]", spaced)]
        return [self._id(word) for word in found]

    def encode(self, segments: Sequence[PromptSegment]) -> list[int]:
        """As a backend makes the ids of a prompt; functional are the control tokens that its template has."""
        template = "".join(segment.text for segment in segments if segment.special)
        control = {text: FunctionalToken(self._id(text)) for text in re.findall(self.control, template)}
        made = PromptTokenizer(lambda text, special: self(text, special=special), control)
        return [self._id("<s>")] * self.starts + made(segments)

    def _id(self, word: str) -> int:
        if word not in self.words:
            self.words.append(word)
        return self.words.index(word)

    def read(self, ids: tuple[int, ...]) -> str:
        return "".join(self.words[token].removeprefix("text:") for token in ids)
