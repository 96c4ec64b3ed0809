"""The prompt templates, one row each: its name, the models that it is for, and its layout.

Most are the prompts of one model (`redraft.captions.published`), or those of SSBD v2, Table 5 (``tower`` and
``qwen3``).  ``chat`` is the model's own chat template, with the same instruction and the same header before the answer.
``plain-tag`` is a format string in the model's metadata, as in the demo models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TypeAlias

from redraft.captions.chat import ChatTemplate, Render, gemma, qwen3, tower
from redraft.captions.coverage import TOWER, TRANSLATEGEMMA, supported_tag, warn_outside
from redraft.captions.languages import Language, parse_language
from redraft.captions.metadata import CHAT_KEY, PLAIN_KEY, SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY
from redraft.captions.published import cat_translate, hy_mt2, hy_mt15, milmmt, translategemma
from redraft.captions.request import Request
from redraft.errors import ModelError, OptionError

Metadata: TypeAlias = Mapping[str, str]
#: Renders a prompt as one text, from a request with marks in place of texts.
Layout: TypeAlias = Callable[[Request], str]
#: Returns the layout for the metadata of a model, its source language and its target language.
MakeLayout: TypeAlias = Callable[[Metadata, Language, Language], Layout]

#: Stands for the model's end token in a rendered layout.  Private-use characters: no template strips or escapes them.
END_MARK = "\ue000end\ue001"
NO_TEMPLATE = (
    "the model has no chat template: write a prompt for it, with examples if it is a base model, and name the file "
    "with --prompt"
)
_INSTRUCTION = (
    "Translate the {source} source text to {target}. "
    "Return only the translation, without any additional explanations or commentary."
)


@dataclass(frozen=True, slots=True)
class Template:
    """A row of the table.

    Attributes:
        name: one of `redraft.captions.metadata.TEMPLATE_NAMES`, which users type, or ``plain-tag``.
        fits: whether a model with these metadata is prompted in this way.
        layout: makes the layout.
        sources_only: whether the model sees earlier sentences without their translations.

    Raises (``layout``):
        OptionError: the model was not trained on a language.
        ModelError: the metadata lack what the layout needs, or it cannot be used.
    """

    name: str
    fits: Callable[[Metadata], bool]
    layout: MakeLayout
    sources_only: bool = False


#: The templates of models that follow instructions; models with others only translate.
_FOLLOWS = ("tower", "qwen3", "chat")


def chat_template(metadata: Metadata) -> ChatTemplate | None:
    """Return a model's chat template, which takes any messages; None if the model only translates.

    Raises:
        ModelError: the template cannot be used.
    """
    chats = metadata.get(CHAT_KEY) and choose_template(metadata) in _FOLLOWS
    return _own_chat(metadata) if chats else None


def choose_template(metadata: Metadata) -> str:
    """Return the name of the first template in the table that fits a model's GGUF metadata.

    Raises:
        ModelError: none fits.
    """
    for template in TEMPLATES.values():
        if template.fits(metadata):
            return template.name
    raise ModelError(NO_TEMPLATE)


# Which models


def _name(metadata: Metadata) -> str:
    return metadata.get("general.name", metadata.get("general.basename", "")).lower()


def _plain_name(metadata: Metadata) -> str:
    return re.sub(r"[^a-z0-9.]", "", _name(metadata))


def _is_called(metadata: Metadata, *beginnings: str) -> bool:
    return bool(metadata.get(CHAT_KEY)) and _plain_name(metadata).startswith(beginnings)


def _is_translategemma(metadata: Metadata) -> bool:
    return "translategemma" in _plain_name(metadata) or "source_lang_code" in metadata.get(CHAT_KEY, "")


def _is_tower(metadata: Metadata) -> bool:
    # The 72B model and the older Tower models are not based on Gemma.
    return "tower" in _name(metadata) and metadata.get("general.architecture", "").startswith("gemma")


def _is_qwen3(metadata: Metadata) -> bool:
    # Models derived from Qwen3 may have another template, and later Qwen3 models cannot think.
    chat = metadata.get(CHAT_KEY, "")
    thinks = "<|im_start|>" in chat and "enable_thinking" in chat
    known = metadata.get("general.architecture") in {"qwen3", "qwen3moe"}
    return known and (thinks or (not chat and "qwen3" in _name(metadata)))


# Their layouts


def _plain_layout(metadata: Metadata, source: Language, target: Language) -> Layout:
    pattern = metadata.get(PLAIN_KEY, "")
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
    known = " ".join(tags.replace(",", " ").split())
    return parse_language(supported_tag(wanted, known, field), field) if known else wanted


def _own_chat(metadata: Metadata) -> ChatTemplate:
    """Return the model's chat template."""
    if not metadata.get(CHAT_KEY):
        raise ModelError(NO_TEMPLATE)
    return ChatTemplate(metadata[CHAT_KEY], end=END_MARK)


def _asking(message: Callable[[Request, Language, Language], str]) -> MakeLayout:
    """Return what makes the layout of a model whose chat template takes a published message."""

    def layout(metadata: Metadata, source: Language, target: Language) -> Layout:
        chat = _own_chat(metadata)
        return lambda request: chat.ask(message(request, source, target))

    return layout


def _milmmt_layout(_metadata: Metadata, source: Language, target: Language) -> Layout:
    return partial(milmmt, source=source, target=target)


def _translategemma_layout(metadata: Metadata, source: Language, target: Language) -> Layout:
    """Return TranslateGemma's layout: by its own template, which makes the message from language codes, or by ours.

    The template knows some languages only by a longer or shorter tag, and raises for others.
    """
    warn_outside("TranslateGemma", TRANSLATEGEMMA, source, target)

    def by_turns(request: Request) -> str:
        return gemma(translategemma(request, source, target))

    if "source_lang_code" not in metadata.get(CHAT_KEY, ""):
        return by_turns
    chat = _own_chat(metadata)

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
    raise problem or ModelError(NO_TEMPLATE)


def _tower_layout(_metadata: Metadata, source: Language, target: Language) -> Layout:
    warn_outside("Tower+", TOWER, source, target)
    return partial(_conversation, render=tower, source=source.name, target=target.name)


def _qwen3_layout(_metadata: Metadata, source: Language, target: Language) -> Layout:
    return partial(_conversation, render=qwen3, source=source.name, target=target.name)


def _chat_layout(metadata: Metadata, source: Language, target: Language) -> Layout:
    return partial(_conversation, render=_own_chat(metadata), source=source.name, target=target.name)


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


#: The table, by name; of the rows that fit a model, the first one is used.
TEMPLATES = {
    template.name: template
    for template in (
        Template("plain-tag", lambda metadata: PLAIN_KEY in metadata, _plain_layout),
        Template("hy-mt2", lambda metadata: _is_called(metadata, "hymt2"), _asking(hy_mt2), sources_only=True),
        Template(
            "hy-mt1.5",
            lambda metadata: _is_called(metadata, "hymt1.5", "hunyuanmt"),  # Hunyuan-MT has the same prompts
            _asking(hy_mt15),
            sources_only=True,
        ),
        Template("milmmt", lambda metadata: _plain_name(metadata).startswith("milmmt"), _milmmt_layout),
        Template("cat-translate", lambda metadata: _is_called(metadata, "cattranslate"), _asking(cat_translate)),
        Template("translategemma", _is_translategemma, _translategemma_layout),
        Template("tower", _is_tower, _tower_layout),
        Template("qwen3", _is_qwen3, _qwen3_layout),
        Template("chat", lambda metadata: bool(metadata.get(CHAT_KEY)), _chat_layout),
    )
}
