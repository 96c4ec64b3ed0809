"""Prompts: published ones, a model's own and a user's own, rendered for a source and cut into segments.

A text is a Jinja template (`VARIABLES`); one with fields such as ``{source}``, which users and models of ours have,
becomes one.  Base models translate by examples, which such a text may hold:

    English: Good morning.
    German: Guten Morgen.

    English: {source}
    German:

Everything that stays the same between the updates of an utterance (instruction, glossary, earlier sentences) precedes
the source; only what the template requires follows it.  A prompt consists of *segments*: the template's text, in which
control tokens are recognised, and the user's text, in which they are not, so that ``<|im_end|>`` in a transcript cannot
end its turn.  Templates are rendered with marks in place of the user's texts, and split at the marks.
"""

from __future__ import annotations

import logging
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jinja2
from jinja2 import meta

from redraft.captions.answer import closed
from redraft.captions.chat import ChatTemplate, unusable
from redraft.captions.events import CONTROLS, SURROGATES
from redraft.captions.languages import Language, closest, parse_language
from redraft.captions.metadata import CHAT_KEY, PROMPT_KEY, SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY
from redraft.decoding.segments import PromptSegment
from redraft.errors import ModelError, OptionError, first_sentence

#: Template -> its table.
PUBLISHED: dict[str, dict[str, Any]] = tomllib.loads((files("redraft.captions") / "prompts.toml").read_text("utf-8"))
#: Publisher -> tag of each of its languages -> the name that its prompts give it; empty if they use ours.
LANGUAGES: dict[str, dict[str, str]] = {
    publisher: {tag: name for tag, _, name in (each.partition(":") for each in languages.split())}
    for publisher, languages in PUBLISHED.pop("languages").items()
}
#: Models of the catalogue -> their languages in `LANGUAGES`, those to suggest first.
COVERED: dict[str, str] = PUBLISHED.pop("covered")
#: How many models are suggested.
_SUGGESTED = 2


@lru_cache(1024)  # finding it takes milliseconds, and every prompt needs it
def among(language: Language, tags: Iterable[str]) -> Language | None:
    """Return which of ``tags`` serves for a language; None if none does."""
    return closest(language, map(parse_language, tags))


def suggestion(language: Language) -> str:
    """Return which models support a language, as a clause, such as "translategemma-4b supports it"."""
    names = [name for name, row in COVERED.items() if among(language, tuple(LANGUAGES[row]))][:_SUGGESTED]
    if not names:
        return "`redraft models` lists models with more languages"
    return f"{' and '.join(names)} {'support' if len(names) > 1 else 'supports'} it (see `redraft models`)"


_LINES = "{% for left, right in PAIRS %}{{ left }} = {{ right }}{% if not loop.last %}\n{% endif %}{% endfor %}"
#: The fields of a user's prompt, and their values in Jinja.
FIELDS = {
    "source": "{{ source }}",
    "source_language": "{{ source_language.name }}",
    "target_language": "{{ target_language.name }}",
    "source_code": "{{ source_language.code }}",
    "target_code": "{{ target_language.code }}",
    "terms": _LINES.replace("PAIRS", "terms"),
    "context": _LINES.replace("PAIRS", "context"),
}
#: The fields of a model's prompt.  Earlier sentences precede the source, and their translations begin the answer.
_CONTINUED = {
    "source": "{% for before, _ in context %}{{ before }}{% if source_language.spaced %} {% endif %}{% endfor %}"
    "{{ source }}",
    "code": "{{ known_target.code }}",
}
_BEGUN = "{{ context | map('last') | join(' ' if target_language.spaced else '') }}"
#: A field; all other braces are text.
_FIELD = re.compile(r"\{(\w[^\s{}]*)\}")
#: Fields for texts of the user; each may occur once.
_TEXTS = ("source", "terms", "context")


def prompt_file(path: Path) -> str:
    """Return the text of a prompt file.

    Raises:
        OptionError: it cannot be read as UTF-8, or is not a prompt (`filled`).
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin files with a byte order mark
    except (OSError, UnicodeError) as error:
        raise OptionError(f": {str(path)!r} cannot be read as UTF-8 text: {first_sentence(error)}", "prompt") from error
    filled(text)  # fails now, not when a stream starts
    return text


def filled(prompt: str) -> str:
    """Return a user's prompt as a Jinja text.

    Args:
        prompt: the text up to the start of the answer; a line break at its end is dropped, and open thoughts there are
            closed.  ``{source}`` occurs once; ``{terms}`` and ``{context}`` become a line ``term = translation`` for
            each term and for each earlier sentence.  Other braces are text.

    Raises:
        OptionError: a field is unknown, is missing or occurs twice.
    """
    return _replaced(closed(prompt.removesuffix("\n")), FIELDS)


def continued(prompt: str) -> str:
    """Return the prompt in a model's metadata as a Jinja text; it has the fields ``{source}``, once, and ``{code}``.

    Raises:
        OptionError: as in `filled`.
    """
    return _replaced(prompt, _CONTINUED) + _BEGUN


def _replaced(text: str, fields: Mapping[str, str]) -> str:
    """Return a text as Jinja, with values in place of its fields."""
    literal, *parts = _FIELD.split(text)
    names = parts[::2]
    for name in names:
        if name not in fields:
            allowed = ", ".join(f"{{{each}}}" for each in fields)
            raise OptionError(f": {{{name}}} is not a field; allowed: {allowed}", "prompt")
        if name in _TEXTS and names.count(name) > 1:
            raise OptionError(f": {{{name}}} may occur once, not {names.count(name)} times", "prompt")
    if "source" not in names:
        raise OptionError(": {source} is missing; it stands for the text to translate", "prompt")
    literals = [
        each.replace("{", '{{ "{" }}') for each in (literal, *parts[1::2])
    ]  # everything of Jinja begins with it
    return literals[0] + "".join(fields[name] + after for name, after in zip(names, literals[1:], strict=True))


log = logging.getLogger(__name__)

Metadata: TypeAlias = Mapping[str, str]

#: Variables of a text: the source; the glossary and the earlier sentences, as pairs; the earlier sentences without
#: translations, joined by spaces; the two languages, and those of the model that serve for them
#: (`redraft.captions.languages.Language`); and the model's languages by tag, with its names for them.
VARIABLES = frozenset(
    "source terms context sources source_language target_language known_source known_target names".split()
)
#: Stands for the model's end token in a rendered layout.  Private-use characters: no template strips or escapes them.
END_MARK = "\ue000end\ue001"
NO_TEMPLATE = (
    "the model has no chat template: write a prompt, with examples for a base model, and name it with --prompt"
)
_ENVIRONMENT = jinja2.Environment(keep_trailing_newline=True)


@dataclass(frozen=True, slots=True)
class Request:
    """The contents of a prompt; all texts are the user's and pass through `clean`.

    Attributes:
        source: the text to translate.
        context: earlier sentences as (source, translation), oldest first.
        glossary: required translations as (source term, target term).
    """

    source: str
    context: tuple[tuple[str, str], ...] = ()
    glossary: tuple[tuple[str, str], ...] = ()


@lru_cache(64)  # compiling takes milliseconds
def _compiled(text: str) -> tuple[jinja2.Template, frozenset[str]]:
    """Compile a Jinja text; return it with the names of the variables in it."""
    return _ENVIRONMENT.from_string(text), frozenset(meta.find_undeclared_variables(_ENVIRONMENT.parse(text)))


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt as a text.

    Attributes:
        text: the Jinja text.
        name: what it is called: one of `redraft.captions.metadata.TEMPLATE_NAMES`, ``prompt`` (a user's) or ``model``.
        turns: what goes around the text (see `prompts.toml`).
        sources, targets: tags of the model's languages; any language if empty.
        names: the model's names of its languages, by tag.
        recommended: whether other languages are only warned of.
        model: the model's name in messages.
        fits: metadata of such models: alternatives of regular expressions by what they are searched in.
    """

    text: str
    name: str
    turns: Literal["none", "message", "instruction"] = "none"
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    recommended: bool = False
    model: str = "this model"
    fits: Sequence[Mapping[str, str]] = ()

    @property
    def variables(self) -> frozenset[str]:
        """Which of `VARIABLES` the prompt has a place for."""
        found = _compiled(self.text)[1]
        return found | {"context"} if self.turns == "instruction" else found

    def suits(self, metadata: Metadata) -> bool:
        """Whether it is for a model with these GGUF metadata."""
        name = metadata.get("general.name", metadata.get("general.basename", "")).lower()
        facts = {
            "name": re.sub(r"[^a-z0-9.]", "", name),
            "architecture": metadata.get("general.architecture", ""),
            "chat": metadata.get(CHAT_KEY, ""),
        }
        return any(all(re.search(pattern, facts[key]) for key, pattern in each.items()) for each in self.fits)

    def known(self, language: Language, tags: tuple[str, ...], option: str) -> Language:
        """Return the language of the model that serves for a language.  Raises `OptionError` if none does."""
        found = among(language, tags) if tags else language
        if found is None and not self.recommended:
            refused = f"{language.tag!r} is not supported by this model (allowed: {', '.join(tags)})"
            raise OptionError(f"{refused}; {suggestion(language)}", option)
        if found is None:
            log.warning("%s is not among the languages of %s; %s", language.name, self.model, suggestion(language))
        return language if found is None or self.recommended else found


#: The templates of models that follow instructions; models with others only translate.
_FOLLOWS = ("tower", "qwen3", "chat")


def chat_template(metadata: Metadata) -> ChatTemplate | None:
    """Return a model's chat template, which takes any messages; None if the model only translates.

    Raises:
        ModelError: the template cannot be used.
    """
    if not metadata.get(CHAT_KEY) or choose_template(metadata).name not in _FOLLOWS:
        return None
    return ChatTemplate(metadata[CHAT_KEY], end=END_MARK)


def _published(name: str) -> Template:
    """Return a template of `prompts.toml`."""
    row = dict(PUBLISHED[name])
    row["text"] = row["text"].replace("{{ instruction }}", PUBLISHED["chat"]["text"])
    names = LANGUAGES.get(row.pop("languages", ""), {})
    return Template(name=name, sources=tuple(names), targets=tuple(names), names=names, **row)


#: The published templates, by name.
TEMPLATES = {name: _published(name) for name in PUBLISHED}


def choose_template(metadata: Metadata, name: str | None = None, prompt: str | None = None) -> Template:
    """Return the template of this name, or a user's prompt.

    Without either, return the prompt in a model's GGUF metadata, or else the first published one that suits it.

    Raises:
        OptionError: the name is unknown or comes with a prompt, or the prompt has a wrong field.
        ModelError: none suits it, or its own prompt is invalid.
    """
    if name is not None and name not in TEMPLATES:
        raise OptionError(f"must be one of {', '.join(TEMPLATES)}, not {name!r}", "template")
    if name is not None and prompt is not None:
        raise OptionError("template and prompt cannot be combined, so leave one out")
    if prompt is not None:
        return Template(filled(prompt), "prompt")
    if name is not None:
        return TEMPLATES[name]
    if PROMPT_KEY in metadata:
        try:
            text = continued(metadata[PROMPT_KEY])
        except OptionError as error:
            raise ModelError(f"the model's {PROMPT_KEY} cannot be used{str(error).removeprefix('prompt')}") from error
        sources, targets = (
            tuple(metadata.get(key, "").replace(",", " ").split())
            for key in (SOURCE_LANGUAGES_KEY, TARGET_LANGUAGES_KEY)
        )
        return Template(text, "model", sources=sources, targets=targets)
    for template in TEMPLATES.values():
        if template.suits(metadata):
            return template
    raise ModelError(NO_TEMPLATE)


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
        chosen = self._chosen = choose_template(metadata, template, prompt)
        self.template, self._source, self._target = chosen.name, source, target
        self._text, self._takes = _compiled(chosen.text)[0], chosen.variables
        self._known = {
            "known_source": chosen.known(source, chosen.sources, "source language"),
            "known_target": chosen.known(target, chosen.targets, "target language"),
        }
        self._chat: ChatTemplate | None = None
        if chosen.turns != "none":
            if not metadata.get(CHAT_KEY):
                raise ModelError(NO_TEMPLATE)
            self._chat = ChatTemplate(metadata[CHAT_KEY], end=END_MARK)
        self._start, self._end = (control_token(metadata, name) for name in ("bos", "eos"))
        self.segments(Request("x"))  # fails now if the template cannot be used

    def segments(self, request: Request) -> tuple[PromptSegment, ...]:
        """Return the prompt's segments; their texts, joined, are the whole prompt.

        Raises:
            OptionError: the template does not support glossaries, or earlier sentences.
            ModelError: the chat template does not support such a conversation.
        """
        chosen, texts = self._chosen, list[str]()
        for option, places in (("glossary", ("terms",)), ("context", ("context", "sources"))):
            if getattr(request, option) and self._takes.isdisjoint(places):
                add = f"the prompt has no field {{{places[0]}}}, so add it or leave {option} out"
                other = f"{chosen.model} does not support it, so leave it out or use another model"
                raise OptionError(f": {add if chosen.name == 'prompt' else other}", option)

        def mark(text: str) -> str:
            texts.append(clean(text))
            return f"\ue000{len(texts) - 1}\ue001"

        only = "sources" in self._takes  # the model sees earlier sentences without their translations
        source = mark(request.source)
        context = [(mark(before), "" if only else mark(translation)) for before, translation in request.context]
        terms = [(mark(term), mark(wanted)) for term, wanted in request.glossary]
        return tuple(_cut(self._rendered(source, context, terms), texts, self._end))

    def _rendered(self, source: str, context: Sequence[tuple[str, str]], terms: Sequence[tuple[str, str]]) -> str:
        """Return the prompt as one text, with marks in place of the user's texts."""
        ours, theirs = self._source, self._target
        rendered = self._text.render(
            self._known,
            source_language=ours,
            target_language=theirs,
            source=source,
            terms=terms,
            context=context,
            sources=" ".join(sentence for sentence, _ in context),
            names=self._chosen.names,
        )
        if self._chat is None:
            return rendered
        if self._chosen.turns == "message":
            return self._chat.ask(rendered)
        earlier = [(f"{ours.name}: {sentence}", translation) for sentence, translation in context]
        return self._chat(rendered, earlier, f"{ours.name}: {source}", f"{theirs.name}:")

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
