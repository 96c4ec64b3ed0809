"""A prompt of the user's own: a text with fields, for models that no template fits, base models among them.

A base model translates by examples, which the text may hold:

    English: Good morning.
    German: Guten Morgen.

    English: {source}
    German:
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from string import Formatter

from redraft.captions.languages import Language
from redraft.captions.request import Request
from redraft.captions.thoughts import closed
from redraft.errors import OptionError, first_sentence

#: The fields, as in `str.format`; ``{{`` and ``}}`` are braces.
FIELDS = ("source", "source_language", "target_language", "source_code", "target_code", "terms", "context")
#: Fields for texts of the user; each may occur once.
_TEXTS = ("source", "terms", "context")


def prompt_file(path: Path) -> str:
    """Return the text of a prompt file.

    Raises:
        OptionError: it cannot be read as UTF-8, or is not a prompt (`OwnPrompt`).
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin files with a byte order mark
    except (OSError, UnicodeError) as error:
        raise OptionError(f": {str(path)!r} cannot be read as UTF-8 text: {first_sentence(error)}", "prompt") from error
    OwnPrompt(text)  # fails now, not when a stream starts
    return text


class OwnPrompt:
    """A prompt with fields.

    Args:
        text: the prompt up to the start of the answer; a line break at its end is dropped, and open thoughts there are
            closed.  ``{source}`` occurs once; ``{terms}`` and ``{context}`` become a line ``term = translation`` for
            each term and for each earlier sentence.

    Raises:
        OptionError: a field is unknown, is missing, occurs twice or has a format, or a brace is not closed.
    """

    def __init__(self, text: str) -> None:
        self._text = closed(text.removesuffix("\n"))
        try:
            found = [(name, form, kind) for _, name, form, kind in Formatter().parse(self._text) if name is not None]
        except ValueError as error:
            raise OptionError(f": {error}; write {{{{ and }}}} for braces that are not fields", "prompt") from error
        self._fields = Counter(name for name, _, _ in found)
        for name, form, kind in found:
            if name not in FIELDS:
                allowed = ", ".join(f"{{{field}}}" for field in FIELDS)
                raise OptionError(f": {{{name}}} is not a field; allowed: {allowed}", "prompt")
            if form or kind:
                raise OptionError(f": write {{{name}}} without a format (`:` or `!`)", "prompt")
        if "source" not in self._fields:
            raise OptionError(": {source} is missing; it stands for the text to translate", "prompt")
        for name in _TEXTS:
            if self._fields[name] > 1:
                raise OptionError(f": {{{name}}} may occur once, not {self._fields[name]} times", "prompt")

    def render(self, request: Request, source: Language, target: Language) -> str:
        """Return the prompt of a request.

        Raises:
            OptionError: there are terms or earlier sentences, and no field for them.
        """
        pairs = {"terms": request.glossary, "context": request.context}
        for name, option in (("terms", "glossary"), ("context", "context")):
            if pairs[name] and name not in self._fields:
                raise OptionError(f": the prompt has no field {{{name}}}, so add it or leave {option} out", option)
        return self._text.format(
            source=request.source,
            source_language=source.name,
            target_language=target.name,
            source_code=source.code,
            target_code=target.code,
            **{name: "\n".join(f"{left} = {right}" for left, right in each) for name, each in pairs.items()},
        )
