"""Prompts with fields, for models that no published prompt fits, base models among them.

A base model translates by examples, which the text may hold:

    English: Good morning.
    German: Guten Morgen.

    English: {source}
    German:
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from string import Formatter

from redraft.captions.thoughts import closed
from redraft.errors import OptionError, first_sentence

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
            each term and for each earlier sentence.  ``{{`` and ``}}`` are braces.

    Raises:
        OptionError: a field is unknown, is missing, occurs twice or has a format, or a brace is not closed.
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
    try:
        found = list(Formatter().parse(text))
    except ValueError as error:
        raise OptionError(f": {error}; write {{{{ and }}}} for braces that are not fields", "prompt") from error
    jinja, counts = "", Counter[str]()
    for literal, name, form, kind in found:
        jinja += literal.replace("{", '{{ "{" }}')  # with which everything of Jinja begins
        if name is None:
            continue
        if name not in fields:
            allowed = ", ".join(f"{{{each}}}" for each in fields)
            raise OptionError(f": {{{name}}} is not a field; allowed: {allowed}", "prompt")
        if form or kind:
            raise OptionError(f": write {{{name}}} without a format (`:` or `!`)", "prompt")
        jinja += fields[name]
        counts[name] += 1
    if "source" not in counts:
        raise OptionError(": {source} is missing; it stands for the text to translate", "prompt")
    for name in _TEXTS:
        if counts[name] > 1:
            raise OptionError(f": {{{name}}} may occur once, not {counts[name]} times", "prompt")
    return jinja
