"""Turn a source text into prompt ids, so that a growing source shares the longest possible prefix.

Everything that stays the same between the updates of an utterance (instruction, glossary, earlier sentences) precedes
the source; only what the template requires follows it.  A prompt consists of *segments*: the template's text, in which
control tokens are recognised, and the user's text, in which they are not, so that ``<|im_end|>`` in a transcript cannot
end its turn.  Layouts are rendered with marks in place of the user's texts, and split at the marks.

The templates, by name:

* ``hy-mt2``, ``hy-mt1.5``, ``translategemma``: the prompts of these models (`redraft.captions.published`);
* ``tower``, ``qwen3``: SSBD v2, Table 5, for Tower+ and for Qwen3 without thinking;
* ``chat``: the model's own chat template, with the same instruction and the same header before the answer.

Models whose metadata hold a format string, such as the demo models, are prompted with it (``plain-tag``).  A prompt of
the user's own (``prompt``, see `redraft.captions.own_prompt`) replaces all of these.

This module uses no engine: the caller passes ``tokenize``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TypeAlias

from redraft.captions.chat import ChatTemplate, Render, gemma, qwen3, tower, unusable
from redraft.captions.events import CONTROLS, SURROGATES
from redraft.captions.languages import Language, closest, parse_language
from redraft.captions.own_prompt import OwnPrompt
from redraft.captions.published import hy_mt2, hy_mt15, translategemma
from redraft.captions.style import TEMPLATES, Request
from redraft.decoding.segments import PromptSegment
from redraft.errors import ModelError, OptionError

#: Those that show the model earlier sentences without their translations.
_SOURCES_ONLY = ("hy-mt2", "hy-mt1.5")

#: Metadata keys of translation models: the format string (with fields ``{source}`` and ``{code}``, the target's code),
#: and the tags of the languages it was trained on, separated by commas (any language if absent).
PLAIN_KEY = "redraft.prompt"
SOURCE_LANGUAGES_KEY = "redraft.source_languages"
TARGET_LANGUAGES_KEY = "redraft.target_languages"
_CHAT_KEY = "tokenizer.chat_template"
_INSTRUCTION = (
    "Translate the {source} source text to {target}. "
    "Return only the translation, without any additional explanations or commentary."
)

# Private-use characters: no template strips or escapes them, and the user's texts are inserted after splitting.
_MARK = re.compile("\ue000(end|[0-9]+)\ue001")
_END_MARK = "\ue000end\ue001"


_NO_TEMPLATE = (
    "the model has no chat template: write a prompt for it, with examples if it is a base model, and name the file "
    "with --prompt"
)

#: Renders a prompt as one text, from a request with marks in place of texts.
Layout: TypeAlias = Callable[[Request], str]


def clean(text: str) -> str:
    """Normalise a user's text for a prompt.

    Control characters (category Cc) count as white space; each run of white space becomes one space, and the ends are
    stripped, so a source that grew only by a space is unchanged.  Surrogates, which no tokenizer accepts, become
    U+FFFD.
    """
    return " ".join(SURROGATES.sub("\ufffd", CONTROLS.sub(" ", text)).split())


@dataclass(frozen=True, slots=True)
class Prompter:
    """Makes the prompts of one model for one language pair.  Created by `for_model`.

    Attributes:
        template: name of the template: one of `TEMPLATES`, ``plain-tag`` or ``prompt``.
        layout: renders a request.
        start_token: id of the model's start token; None if unknown.
        end_token: id of its end token; None if unknown.
    """

    template: str
    layout: Layout
    start_token: int | None = None
    end_token: int | None = None

    @classmethod
    def for_model(
        cls,
        metadata: Mapping[str, str],
        source: Language,
        target: Language,
        template: str | None = None,
        prompt: str | None = None,
    ) -> Prompter:
        """Create the prompter for a model.

        Args:
            metadata: the model's GGUF metadata as text.
            source: source language.
            target: target language.
            template: one of `TEMPLATES`; None chooses by the metadata.
            prompt: a prompt of the user's own, instead of a template.

        Raises:
            OptionError: the template is unknown or comes with a prompt, the prompt has a wrong field, or the model was
                not trained on a language.
            ModelError: the metadata do not determine a template, or the template cannot be used.
        """
        if template is not None and template not in TEMPLATES:
            raise OptionError(
                f"{template!r} is not known: use {', '.join(TEMPLATES[:-1])} or {TEMPLATES[-1]}", "template"
            )
        if template is not None and prompt is not None:
            raise OptionError("template and prompt exclude each other, so leave one out")
        name = "prompt" if prompt is not None else template or choose_template(metadata)
        prompter = cls(
            name,
            partial(OwnPrompt(prompt).render, source=source, target=target)
            if prompt is not None
            else _layout(name, metadata, source, target),
            _token(metadata, "tokenizer.ggml.bos_token_id"),
            _token(metadata, "tokenizer.ggml.eos_token_id"),
        )
        prompter.segments(Request("x"))  # fails now if the template cannot be used
        return prompter

    def segments(self, request: Request) -> tuple[PromptSegment, ...]:
        """Return the prompt's segments; their texts, joined, are the whole prompt.

        Raises:
            OptionError: a glossary entry is empty, or the template does not support glossaries.
            ModelError: the chat template does not support such a conversation.
        """
        texts: list[str] = []

        def mark(text: str) -> str:
            texts.append(text)
            return f"\ue000{len(texts) - 1}\ue001"

        glossary = [(clean(term), clean(wanted)) for term, wanted in request.glossary]
        if not all(term and wanted for term, wanted in glossary):
            raise OptionError(": every entry needs a source term and a target term that are not empty", "glossary")
        context = [(clean(source), clean(translation)) for source, translation in request.context]
        marked = Request(
            mark(clean(request.source)),
            tuple(
                (mark(source), "" if self.template in _SOURCES_ONLY else mark(translation))
                for source, translation in context
                if source and translation
            ),
            tuple((mark(term), mark(wanted)) for term, wanted in glossary),
        )
        return tuple(_cut(self.layout(marked), texts, self.end_token))

    def encode(self, request: Request, encode: Callable[[Sequence[PromptSegment]], list[int]]) -> tuple[int, ...]:
        """Return the prompt's ids; ``encode`` is `redraft.decoding.backend.Backend.encode`.

        Raises:
            OptionError: a glossary entry is empty, or the template does not support glossaries.
            ModelError: the chat template does not support such a conversation.
        """
        ids = encode(self.segments(request))
        if self.start_token is not None and ids[:2] == [self.start_token] * 2:
            return tuple(ids[1:])  # the chat template already contains it
        return tuple(ids)


def choose_template(metadata: Mapping[str, str]) -> str:
    """Choose a template by a model's GGUF metadata.

    Raises:
        ModelError: the metadata fit no template.
    """
    name = metadata.get("general.name", metadata.get("general.basename", "")).lower()
    plain_name = re.sub(r"[^a-z0-9.]", "", name)
    architecture = metadata.get("general.architecture", "")
    chat = metadata.get(_CHAT_KEY, "")
    if PLAIN_KEY in metadata:
        return "plain-tag"
    if chat and plain_name.startswith("hymt2"):
        return "hy-mt2"
    if chat and plain_name.startswith(("hymt1.5", "hunyuanmt")):  # Hunyuan-MT has the same prompts
        return "hy-mt1.5"
    if "translategemma" in plain_name or "source_lang_code" in chat:
        return "translategemma"
    # Models derived from Qwen3 may have another template, and later Qwen3 models cannot think.
    thinks = "<|im_start|>" in chat and "enable_thinking" in chat
    if architecture in {"qwen3", "qwen3moe"} and (thinks or (not chat and "qwen3" in name)):
        return "qwen3"
    # the 72B model and the older Tower models are not based on Gemma
    if "tower" in name and architecture.startswith("gemma"):
        return "tower"
    if chat:
        return "chat"
    raise ModelError(_NO_TEMPLATE)


def _layout(name: str, metadata: Mapping[str, str], source: Language, target: Language) -> Layout:
    if name == "plain-tag":
        return _plain_layout(metadata, source, target)
    if name == "translategemma":
        return _gemma_layout(metadata, source, target)
    if name in ("tower", "qwen3"):
        return partial(
            _conversation, render=qwen3 if name == "qwen3" else tower, source=source.name, target=target.name
        )
    if not metadata.get(_CHAT_KEY):
        raise ModelError(_NO_TEMPLATE)
    chat = ChatTemplate(metadata[_CHAT_KEY], end=_END_MARK)
    if name == "chat":
        return partial(_conversation, render=chat, source=source.name, target=target.name)
    message = hy_mt2 if name == "hy-mt2" else hy_mt15
    return lambda request: chat.ask(message(request, source, target))


def _gemma_layout(metadata: Mapping[str, str], source: Language, target: Language) -> Layout:
    """Return TranslateGemma's layout: by its own template, which makes the message from language codes, or by ours.

    The template knows some languages only by a longer or shorter tag, and raises for others.
    """

    def by_turns(request: Request) -> str:
        return gemma(translategemma(request, source, target))

    if "source_lang_code" not in metadata.get(_CHAT_KEY, ""):
        return by_turns
    chat = ChatTemplate(metadata[_CHAT_KEY], end=_END_MARK)

    def ask(text: str, codes: tuple[str, str]) -> str:
        return chat.ask([{"type": "text", "source_lang_code": codes[0], "target_lang_code": codes[1], "text": text}])

    tags = [(each.tag, each.canonical, f"{each.code}-{each.script}", each.code) for each in (source, target)]
    problem: ModelError | None = None
    for codes in dict.fromkeys(product(tags[0], tags[1])):
        try:
            ask("x", codes)
        except ModelError as error:
            problem = problem or error
            continue

        def by_template(request: Request, codes: tuple[str, str] = codes) -> str:
            by_turns(request)  # refuses what the model does not support
            return ask(request.source, codes)

        return by_template
    raise problem or ModelError(_NO_TEMPLATE)


def _plain_layout(metadata: Mapping[str, str], source: Language, target: Language) -> Layout:
    pattern = metadata[PLAIN_KEY]
    if pattern.count("{source}") != 1:
        raise ModelError(f"the model's {PLAIN_KEY} is {pattern!r}, but must hold {{source}} exactly once")
    _supported(source, metadata.get(SOURCE_LANGUAGES_KEY, ""), "source language")
    code = _supported(target, metadata.get(TARGET_LANGUAGES_KEY, ""), "target language").code
    separator = " " if target.spaced else ""
    source_separator = " " if source.spaced else ""

    def layout(request: Request) -> str:
        if request.glossary:
            raise OptionError(
                ": this model does not follow instructions, so leave it out or use another model", "glossary"
            )
        sources = source_separator.join([*(earlier for earlier, _ in request.context), request.source])
        begun = separator.join(translation for _, translation in request.context)
        return pattern.replace("{code}", code).replace("{source}", sources) + begun

    return layout


def _supported(wanted: Language, tags: str, field: str) -> Language:
    """Return the language among ``tags`` that serves for ``wanted``."""
    supported = [parse_language(tag, field) for tag in tags.split(",") if tag.strip()]
    found = closest(wanted, supported) if supported else wanted
    if found is None:
        allowed = ", ".join(each.tag for each in supported)
        raise OptionError(f"{wanted.tag!r} is not supported by this model; allowed: {allowed}", field)
    return found


def _conversation(request: Request, render: Render, source: str, target: str) -> str:
    """Render the prompt of a chat model: the instruction, then questions, and answers that start with the language.

    The instruction is that of SSBD v2, Table 5, with the glossary as an additional sentence.
    """
    instruction = _INSTRUCTION.format(source=source, target=target)
    if request.glossary:
        terms = "; ".join(f"{term} = {wanted}" for term, wanted in request.glossary)
        instruction += f" Use these translations: {terms}."
    earlier = [(f"{source}: {text}", translation) for text, translation in request.context]
    return render(instruction, earlier, f"{source}: {request.source}", f"{target}:")


def _cut(rendered: str, texts: list[str], end_token: int | None) -> list[PromptSegment]:
    """Split a rendered layout at its marks, and insert the texts."""
    parts = _MARK.split(rendered)
    marks = [name for name in parts[1::2] if name != "end"]
    if sorted(marks, key=int) != [str(index) for index in range(len(texts))]:
        raise unusable("it drops or repeats the text")
    segments: list[PromptSegment] = []

    def add(text: str, special: bool) -> None:
        if segments and segments[-1].special == special and segments[-1].token is None:
            segments[-1] = PromptSegment(segments[-1].text + text, special)
        elif text:
            segments.append(PromptSegment(text, special))

    for index, part in enumerate(parts):
        if index % 2 == 0:
            add(part, special=True)
        elif part != "end":
            add(texts[int(part)], special=False)
        elif end_token is not None:
            segments.append(PromptSegment("", True, end_token))
    return segments


def _token(metadata: Mapping[str, str], key: str) -> int | None:
    value = metadata.get(key, "")
    return int(value) if value.isdecimal() else None
