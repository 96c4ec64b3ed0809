"""Turn a source text into prompt ids, so that a growing source shares the longest possible prefix.

Everything that stays the same between the updates of an utterance (instruction, glossary, earlier sentences) precedes
the source; only what the template requires follows it.  A prompt consists of *segments*: the template's text, in which
control tokens are recognised, and the user's text, in which they are not, so that ``<|im_end|>`` in a transcript cannot
end its turn.  Layouts are rendered with marks in place of the user's texts, and split at the marks.

`redraft.captions.templates` has the prompts.  A prompt of the user's own (``prompt``, see `redraft.captions.templates`)
replaces these.

This module uses no engine: the caller passes ``tokenize``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from redraft.captions.chat import ChatTemplate, unusable
from redraft.captions.events import CONTROLS, SURROGATES
from redraft.captions.languages import Language
from redraft.captions.metadata import TEMPLATE_NAMES
from redraft.captions.templates import END_MARK, TEMPLATES, Request, Template, choose_template, filled
from redraft.decoding.segments import PromptSegment
from redraft.errors import ModelError, OptionError

# Private-use characters: no template strips or escapes them, and the user's texts are inserted after splitting.
_MARK = re.compile("\ue000(end|[0-9]+)\ue001")


def clean(text: str) -> str:
    """Normalise a user's text for a prompt.

    Control characters (category Cc) count as white space; each run of white space becomes one space, and the ends are
    stripped, so a source that grew only by a space is unchanged.  Surrogates, which no tokenizer accepts, become
    U+FFFD.  Decomposed accents, as some systems and recognisers write them, are composed (NFC): models know no others.
    """
    text = SURROGATES.sub("\ufffd", CONTROLS.sub(" ", text))
    return " ".join(unicodedata.normalize("NFC", text).split())


class Prompter:
    """Makes the prompts of one model for one language pair.

    Args:
        metadata: the model's GGUF metadata as text.
        source: source language.
        target: target language.
        template: one of `TEMPLATE_NAMES`; None chooses by the metadata.
        prompt: a prompt of the user's own, instead of a template.

    Attributes:
        template: name of the template.

    Raises:
        OptionError: the template is unknown or comes with a prompt, the prompt has a wrong field, or the model was
            not trained on a language.
        ModelError: the metadata do not determine a template, or the template cannot be used.
    """

    def __init__(
        self,
        metadata: Mapping[str, str],
        source: Language,
        target: Language,
        template: str | None = None,
        prompt: str | None = None,
    ) -> None:
        if template is not None and template not in TEMPLATE_NAMES:
            raise OptionError(f"must be one of {', '.join(TEMPLATE_NAMES)}, not {template!r}", "template")
        if template is not None and prompt is not None:
            raise OptionError("template and prompt cannot be combined, so leave one out")
        if prompt is not None:
            chosen = Template(filled(prompt), "prompt")
        else:
            chosen = TEMPLATES[template] if template else choose_template(metadata)
        self.template, self._layout = chosen.name, chosen.layout(metadata, source, target)
        self._start, self._end = (control_token(metadata, name) for name in ("bos", "eos"))
        #: Whether the model sees earlier sentences without their translations.
        self._sources_only = "sources" in chosen.variables
        self.segments(Request("x"))  # fails now if the template cannot be used

    def segments(self, request: Request) -> tuple[PromptSegment, ...]:
        """Return the prompt's segments; their texts, joined, are the whole prompt.

        Raises:
            OptionError: the template does not support glossaries, or earlier sentences.
            ModelError: the chat template does not support such a conversation.
        """
        texts: list[str] = []

        def mark(text: str) -> str:
            texts.append(clean(text))
            return f"\ue000{len(texts) - 1}\ue001"

        only = self._sources_only
        marked = Request(
            mark(request.source),
            tuple((mark(source), "" if only else mark(translation)) for source, translation in request.context),
            tuple((mark(term), mark(wanted)) for term, wanted in request.glossary),
        )
        return tuple(_cut(self._layout(marked), texts, self._end))

    def encode(self, request: Request, encode: Callable[[Sequence[PromptSegment]], list[int]]) -> tuple[int, ...]:
        """Return the prompt's ids; ``encode`` is `redraft.decoding.backend.Backend.encode`.

        Raises:
            OptionError: the template does not support glossaries, or earlier sentences.
            ModelError: the chat template does not support such a conversation.
        """
        ids = encode(self.segments(request))
        if self._start is not None and ids[:2] == [self._start] * 2:
            return tuple(ids[1:])  # the chat template already contains it
        return tuple(ids)


def conversation(
    template: ChatTemplate, messages: Sequence[tuple[str, str]], end_token: int | None, told: Mapping[str, object]
) -> list[PromptSegment]:
    """Return the prompt of a chat, as the template renders it.

    Args:
        messages: role and content of each.
        told: arguments of the template.

    Raises:
        ModelError: the template refuses the messages.
    """
    rendered = template.render(messages, told)
    marked = template.render([(role, f"\ue000{place}\ue001") for place, (role, _) in enumerate(messages)], told)
    contents = [content for _, content in messages]
    for texts in (contents, [content.strip() for content in contents]):
        with suppress(ModelError):
            segments = _cut(marked, texts, end_token)
            if "".join(each.text for each in segments) == rendered.replace(END_MARK, ""):
                return segments
    return _cut(rendered, [], end_token)  # it looks into the messages, for example for earlier thoughts


def _cut(rendered: str, texts: Sequence[str], end_token: int | None) -> list[PromptSegment]:
    """Split a rendered layout at its marks, and insert the texts."""
    if end_token is None:
        rendered = rendered.replace(END_MARK, "")
    parts = _MARK.split(rendered)
    marks = [name for name in parts[1::2] if name != "end"]
    if sorted(marks, key=int) != [str(index) for index in range(len(texts))]:
        raise unusable("it drops or repeats the text")
    segments: list[PromptSegment] = []
    for index, part in enumerate(parts):
        if index % 2 == 0:
            segments += [PromptSegment(part, True)] * (part != "")
        elif part == "end":
            segments.append(PromptSegment("", True, end_token))
        else:
            segments += [PromptSegment(texts[int(part)], False)] * (texts[int(part)] != "")
    return segments


def control_token(metadata: Mapping[str, str], name: str) -> int | None:
    """Return the id of a model's control token, such as ``bos`` or ``eos``; None if it has none."""
    value = metadata.get(f"tokenizer.ggml.{name}_token_id", "")
    return int(value) if value.isdecimal() else None
