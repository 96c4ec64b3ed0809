"""Tell the text of a request from what a caller's prompt puts around it.

A speaker may say anything that a prompt may: "Translate our values into action: ...", or two equal emoji.  So a
wrapper is removed only if the request's prompt names it, if nothing else names the target language, or if the caller
repeats it around other texts.  Everything else is text.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from redraft.serve.http.compat.callers import likeness, units
from redraft.serve.http.compat.naming import target_of

#: A word of an instruction to translate, in several languages.
_TRANSLATE = r"(?:\btranslate\b|翻译|翻譯|译成|譯成|译为|譯為|訳|번역|[üu]bersetz|\btradu|перевед)"
_ASKS = re.compile(_TRANSLATE, re.IGNORECASE)
#: An instruction before the text that ends with a colon, such as "Translate into German:".
_INSTRUCTION = re.compile(
    rf"(?:[^:：\n]{{0,100}}{_TRANSLATE}[^:：\n]{{0,500}}"
    r"|(?:the )?(?:text|sentence|source|input)(?: to (?:be )?translated?)?)[:：]\s*(?=\S)",
    re.IGNORECASE,
)
#: A label on a line before the text, and one after it for the translation.
_LABEL = re.compile(
    r"^[ \t*#]{0,4}(?:(?:the |source |input |original |english )?(?:text|sentences?|source|input|subtitles?|paragraph)"
    r"(?: to (?:be )?translated?)?|原文|文本|テキスト|텍스트)[ *]{0,3}[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER = re.compile(
    r"\n[ \t*#]{0,4}(?:translated text|(?:the |your )?translations?|output|result|译文|翻译结果|訳文|번역)"
    r"(?: in \w{1,30})?[ *]{0,3}[:：]?[ *]{0,3}$|\s=>$",
    re.IGNORECASE,
)
#: An instruction about the text before it.
_ABOVE = re.compile(r"\b(?:above|preceding|previous)\b|上面|以上|上記|위", re.IGNORECASE)
#: Maximum length of an instruction in characters.
_LONGEST = 4000
#: A pair of marks around a text.  Spaces are tried once, or many of them would take the third power of their number.
_TAGS = re.compile(r"(?P<mark><(?P<tag>\w+)>)\s*+(?P<text>(?:.*\S)?)\s*</(?P=tag)>", re.DOTALL)
_FENCES = re.compile(r"(?P<mark>```|\"\"\")\s*+(?P<text>(?:.*\S)?)\s*(?P=mark)", re.DOTALL)
#: What prompts call a fence.
_CALLED = {"```": "backtick", '"""': "triple quote"}
#: Minimum number of words that two texts must have to show that they are different texts in one wrapper.
_TELLING = 3
#: Maximum number of callers, and of wrappers per caller, that are remembered.
_CALLERS, _WRAPPERS = 1000, 20


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A text and what was sent before and after it; concatenated, they are the original request."""

    before: str
    text: str
    after: str

    @classmethod
    def cut(cls, whole: str, begin: int, end: int) -> Wrapped:
        """Take ``whole[begin:end]``, stripped, as the text."""
        text = whole[begin:end]
        begin += len(text) - len(text.lstrip())
        end = begin + len(text.strip())
        return cls(whole[:begin], whole[begin:end], whole[end:])

    def inner(self, begin: int, end: int) -> Wrapped:
        """Take ``text[begin:end]``, stripped, as the text."""
        found = Wrapped.cut(self.text, begin, end)
        return Wrapped(self.before + found.before, found.text, found.after + self.after)


def marked(sent: str) -> Wrapped | None:
    """Find the text in a pair of symbols (such as emoji) at the end of ``sent``; None if there is no pair."""
    end = len(sent.rstrip())
    begin = end
    while (
        begin and sent[begin - 1] >= "\u2190" and unicodedata.category(sent[begin - 1]) == "So"
    ):  # not the degree sign
        begin -= 1
    mark = sent[begin:end]
    opening = sent.rfind(mark, 0, begin) if mark else -1
    if opening < 0 or not sent[opening + len(mark) : begin].strip():
        return None
    return Wrapped.cut(sent, opening + len(mark), begin)


@dataclass(slots=True)
class _Habits:
    """What a caller puts around texts: wrapper -> the latest text in it, and the wrappers seen around several."""

    latest: OrderedDict[tuple[str, str], str] = field(default_factory=OrderedDict)
    repeated: OrderedDict[tuple[str, str], None] = field(default_factory=OrderedDict)
    touched: float = 0.0


class Instructions:
    """The wrappers that callers repeat."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._callers: OrderedDict[tuple[str, ...], _Habits] = OrderedDict()

    def text_of(
        self, caller: tuple[str, ...], prompt: str, asked: Sequence[str], names_target: Callable[[str], bool]
    ) -> tuple[Wrapped, str]:
        """Return the last of the user's messages as text and wrapper, and the prompt with the instruction in it.

        Args:
            caller: what identifies the caller.
            prompt: the prompt beside the messages; it may be empty.
            asked: the user's messages, the earlier ones of the chat first.
            names_target: returns whether an instruction names the target language, and the prompt does not.
        """
        habits = self._callers.setdefault(caller, _Habits())
        self._callers.move_to_end(caller)
        habits.touched = self._clock()
        if len(self._callers) > _CALLERS:
            self._callers.popitem(last=False)
        for earlier in asked[:-1]:
            _unwrap(habits, prompt, earlier, names_target)
        return _unwrap(habits, prompt, asked[-1], names_target)

    def forget(self, seconds: float) -> None:
        """Forget callers that have sent nothing for as long."""
        late = self._clock() - seconds
        for caller in [caller for caller, habits in self._callers.items() if habits.touched < late]:
            del self._callers[caller]


def _unwrap(habits: _Habits, prompt: str, sent: str, names_target: Callable[[str], bool]) -> tuple[Wrapped, str]:
    found = Wrapped.cut(sent, 0, len(sent))
    instructed = False
    for inner, instruction in _instructed(found):
        # Speech has no empty lines, so what is apart from a text is an instruction if it agrees with the prompt.
        apart = "\n\n" in inner.before[len(found.before) :] + inner.after
        agrees = apart and target_of(instruction) == target_of(prompt) is not None
        if instructed := agrees or names_target(instruction) or _repeats(habits, inner):
            found, prompt = inner, f"{prompt}\n{instruction}"
            break
    if pair := marked(found.text):
        inner = found.inner(len(pair.before), len(found.text) - len(pair.after))
        wordless = not any(map(str.isalnum, pair.before))
        if pair.after.strip() in prompt or (wordless and (instructed or _repeats(habits, inner))):
            return inner, prompt
    for form in (_TAGS, _FENCES):
        if (match := form.fullmatch(found.text)) and match["text"]:
            inner = found.inner(*match.span("text"))
            mark = match["mark"]
            if instructed or mark in prompt or _CALLED.get(mark, mark) in prompt.casefold() or _repeats(habits, inner):
                return inner, prompt
    return found, prompt


def _instructed(found: Wrapped) -> Iterator[tuple[Wrapped, str]]:
    """Yield what may be the text in a message with an instruction, and the instruction, the likeliest first."""
    text = found.text
    answer = _ANSWER.search(text, max(0, len(text) - 100))
    end = answer.start() if answer else len(text)
    head = text[: min(end, _LONGEST)]
    first, blank, _ = head.partition("\n\n")
    if _ASKS.search(first):
        label = _LABEL.search(head)
        if label and text[label.end() : end].strip():
            yield found.inner(label.end(), end), text[: label.start()]
        if match := _INSTRUCTION.match(head):
            yield found.inner(match.end(), end), match[0]
        if blank and text[len(first) : end].strip():
            yield found.inner(len(first), end), first
    elif match := _INSTRUCTION.match(head):
        yield found.inner(match.end(), end), match[0]
    before, blank, last = text[-_LONGEST:].rpartition("\n\n")
    if blank and before.strip() and _ASKS.search(last) and _ABOVE.search(last):
        yield found.inner(0, len(text) - len(last)), last


def _repeats(habits: _Habits, found: Wrapped) -> bool:
    """Remember a text; return whether its wrapper has been around a different one."""
    wrapper = found.before, found.after
    if wrapper in habits.repeated:
        return True
    earlier = habits.latest.pop(wrapper, "")
    habits.latest[wrapper] = found.text
    if len(habits.latest) > _WRAPPERS:
        habits.latest.popitem(last=False)
    told = all(len(list(units(text))) >= _TELLING for text in (earlier, found.text))
    if not told or likeness(earlier, found.text) or likeness(found.text, earlier):
        return False
    habits.repeated[wrapper] = None
    if len(habits.repeated) > _WRAPPERS:
        habits.repeated.popitem(last=False)
    return True
